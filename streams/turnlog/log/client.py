"""What can be set of Kafka's clients, under Kafka's own names, as in Java's clients and librdkafka.

A name is in the table, or is refused with a reason: what would break a promise of this log, or
cannot be done, is never quietly ignored. This module only reads texts; a value that is secret is
never part of an error, and never of a `repr`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import NamedTuple

from turnlog.core.errors import UsageError

VARIABLE_PREFIX = "TURNLOG_KAFKA_"


class Secret(str):
    """A text that a `repr` does not show: not that of a dict, nor a traceback with variables."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class Setting(NamedTuple):
    """A setting that can be given. `values` are all that it may be, where they can be listed;
    `least` and `most` bound it where it is a number."""

    name: str
    meaning: str
    default: str = ""
    values: tuple[str, ...] = ()
    least: int | None = None
    most: int = (1 << 31) - 1
    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable for it."""
        return VARIABLE_PREFIX + self.name.upper().replace(".", "_")


_LISTED = (
    Setting(
        "security.protocol",
        "How brokers are spoken to.",
        "PLAINTEXT",
        values=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    Setting(
        "sasl.mechanism",
        "How a user is authenticated. Must be given with SASL.",
        values=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    ),
    Setting("sasl.username", "The user."),
    Setting("sasl.password", "Its password.", secret=True),
    Setting("sasl.password.file", "A file that holds the password and nothing else."),
    Setting(
        "sasl.jaas.config",
        "User and password as Java's clients write them: PlainLoginModule or ScramLoginModule.",
        secret=True,
    ),
    Setting(
        "ssl.ca.location",
        "The certificates (PEM) of those who sign the brokers' certificates.",
        "those of the system",
    ),
    Setting("ssl.ca.pem", "The same, as a text."),
    Setting("ssl.certificate.location", "This client's own certificate (PEM), with its chain."),
    Setting("ssl.key.location", "Its key (PEM).", "in the certificate's file"),
    Setting("ssl.key.password", "The password of the key.", secret=True),
    Setting(
        "ssl.endpoint.identification.algorithm",
        "Whether a broker's certificate must be for the name or address that it is reached by.",
        "https",
        values=("https", "none"),
    ),
    Setting("ssl.truststore.type", "Of what kind that file is.", "PEM", values=("PEM",)),
    Setting("ssl.keystore.type", "Of what kind that file is.", "PEM", values=("PEM",)),
    Setting("client.id", "The name in the brokers' logs and quotas.", "turnlog"),
    Setting(
        "request.timeout.ms",
        "How long a broker may take to answer.",
        "10000 to append, 40000 to read",
        least=100,
    ),
    Setting(
        "metadata.max.age.ms", "How often leaders are asked for unasked.", "300000", least=1_000
    ),
    Setting(
        "connections.max.idle.ms", "After how long a quiet connection ends.", "540000", least=1_000
    ),
    Setting(
        "compression.type",
        "How batches are packed.",
        "zstd",
        values=("none", "gzip", "snappy", "lz4", "zstd"),
    ),
    Setting("linger.ms", "How long an append waits for others, to share a batch.", "0", least=0),
    Setting("batch.size", "The bytes of a batch at most.", "524288", least=1, most=900_000),
    Setting(
        "max.partition.fetch.bytes",
        "The bytes of one partition in an answer at most; a larger frame still comes.",
        "4194304",
        least=1,
    ),
    Setting("fetch.max.bytes", "The bytes of an answer at most.", "52428800", least=1),
)
SETTINGS: Mapping[str, Setting] = {each.name: each for each in _LISTED}

ALIASES: Mapping[str, str] = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.location": "ssl.certificate.location",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
}
"""Other names of the same."""

_URL = "the brokers are in the log's URL, kafka://HOST:PORT/TOPIC"
_ACKS = "an append counts once all in-sync replicas have it, and its producer is idempotent"
_TRANSACTION = "nobody may write transactions to the topic"
_GROUP = "partitions are followed from a position that is kept in the tables, without a group"
_RETRY = "which appends had one try alone is told by it"
_PEM = "a PEM file has no password of its own; for a key's there is ssl.key.password"
_SIZE = "the topic's max.message.bytes decides, and sizes are checked before anything is sent"
_APPEND = "an append waits 30 s at most, and says then what came of it"
_KERBEROS = "there is no Kerberos here: use SCRAM-SHA-512, PLAIN, or a certificate"
_OAUTH = "there is no OAUTHBEARER here: use SCRAM-SHA-512, PLAIN, or a certificate"
_INLINE = "a key is read from a file alone: give ssl.certificate.location and ssl.key.location"
_VERIFY = "the password would be sent to whoever answers: give ssl.ca.location"
_BYTES = "keys and values of records are turnlog's own"

REFUSED: Mapping[str, str] = {
    "bootstrap.servers": _URL,
    "metadata.broker.list": _URL,
    "acks": _ACKS,
    "request.required.acks": _ACKS,
    "enable.idempotence": _ACKS,
    "max.in.flight.requests.per.connection": _ACKS,
    "max.in.flight": _ACKS,
    "retries": _ACKS,
    "message.send.max.retries": _ACKS,
    "transactional.id": _TRANSACTION,
    "transaction.timeout.ms": _TRANSACTION,
    "isolation.level": f"{_TRANSACTION}, and an open one must not hide what is behind it",
    "auto.offset.reset": "a position that is gone is named, and never jumped over",
    "enable.auto.commit": _GROUP,
    "auto.commit.interval.ms": _GROUP,
    "group.id": _GROUP,
    "group.instance.id": _GROUP,
    "session.timeout.ms": _GROUP,
    "max.poll.interval.ms": _GROUP,
    "client.rack": "partitions are read from their leaders",
    "check.crcs": "what is broken must be noticed",
    "partitioner.class": "a session's partition is computed by turnlog's own function",
    "partitioner": "a session's partition is computed by turnlog's own function",
    "allow.auto.create.topics": "a topic with wrong settings is worse than none: turnlog topics"
    " create makes it",
    "retry.backoff.ms": _RETRY,
    "retry.backoff.max.ms": _RETRY,
    "max.request.size": _SIZE,
    "message.max.bytes": _SIZE,
    "delivery.timeout.ms": _APPEND,
    "message.timeout.ms": _APPEND,
    "max.block.ms": _APPEND,
    "key.serializer": _BYTES,
    "value.serializer": _BYTES,
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "ssl.truststore.password": _PEM,
    "ssl.keystore.password": _PEM,
    "ssl.keystore.key": _INLINE,
    "ssl.keystore.certificate.chain": _INLINE,
    "ssl.key.pem": _INLINE,
    "ssl.certificate.pem": _INLINE,
    "enable.ssl.certificate.verification": _VERIFY,
    "sasl.kerberos.service.name": _KERBEROS,
    "sasl.oauthbearer.token.endpoint.url": _OAUTH,
    "sasl.login.callback.handler.class": _OAUTH,
}
"""Names that Kafka knows, and why they cannot be given here."""

_MECHANISMS = {"GSSAPI": _KERBEROS, "OAUTHBEARER": _OAUTH}
_MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": "PLAIN",
    "org.apache.kafka.common.security.scram.ScramLoginModule": "SCRAM-",
}
_JAAS = re.compile(r"\s*([\w.]+)\s+(?:required|requisite)\b(.*?);?\s*", re.DOTALL)
_OPTION = re.compile(r"""\s*(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


def read(given: Mapping[str, object]) -> dict[str, str]:
    """Values by their names in the table, as texts. Raises UsageError for one that is not there,
    and for a value that it cannot have."""
    values: dict[str, str] = {}
    for said, value in given.items():
        name = known(said)
        if name in values:
            raise UsageError(f"Kafka's setting {said!r} is given twice: {name!r} is the same")
        values[name] = _value(SETTINGS[name], value)
    return values


def known(name: str) -> str:
    """A name as the table has it. Raises UsageError, with the nearest one, for any other."""
    found = ALIASES.get(name, name)
    if found in SETTINGS:
        return found
    if name in REFUSED:
        raise UsageError(f"Kafka's setting {name!r} cannot be given: {REFUSED[name]}")
    nearest = get_close_matches(name, [*SETTINGS, *ALIASES, *REFUSED], 1)
    more = f"; do you mean {nearest[0]!r}?" if nearest else ""
    raise UsageError(f"Kafka's setting {name!r} is not known here{more}")


def name_of(variable: str) -> str | None:
    """The setting that a variable is for, known or not; None for a variable of another kind."""
    variable = variable.upper()
    if not variable.startswith(VARIABLE_PREFIX):
        return None
    return variable.removeprefix(VARIABLE_PREFIX).lower().replace("_", ".")


def is_secret(name: str) -> bool:
    """Whether what a setting is given must not be seen. What is not known may be a secret, too."""
    found = ALIASES.get(name, name)
    return found not in SETTINGS or SETTINGS[found].secret


def _value(setting: Setting, value: object) -> str:
    name = setting.name
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str | int) or "\0" in text:
        raise UsageError(f"Kafka's setting {name!r} must be a text or a number")
    if setting.secret:
        if not text:
            raise UsageError(f"Kafka's setting {name!r} is empty")
        return Secret(text)
    if name == "ssl.endpoint.identification.algorithm" and text == "":
        text = "none"  # so Java's clients write it
    if not text:
        raise UsageError(f"Kafka's setting {name!r} is empty")
    if name == "sasl.mechanism" and text in _MECHANISMS:
        raise UsageError(f"Kafka's setting {name!r}: {_MECHANISMS[text]}")
    if setting.values and text not in setting.values:
        raise UsageError(
            f"Kafka's setting {name!r} is {text!r}, and must be one of {', '.join(setting.values)}"
        )
    if setting.least is not None and not _is_number(text, setting.least, setting.most):
        raise UsageError(
            f"Kafka's setting {name!r} is {text!r}, and must be a number from {setting.least} to"
            f" {setting.most}"
        )
    return text


