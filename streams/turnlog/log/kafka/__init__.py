"""The Kafka log: the shared one, for many hosts on many machines.

`log.py` is the adapter. What it appends goes through `appender.py`; what anybody appended is told
by one `tail.py` for each partition in use, which `mirror.py` writes to a local SQLite file, frames
and tables in one transaction. `cluster.py` asks the brokers, `topic.py` says what a topic must be.
"""

import logging

# What aiokafka complains of is said by our errors, too. Whoever configures logging gets it all the
# same; without, Python would write it over a command's output.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())


def _holds_no_secret(record: logging.LogRecord) -> bool:
    """At DEBUG each request is logged whole, those with a password among them."""
    given = record.args if isinstance(record.args, tuple) else ()
    return not any(type(each).__name__.startswith("Sasl") for each in given)


logging.getLogger("aiokafka.conn").addFilter(_holds_no_secret)
