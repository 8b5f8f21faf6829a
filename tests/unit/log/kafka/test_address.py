from __future__ import annotations

import pytest

from turnlog.core.errors import UsageError
from turnlog.log import open as open_log
from turnlog.log.kafka.address import Address, default_tables, parse


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("kafka://localhost:9093/sessions", Address("localhost:9093", "sessions")),
        ("kafka://localhost/s.1_a-b", Address("localhost:9092", "s.1_a-b")),
        ("kafka://a:1,b,[::1]:3,[::2]/t", Address("a:1,b:9092,[::1]:3,[::2]:9092", "t")),
    ],
)
def test_a_url_names_brokers_and_a_topic(url: str, address: Address) -> None:
    assert parse(url) == address
    assert parse(address.url) == address


@pytest.mark.parametrize(
    "url",
    [
        "kafka:localhost/t",
        "kafka://localhost",
        "kafka:///t",
        "kafka://a:b/t",
        "kafka://a:0/t",
        "kafka://a:70000/t",
        "kafka://a,,b/t",
        "kafka://a/",
        "kafka://a/..",
        "kafka://a/t/u",
        "kafka://a/ü",
        "kafka://user:secret@a/t",
        "kafka://[::1:9092/t",
        "kafka://::1/t",
        "kafka://a b:9092/t",
        "kafka://a/sessions-meta",
    ],
)
def test_what_is_no_url_of_a_log_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"log") as caught:
        parse(url)
    assert "secret" not in str(caught.value)


def test_tables_have_a_place_by_the_topic_s_id() -> None:
    assert default_tables("abc").name == "abc.db"
    assert default_tables("abc") != default_tables("abd")


def test_only_a_kafka_log_has_its_tables_elsewhere() -> None:
    with pytest.raises(UsageError, match="holds its own tables"):
        open_log("memory:", tables="sqlite:x.db")
    with pytest.raises(UsageError, match="sqlite:PATH"):
        open_log("kafka://localhost:1/t", tables="memory:")
