"""The log in files: a folder with one file for each session, and tables that follow it.

    log.json         says that this is a log, of which format, and its random id
    sessions/NAME    one session: a header line, then its frames (docs/files.md, byte for byte)
    lock             who appends holds it, and it says the last position that was given
    load             only while several records are loaded together: what they are
    tables.db        frames and tables in SQLite, as an embedded log has them; made from the files

Decisions, and why:

- **The files are the log.** `tables.db` may be deleted whenever nobody has the log open; the next
  who opens it makes it again. What it holds and the files do not is taken out of it.
- **A position is counted over the folder**, and each frame carries its own. The port reads all
  sessions in one order and the tables have one position, so a count for each session would not do.
  It is given under the folder's lock, which is held until the frame is on disk and in the tables:
  nobody ever sees a position before a lower one.
- **Readers read `tables.db`.** It gets a frame when its file is synced, in one transaction with the
  rows, so what is read is durable, whole and in order, however many files it lies in. It is not
  synced itself: after a power failure it may lag, and is brought up to date from the files.
- **The lock says the position before the files are written.** Where it is not the end of the
  tables, somebody has died in between, and the next one to append looks at the files first.
- **What a torn write leaves is told from damage.** The file ends in it, or whole sectors of it are
  zero: it was never acknowledged, and is cut off. Anything else that cannot be read was there
  once: it stays, is an unreadable record to the fold, and what follows is read.
"""
