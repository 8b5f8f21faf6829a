"""A real broker that encrypts, authenticates and asks who may do what, for tests of just that.

Its PLAINTEXT listener is the operators' own: whoever comes by it may do everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from aiokafka import AIOKafkaClient
from aiokafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

from tests.integration.kafka_topics import new_name
from turnlog.log import topics
from turnlog.testing.broker import Broker
from turnlog.testing.broker_jars import Java

if TYPE_CHECKING:
    import trustme

PASSWORDS = {"alice": "alice-secret-1", "bob": "bob-secret-2"}
"""bob, by PLAIN, is known to the broker from its settings alone."""
JAAS = "org.apache.kafka.common.security"
TOPIC = 2
OPERATIONS = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Describe": 8,
    "DescribeConfigs": 10,
}
LITERAL, ALLOW, ANY = 3, 3, 1


class Acl(NamedTuple):
    """A right that somebody has."""

    operation: str
    topic: str


class Secured(NamedTuple):
    """The broker, and the files that its clients need."""

    broker: Broker
    folder: Path

    @property
    def sasl(self) -> str:
        """Where one authenticates by a password."""
        return self.broker.listening["SASL_SSL"]

    @property
    def tls(self) -> str:
        """Where one authenticates by a certificate."""
        return self.broker.listening["SSL"]

    @property
    def ca(self) -> str:
        """Who signed all certificates."""
        return str(self.folder / "ca.pem")

    def settings(self, user: str = "alice", **changed: str) -> dict[str, str]:
        """Settings with which a user gets in; some of them otherwise (with _ for dots)."""
        found = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512" if user == "alice" else "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "ssl.ca.location": self.ca,
        }
        found |= {name.replace("_", "."): value for name, value in changed.items()}
        found["ssl.ca.location"] = str(self.folder / found["ssl.ca.location"])
        return found

    def certificate(self, name: str) -> dict[str, str]:
        """Settings with which one gets in by a certificate, if it is known."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": self.ca,
            "ssl.keystore.location": f"{self.folder}/{name}.pem",
        }

    def make_topic(self, partitions: int = 1) -> str:
        """A topic, made by an operator; gives its name."""
        name = new_name()
        topics.create(f"kafka://{self.broker.servers}/{name}", partitions=partitions)
        return name

    def allow(self, user: str, acls: Sequence[Acl]) -> None:
        """Give a user these rights and no others; returns once they are in force."""
        name = f"User:{user}"
        requests: list[Any] = [DeleteAclsRequest(ANY, None, ANY, name, None, ANY, ANY)]
        requests += [
            CreateAclsRequest(
                TOPIC, each.topic, LITERAL, name, "*", OPERATIONS[each.operation], ALLOW
            )
            for each in acls
        ]
        look: Any = DescribeAclsRequest(ANY, None, ANY, name, None, ANY, ANY)

        async def work() -> None:
            client = AIOKafkaClient(bootstrap_servers=self.broker.servers)
            await client.bootstrap()
            try:
                for request in requests:
                    answer = await client.send(1, request)
                    assert "error_code=0" in str(answer)
                while True:
                    answer = await client.send(1, look)
                    if sum(len(acls) for *_, acls in answer.resources) == len(acls):
                        return
                    await asyncio.sleep(0.02)
            finally:
                await client.close()

        asyncio.run(asyncio.wait_for(work(), 30))


@pytest.fixture(scope="session")
def secured(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Generator[Secured]:
    """The broker."""
    folder = tmp_path_factory.mktemp("secured")
    make_certificates(folder)
    plain = f'{JAAS}.plain.PlainLoginModule required user_bob="{PASSWORDS["bob"]}";'
    broker = Broker(
        folder / "broker",
        java=java,
        listeners=["SASL_SSL", "SSL"],
        users={"alice": PASSWORDS["alice"]},
        properties={
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": f"{folder}/server.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": f"{folder}/ca.pem",
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{JAAS}.scram"
            ".ScramLoginModule required;",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": plain,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "ssl.principal.mapping.rules": "RULE:.*CN=([^,]+).*/$1/",
            "super.users": "User:ANONYMOUS",
        },
    )
    with broker:
        yield Secured(broker, folder)


def make_certificates(folder: Path) -> None:
    """An authority, a server's certificate with its key, a client's, and another authority."""
    import trustme

    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "other-ca.pem")
    write_pair(folder / "server.pem", ca.issue_cert("127.0.0.1"))
    write_pair(folder / "client.pem", ca.issue_cert("carol@example.org", common_name="carol"))
    write_pair(
        folder / "unknown.pem", trustme.CA().issue_cert("eve@example.org", common_name="eve")
    )


def write_pair(path: Path, issued: trustme.LeafCert) -> None:
    """A key and its certificate in one file, as Kafka takes it: the key as PKCS #8."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + b"".join(each.bytes() for each in issued.cert_chain_pems)
    )
