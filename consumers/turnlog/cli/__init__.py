"""The command `turnlog`: what is chosen and wired together for a person at a terminal.

Data goes to standard output, talk to standard error. Importing this package imports nothing else.
"""
