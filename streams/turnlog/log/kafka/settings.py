"""Kafka's settings as aiokafka takes them; `turnlog.log.client` has the names.

All clients of a log are made from one `Client`. What a promise depends on is set where the client
is made, and is not among its settings.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnlog.core.errors import UsageError
from turnlog.log.client import SETTINGS, Secret, User, check, read

_TIMEOUT = "request.timeout.ms"
_ALL = {
    "client.id": "client_id",
    _TIMEOUT: "request_timeout_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
}
_PRODUCER = {
    "compression.type": "compression_type",
    "linger.ms": "linger_ms",
    "batch.size": "max_batch_size",
}
_CONSUMER = {
    "max.partition.fetch.bytes": "max_partition_fetch_bytes",
    "fetch.max.bytes": "fetch_max_bytes",
}
_APPEND_MS = 10_000
"""How long a broker may take to answer an append, where nothing else is said."""
_DEFAULTS = {name: each.default for name, each in SETTINGS.items() if name != _TIMEOUT}


class Client:
    """What aiokafka's clients are made with: `every` one, a `producer`, a `consumer`.

    `user` is who authenticates, None where nobody does or a certificate tells. Raises UsageError
    for settings that cannot be used, and for a file that they name and that cannot be read.
    """

    def __init__(self, servers: str, kafka: Mapping[str, object]) -> None:
        values = read(kafka)
        user = check(values)
        self.servers = servers
        self.user = user.name if user is not None else None
        self.protocol = values.get("security.protocol", "PLAINTEXT")
        self.every: dict[str, Any] = {
            "bootstrap_servers": servers,
            "security_protocol": self.protocol,
            **_chosen({**_DEFAULTS, **values}, _ALL),
        }
        if self.protocol in ("SSL", "SASL_SSL"):
            self.every["ssl_context"] = _ssl_context(values)
        if user is not None:
            self.every |= {
                "sasl_mechanism": user.mechanism,
                "sasl_plain_username": user.name,
                "sasl_plain_password": _password(user, values),
            }
        producer = _chosen({**_DEFAULTS, **values}, _PRODUCER)
        if producer["compression_type"] == "none":
            producer["compression_type"] = None
        self.producer: dict[str, Any] = {
            "request_timeout_ms": _APPEND_MS,
            **self.every,
            **producer,
        }
        self.consumer: dict[str, Any] = {
            **self.every,
            **_chosen({**_DEFAULTS, **values}, _CONSUMER),
        }


def _chosen(values: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    """Those of some settings that are given, by aiokafka's names."""
    return {
        ours: int(values[name]) if SETTINGS[name].least is not None else values[name]
        for name, ours in names.items()
        if name in values
    }


def _password(user: User, values: Mapping[str, str]) -> Secret:
    if user.password is not None:
        return user.password
    name = "sasl.password.file"
    try:
        text = Path(values[name]).expanduser().read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise _unreadable(name, values[name], error) from error
    if not text:
        raise UsageError(f"Kafka's setting {name!r}: {values[name]} is empty")
    return Secret(text)


def _ssl_context(values: Mapping[str, str]) -> ssl.SSLContext:
    context = _trusting(values)
    if values.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    name = "ssl.certificate.location"
    if name not in values:
        return context
    key = values.get("ssl.key.location")
    password = values.get("ssl.key.password", "")  # without, OpenSSL would ask at the terminal
    certificate = Path(values[name]).expanduser()
    try:
        context.load_cert_chain(certificate, Path(key).expanduser() if key else None, password)
    except ssl.SSLError as error:
        raise UsageError(
            f"Kafka's setting {name!r}: {values[name]}{f' and {key}' if key else ''}: not a"
            " certificate and its key in PEM, or the password is another one"
            f" ({error.reason or error.strerror}); of a JKS or PKCS #12 file PEM is made by openssl"
            " pkcs12"
        ) from None  # nothing of a key in a traceback
    except OSError as error:
        path = f"{values[name]}{f' or {key}' if key else ''}"
        raise _unreadable(name, path, error) from error
    return context


def _trusting(values: Mapping[str, str]) -> ssl.SSLContext:
    """A context that trusts those who are named and nobody else, or those whom the system does."""
    text, path = values.get("ssl.ca.pem"), values.get("ssl.ca.location")
    name = "ssl.ca.pem" if text is not None else "ssl.ca.location"
    try:
        cafile = Path(path).expanduser() if path is not None else None
        return ssl.create_default_context(cafile=cafile, cadata=text)
    except (ssl.SSLError, TypeError, ValueError) as error:  # the last two: a text of no certificate
        raise UsageError(
            f"Kafka's setting {name!r}: {path or 'the text'} holds no certificates in PEM; of a JKS"
            " file PEM is made by keytool -exportcert -rfc"
        ) from error
    except OSError as error:
        raise _unreadable(name, str(path), error) from error


def _unreadable(name: str, path: str, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or type(error).__name__
    return UsageError(f"Kafka's setting {name!r}: {path} cannot be read ({reason})")
