"""What is published: the wheel and the sdist, built as a packager builds them.

Three source roots make one namespace package, which build tools get wrong in quiet ways: a root
left out, a `py.typed` missing, an sdist that builds another wheel. So the archives are opened.
"""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

# One worker builds for all of these tests.
pytestmark = pytest.mark.xdist_group("package")


class Built(NamedTuple):
    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command whose own words are the failure's message."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(source: Path, kind: str, target: Path) -> Path:
    # Without isolation: with the pinned hatchling, and without a network.
    run(sys.executable, "-m", "build", "-n", f"--{kind}", "-o", target, source, cwd=target.parent)
    [archive] = target.iterdir()
    return archive


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    sdist = build(ROOT, "sdist", folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    return Built(
        wheel=build(ROOT, "wheel", folder / "wheel"),
        sdist=sdist,
        wheel_of_sdist=build(unpacked, "wheel", folder / "wheel_of_sdist"),
    )


def wheel_files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sdist_files(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def files_below(folder: Path) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_namespace_and_nothing_else(built: Built) -> None:
    files = wheel_files(built.wheel)
    metadata = "-".join(built.wheel.name.split("-")[:2]) + ".dist-info"
    assert {name.partition("/")[0] for name in files} == {"turnlog", metadata}
    assert "turnlog/__init__.py" not in files
    assert f"{metadata}/licenses/LICENSE" in files


def test_the_wheel_holds_every_product_file(built: Built) -> None:
    product = {
        path.partition("/")[2]
        for root in ("streams", "producers", "consumers")
        for path in files_below(ROOT / root)
    }
    assert product <= wheel_files(built.wheel)


def test_every_package_in_the_wheel_says_that_it_is_typed(built: Built) -> None:
    # PEP 561: a namespace cannot say it, each regular package in it has to.
    files = wheel_files(built.wheel)
    packages = {name.split("/")[1] for name in files if name.startswith("turnlog/")}
    assert packages
    assert {f"turnlog/{package}/py.typed" for package in packages} <= files


def test_the_sdist_holds_what_is_needed_to_check_it(built: Built) -> None:
    files = sdist_files(built.sdist)
    assert {"Makefile", "constraints.txt", "pyproject.toml", "README.md", "LICENSE"} <= files
    for folder in ("tests", "docs", "compose"):
        assert files_below(ROOT / folder) <= files


def test_the_sdist_builds_the_same_wheel(built: Built) -> None:
    assert wheel_files(built.wheel_of_sdist) == wheel_files(built.wheel)


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_installs_into_an_empty_environment(built: Built, kind: str, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    folder = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    archive = built.wheel if kind == "wheel" else built.sdist
    pinned = ROOT / "constraints.txt"
    run(folder / "python", "-m", "pip", "install", "-q", "-c", pinned, archive, cwd=tmp_path)
    assert "Usage" in run(folder / "turnlog", "--help", cwd=tmp_path)
