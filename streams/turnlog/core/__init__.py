"""The pure core: events, frames, the fold, surfaces, recovery verdicts and errors.

Nothing here does I/O, reads a clock or draws a random number; everything is a function of its
arguments, so the same code runs in memory, in SQLite and in a stream processor.
"""