def _is_number(text: str, least: int, most: int) -> bool:
    return text.isascii() and text.isdecimal() and least <= int(text) <= most


class User(NamedTuple):
    """Who authenticates, and how."""

    mechanism: str
    name: str
    password: Secret | None
    """None where it is in a file."""


def check(values: Mapping[str, str]) -> User | None:
    """Whether settings fit each other; gives the user where they name one. Raises UsageError."""
    protocol = values.get("security.protocol")
    if protocol is None:
        lone = [name for name in values if name.startswith(("sasl.", "ssl."))]
        if lone:
            right = "SASL_SSL" if lone[0].startswith("sasl.") else "SSL or SASL_SSL"
            raise UsageError(
                f"Kafka's setting {lone[0]!r} is given, and 'security.protocol' is not: set it to"
                f" {right}, or nothing is encrypted and nobody authenticated"
            )
        return None
    _exclude(values, "ssl.ca.location", "ssl.ca.pem")
    for name in ("ssl.key.location", "ssl.key.password"):
        if name in values and "ssl.certificate.location" not in values:
            raise UsageError(
                f"Kafka's setting {name!r} is given without 'ssl.certificate.location'"
            )
    return _user(values) if protocol.startswith("SASL_") else None


def _user(values: Mapping[str, str]) -> User:
    mechanism = values.get("sasl.mechanism")
    if mechanism is None:
        allowed = ", ".join(SETTINGS["sasl.mechanism"].values)
        raise UsageError(f"Kafka's setting 'sasl.mechanism' is missing: give one of {allowed}")
    for name in ("sasl.username", "sasl.password", "sasl.password.file"):
        _exclude(values, "sasl.jaas.config", name)
    _exclude(values, "sasl.password", "sasl.password.file")
    jaas = values.get("sasl.jaas.config")
    if jaas is not None:
        return User(mechanism, *_read_jaas(jaas, mechanism))
    for name in ("sasl.username", "sasl.password"):
        if name not in values and f"{name}.file" not in values:
            raise UsageError(f"Kafka's setting {name!r} is missing: {mechanism} needs it")
    password = values.get("sasl.password")
    return User(mechanism, values["sasl.username"], None if password is None else Secret(password))


