from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from turnlog.core.errors import UsageError
from turnlog.testing.broker_jars import ROOTS, _listed, _pom, check


def listed_for(*names: str) -> str:
    return "".join(f"g:{name}:1 {sha256(name.encode()).hexdigest()}\n" for name in names)


def jars(folder: Path, *names: str) -> list[Path]:
    paths = [folder / f"{name}-1.jar" for name in names]
    for path, name in zip(paths, names, strict=True):
        path.write_bytes(name.encode())
    return paths


def test_the_classpath_is_the_listed_jars(tmp_path: Path) -> None:
    found = jars(tmp_path, "a", "b")
    assert check(found, lambda: listed_for("a", "b")) == f"{found[0]}:{found[1]}"


def test_a_jar_that_is_missing_changed_or_not_listed_is_refused(tmp_path: Path) -> None:
    found = jars(tmp_path, "a", "b")
    with pytest.raises(UsageError, match="missing"):
        check(found[:1], lambda: listed_for("a", "b"))
    with pytest.raises(UsageError, match=r"b-1\.jar"):
        check(found, lambda: listed_for("a"))
    found[1].write_bytes(b"changed")
    with pytest.raises(UsageError, match=r"b-1\.jar"):
        check(found, lambda: listed_for("a", "b"))


def test_every_jar_that_is_asked_for_is_listed_with_its_version() -> None:
    names = [line.split()[0] for line in _listed().splitlines()]
    assert set(ROOTS) <= set(names)
    assert len(names) == len(set(names))
    assert all(len(line.split()[1]) == 64 for line in _listed().splitlines())


def test_maven_is_asked_for_exactly_what_is_listed() -> None:
    assert _pom().count("<dependency>") == len(_listed().splitlines())
    assert _pom().count("<exclusion>") == len(_listed().splitlines())
