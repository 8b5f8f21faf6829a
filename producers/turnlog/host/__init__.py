"""What an agent host uses: sessions, turns, tools, and going on after a crash."""
