"""How every command runs on: signals, structured logs, health, metrics and an admin port.

A command hands `turnlog.cli.process.runner.run` one coroutine function, and gets a `Process`: when
to stop, the log, its records as they come, places for its own checks, and counters.
"""
