"""What the authors of hosts test their agents with: a log in memory, crashes, a scripted model."""
