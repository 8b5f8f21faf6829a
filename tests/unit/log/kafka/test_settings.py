"""Kafka's settings as aiokafka's clients get them."""

from __future__ import annotations

import asyncio
import ssl
import traceback
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.secured import make_certificates
from turnlog.core.errors import UsageError
from turnlog.log.client import SETTINGS
from turnlog.log.kafka.settings import Client

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "me",
}
TLS = {"security.protocol": "SSL"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


def refusal(kafka: dict[str, str]) -> str:
    with pytest.raises(UsageError) as error:
        Client("h:1", kafka)
    return "".join(traceback.format_exception(error.value))


def test_every_number_reaches_a_client() -> None:
    """Each one that can be set is among what a producer or a consumer is made with."""
    numbers = {each.name: each.least for each in SETTINGS.values() if each.least is not None}
    plain, changed = Client("h:1", {}), Client("h:1", numbers)
    found = {**changed.producer, **changed.consumer}
    were = {**plain.producer, **plain.consumer}
    assert len([name for name in found if found[name] != were[name]]) == len(
        [name for name in numbers if str(numbers[name]) != SETTINGS[name].default]
    )
    assert changed.consumer["request_timeout_ms"] == numbers["request.timeout.ms"]


def test_aiokafka_takes_them_all() -> None:
    kafka = {name: each.default for name, each in SETTINGS.items() if each.default.isdecimal()}
    client = Client("h:1", {**kafka, **SASL, "sasl.password": "x", "request.timeout.ms": 500})

    async def make() -> None:
        await AIOKafkaProducer(**client.producer).stop()
        await AIOKafkaConsumer(**client.consumer).stop()

    asyncio.run(make())


def test_no_compression_is_none_to_aiokafka() -> None:
    assert Client("h:1", {"compression.type": "none"}).producer["compression_type"] is None
    assert Client("h:1", {}).producer["compression_type"] == "zstd"


def test_a_password_from_a_file_is_its_text_without_the_last_newline(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(" hunter2 \n")
    client = Client("h:1", {**SASL, "sasl.password.file": str(file)})
    assert client.every["sasl_plain_password"] == " hunter2 "
    assert "hunter2" not in f"{client.every} {client.producer!r} {client!r} {vars(client)}"
    file.write_text("\n")
    assert "is empty" in refusal({**SASL, "sasl.password.file": str(file)})
    assert "cannot be read" in refusal({**SASL, "sasl.password.file": str(tmp_path)})


def test_a_broker_must_prove_who_it_is_unless_somebody_says_otherwise(certificates: Path) -> None:
    strict: ssl.SSLContext = Client("h:1", TLS).every["ssl_context"]
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    named = {**TLS, "ssl.ca.location": f"{certificates}/ca.pem"}
    context: ssl.SSLContext = Client("h:1", named).every["ssl_context"]
    assert len(context.get_ca_certs()) == 1  # that one and none of the system's
    text = (certificates / "ca.pem").read_text()
    context = Client("h:1", {**TLS, "ssl.ca.pem": text}).every["ssl_context"]
    assert len(context.get_ca_certs()) == 1
    off = {**named, "ssl.endpoint.identification.algorithm": "none"}
    context = Client("h:1", off).every["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)


def test_files_that_are_no_certificates_are_named(certificates: Path, tmp_path: Path) -> None:
    other = tmp_path / "store.jks"
    other.write_bytes(b"\xfe\xed\xfe\xed\0\0")
    for name in ("ssl.ca.location", "ssl.certificate.location"):
        assert f"{name!r}: {other}" in refusal({**TLS, name: str(other)})
        gone = str(tmp_path / "gone")
        assert f"{gone} cannot be read (No such file" in refusal({**TLS, name: gone})
    assert "the text holds no certificates" in refusal({**TLS, "ssl.ca.pem": "hunter2 é"})
    pair = {
        "ssl.certificate.location": f"{certificates}/client.pem",
        "ssl.key.location": f"{certificates}/server.pem",
    }
    assert "not a certificate and its key" in refusal({**TLS, **pair})


def test_a_key_with_a_password_is_never_asked_for_at_the_terminal(
    certificates: Path, tmp_path: Path
) -> None:
    from cryptography.hazmat.primitives import serialization

    text = (certificates / "client.pem").read_bytes()
    key = serialization.load_pem_private_key(text, None)
    locked = tmp_path / "key.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"hunter2"),
        )
    )
    pair = {
        **TLS,
        "ssl.certificate.location": f"{certificates}/client.pem",
        "ssl.key.location": str(locked),
    }
    assert Client("h:1", {**pair, "ssl.key.password": "hunter2"}).every["ssl_context"]
    for wrong in ({}, {"ssl.key.password": "hunter3"}):
        said = refusal({**pair, **wrong})
        assert "not a certificate and its key" in said
        assert "hunter3" not in said
