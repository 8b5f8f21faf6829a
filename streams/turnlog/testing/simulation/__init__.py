"""The simulation: hosts, recoveries, guests and readers over a log that misbehaves, from a seed.

The actors run the real code of owner, host, recovery and fold. What is simulated is the world: the
event loop with its clock, the log's network, crashes, and what tools do outside. docs/simulation.md
tells how to run a seed again and how to read a failure.
"""

from turnlog.testing.simulation.runner import Report, run, shrink

__all__ = ["Report", "run", "shrink"]
