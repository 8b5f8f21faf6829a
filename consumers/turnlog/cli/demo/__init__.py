"""`turnlog demo`: session files of our own making, and agent hosts that crash, checked figure by
figure."""
