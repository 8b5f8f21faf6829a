"""Reading a log's tables: sessions, their events, what is wrong with them, archives of them.

Everything here gives plain data. Nothing is printed, and nothing is written but by `transfer`,
which moves whole frames between logs and archives.
"""
