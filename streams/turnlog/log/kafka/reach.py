"""Why no broker can be spoken to, and which right is missing: in words, with what to do next.

aiokafka's clients only say that none of some addresses could be used, and log the reasons. So where
one of them fails, each address is tried once more by itself, and what it ends with is told.
"""

from __future__ import annotations

import asyncio
import shlex
import ssl
from collections.abc import Sequence
from typing import Any, NamedTuple

from aiokafka.conn import AIOKafkaConnection, collect_hosts
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from turnlog.log.kafka.settings import Client

TRY_S = 5.0
"""How long one address is tried."""
_CONNECTION = (
    "client_id",
    "security_protocol",
    "ssl_context",
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
)
_FOR_ANOTHER_HOST = (62, 64)
"""OpenSSL's codes for a certificate that is for another name, or another address."""


class Obstacle(NamedTuple):
    """Why an address cannot be used. Trying again is in vain where it is `final`, and where it is
    `odd` it is as well, unless the broker was just starting or ending."""

    said: str
    final: bool = False
    odd: bool = False


async def find_obstacle(client: Client, hosts: Sequence[tuple[str, int]] = ()) -> Obstacle | None:
    """What stands between a client and the brokers, by default at the addresses it was given; the
    worst there is. None where they can be spoken to."""
    places = hosts or [(host, port) for host, port, _ in collect_hosts(client.servers)]
    found = await asyncio.gather(*(_try(client, host, port) for host, port in places))
    obstacles = [each for each in found if each is not None]
    if not obstacles or (len(obstacles) < len(found) and not any(each.final for each in obstacles)):
        return None
    return max(obstacles, key=lambda each: (each.final, each.odd))


async def _try(client: Client, host: str, port: int) -> Obstacle | None:
    settings: dict[str, Any] = {
        name: value for name, value in client.every.items() if name in _CONNECTION
    }
    connection = AIOKafkaConnection(host, port, request_timeout_ms=int(TRY_S * 1000), **settings)
    try:
        async with asyncio.timeout(TRY_S):
            await connection.connect()
            await connection.send(MetadataRequest([]))
    except (KafkaError, OSError, TimeoutError, ValueError, AssertionError) as error:
        return _explain(client, f"{host}:{port}", error)
    finally:
        connection.close()
    return None


def _explain(client: Client, place: str, error: Exception) -> Obstacle:
    """An error of one try, in words."""
    cause = error.__cause__ if isinstance(error, KafkaConnectionError) else error
    if isinstance(cause, ssl.SSLError):  # some of these are a ValueError, too
        return _explain_ssl(client, place, cause)
    if isinstance(error, SaslAuthenticationFailed | ValueError | AssertionError):
        # the last two are what the client makes of a server that does not know the password, either
        return Obstacle(
            f"{place} refuses user {client.user!r}: look at sasl.username, sasl.password and"
            f" sasl.mechanism ({client.every.get('sasl_mechanism')})",
            final=True,
        )
    if isinstance(error, UnsupportedSaslMechanismError):
        return Obstacle(
            f"{place} does not know the mechanism {client.every.get('sasl_mechanism')}: set"
            " sasl.mechanism to one that it has",
            final=True,
        )
    if isinstance(error, IllegalSaslStateError):
        return Obstacle(
            f"{place} authenticates nobody: security.protocol is {client.protocol}, and must be"
            f" {client.protocol.removeprefix('SASL_')} there",
            final=True,
        )
    if isinstance(error, TimeoutError):
        return Obstacle(f"{place} does not answer within {TRY_S:g} s", odd=True)
    if isinstance(error, KafkaConnectionError | ConnectionResetError):
        more = ", whether it wants another certificate" if client.protocol == "SSL" else ""
        return Obstacle(
            f"{place} closes the connection: security.protocol is {client.protocol}; see which one"
            f" that port has{more}, and that the broker is ready",
            odd=True,
        )
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Obstacle(f"{place}: {said}")


def _explain_ssl(client: Client, place: str, error: ssl.SSLError) -> Obstacle:
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _FOR_ANOTHER_HOST:
            return Obstacle(
                f"the certificate of {place} is for another host ({error.verify_message}): use an"
                " address that it is for",
                final=True,
            )
        return Obstacle(
            f"the certificate of {place} is not trusted ({error.verify_message}): set"
            " ssl.ca.location to the certificate of who signed it",
            final=True,
        )
    reason = error.reason or ""
    if "ALERT" in reason:
        return Obstacle(
            f"{place} refuses this client's certificate ({reason}): look at"
            " ssl.certificate.location",
            final=True,
        )
    return Obstacle(
        f"{place} does not speak TLS ({reason or error}): security.protocol is {client.protocol};"
        " see which one that port has",
        odd=True,
    )


def denial(client: Client, operation: str, topic: str) -> str:
    """That a right is missing, and how it is given."""
    more = " (Read and Write bring it along)" if operation == "Describe" else ""
    who = f"user {client.user!r}" if client.user else "this client"
    principal = shlex.quote(f"User:{client.user or 'NAME'}")
    return (
        f"kafka://{client.servers}: {who} has no right to {operation} topic {topic!r}{more}; give"
        f" it by: kafka-acls.sh --bootstrap-server {client.servers} --add --allow-principal"
        f" {principal} --operation {operation} --topic {topic}"
    )
