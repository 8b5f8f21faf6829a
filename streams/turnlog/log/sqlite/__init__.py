"""The SQLite log: a file that holds the log and its tables, for one machine."""
