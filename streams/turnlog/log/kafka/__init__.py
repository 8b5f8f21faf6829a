"""The Kafka log: the shared one, for many hosts on many machines.

`log.py` is the adapter. What it appends goes through `appender.py`; what anybody appended is told
by one `tail.py` for each partition in use, which `mirror.py` writes to a local SQLite file, frames
and tables in one transaction. `cluster.py` asks the brokers, `topic.py` says what a topic must be.
"""

import logging

# What aiokafka complains of is said by our errors, too. Whoever configures logging gets it all the
# same; without, Python would write it over a command's output.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())