def _exclude(values: Mapping[str, str], one: str, other: str) -> None:
    if one in values and other in values:
        raise UsageError(f"Kafka's settings {one!r} and {other!r} are both given: leave one out")


def _read_jaas(text: str, mechanism: str) -> tuple[str, Secret]:
    """User and password of a line that Java's clients take. Nothing else of it can be done."""
    name = "sasl.jaas.config"
    found = _JAAS.fullmatch(text)
    if found is None:
        raise UsageError(
            f"Kafka's setting {name!r} cannot be read: it is written as"
            ' MODULE required username="…" password="…";'
        )
    module, rest = found.groups()
    if module not in _MODULES:
        raise UsageError(
            f"Kafka's setting {name!r}: its module must be one of {', '.join(_MODULES)}"
        )
    if not mechanism.startswith(_MODULES[module]):
        raise UsageError(f"Kafka's setting {name!r}: {module} is not for {mechanism}")
    options: dict[str, str] = {}
    end = 0
    while match := _OPTION.match(rest, end):
        quoted = match[2] if match[2] is not None else match[3]
        options[match[1]] = re.sub(r"\\(.)", r"\1", quoted)
        end = match.end()
    if rest[end:].strip() or set(options) != {"username", "password"}:
        raise UsageError(f"Kafka's setting {name!r}: it must hold username and password alone")
    return options["username"], Secret(options["password"])
