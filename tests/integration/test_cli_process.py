"""What only a process of its own shows: start-up time, closed pipes, interrupts, encodings."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.story import Story, user
from tests.unit.cli.calls import Caller
from tests.unit.query.logs import random_session
from turnlog.cli.program import COMMANDS

ROOT = Path(__file__).parents[2]
ROOTS = [str(ROOT / name) for name in ("streams", "producers", "consumers")]
PROGRAM = [sys.executable, "-c", "from turnlog.cli.app import main; main()"]
INTERRUPTIBLE = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # xdist ignores it
    + PROGRAM[-1],
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(ROOTS),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "TURNLOG_LOG": f"sqlite:{tmp_path}/log.db",
        "LC_ALL": "C.UTF-8",
    }


@pytest.fixture
def filled(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], environment: dict[str, str]
) -> Path:
    del environment
    Caller(tmp_path, capsysbinary).write(*(random_session(seed, f"s{seed}") for seed in range(40)))
    return tmp_path


def run(
    *arguments: str, environment: dict[str, str], before: str = "", **options: object
) -> subprocess.CompletedProcess[str]:
    """Run the command; `before` are redirections of a shell."""
    shell = ["/bin/sh", "-c", f'exec "$@" {before}', "sh"] if before else []
    return subprocess.run(
        [*shell, *PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,  # type: ignore[call-overload]
    )


def test_help_imports_nothing_heavy(environment: dict[str, str]) -> None:
    script = (
        "import sys\n"
        "from turnlog.cli.program import run\n"
        "run(['--help'])\n"
        "heavy = {'asyncio', 'orjson', 'pydantic', 'rich', 'sqlite3', 'turnlog.core'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", [*COMMANDS, "config show"])
def test_every_help_has_an_example(environment: dict[str, str], command: str) -> None:
    done = run(*command.split(), "--help", environment={**environment, "COLUMNS": "80"})
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert f"turnlog {command}" in done.stdout.partition("Examples:")[2]
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_version(environment: dict[str, str]) -> None:
    done = run("--version", environment=environment)
    assert (done.returncode, done.stdout.split()[0].rstrip(",")) == (0, "turnlog")


@pytest.mark.parametrize(
    "arguments", [["dump"], ["events", "s1", "--json"], ["sessions"], ["show", "s1", "--json"]]
)
def test_a_closed_pipe_is_quiet(
    filled: Path, environment: dict[str, str], arguments: list[str]
) -> None:
    assert filled.is_dir()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, *arguments],
        env=environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_damage_is_told_by_the_status_also_where_nobody_reads(
    filled: Path, environment: dict[str, str]
) -> None:
    assert filled.is_dir()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, "fsck", "--json"], env=environment, stdout=writer, check=False)
    os.close(writer)
    assert done.returncode == 1


def test_an_interrupt_is_130_and_leaves_nothing_behind(
    filled: Path, environment: dict[str, str]
) -> None:
    os.mkfifo(filled / "pipe")
    command = [*INTERRUPTIBLE, "restore", str(filled / "pipe")]
    with (
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process,
        (filled / "pipe").open("wb") as pipe,  # opened when the other side reads
    ):
        pipe.write(b'{"position')
        pipe.flush()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"turnlog: interrupted\n")


SLOW_IMPORT = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["SLOW"]:
            print("loading", flush=True)
            time.sleep(30)

from turnlog.cli.app import main
sys.meta_path.insert(0, Slow())
main()
"""
"""A module that is slow to load tells when it is being loaded, and waits."""


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("turnlog.cli.program", b""),
        ("typer", b""),
        ("turnlog.cli.sessions", b""),
        ("turnlog.query.sessions", b""),
        ("turnlog.log.sqlite.log", b"turnlog: interrupted\n"),
    ],
)
def test_an_interrupt_while_modules_load_is_130(
    filled: Path, environment: dict[str, str], module: str, said: bytes
) -> None:
    assert filled.is_dir()
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT, "sessions"],
        env={**environment, "SLOW": module},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", said)


def test_an_interrupt_that_is_ignored_stays_so(environment: dict[str, str]) -> None:
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from turnlog.cli.app import main\n"
        "try: main()\n"
        "finally: assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "--help"], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "arguments", [["sessions"], ["--help"], ["dump"], ["events", "s1"], ["show", "s1", "--json"]]
)
def test_a_closed_standard_output_is_one_line(
    filled: Path, environment: dict[str, str], arguments: list[str]
) -> None:
    before = (filled / "log.db").read_bytes()
    done = run(*arguments, environment=environment, before=">&-")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("turnlog: standard output is closed; ")
    assert done.stderr.count("\n") == 1
    assert (filled / "log.db").read_bytes() == before


@pytest.mark.parametrize("closing", ["<&-", "2>&-", "<&- 2>&-"])
def test_other_closed_streams_do_no_harm(
    filled: Path, environment: dict[str, str], closing: str
) -> None:
    assert filled.is_dir()
    whole = run("sessions", environment=environment)
    done = run("sessions", environment=environment, before=closing)
    assert (done.returncode, done.stdout) == (0, whole.stdout)
    done = run("show", "nowhere", environment=environment, before=closing)
    assert (done.returncode, done.stdout) == (1, "")
    if "2>&-" not in closing:
        assert "no session 'nowhere'" in done.stderr
    done = run("restore", "-", environment=environment, before=closing)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [["sessions"], ["--help"], ["--version"], ["dump"], ["events", "s1"], ["show", "s1", "--json"]],
)
def test_a_full_standard_output_is_named(
    filled: Path, environment: dict[str, str], arguments: list[str]
) -> None:
    assert filled.is_dir()
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    done = run(*arguments, environment=environment, before="> /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("turnlog: writing to standard output: No space left on device; ")
    assert done.stderr.count("\n") == 1


def test_a_terminal_without_such_characters_is_no_reason_to_fail(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], environment: dict[str, str]
) -> None:
    story = Story("s").begin(title="naïve 😀")
    story.own(user("u", None, "日本"))
    Caller(tmp_path, capsysbinary).write(story)
    done = run("show", "s", environment={**environment, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\u65e5" in done.stdout
    done = run("show", "s", "--json", environment={**environment, "PYTHONIOENCODING": "ascii"})
    assert "日本" in done.stdout


def test_colours_only_where_they_belong(filled: Path, environment: dict[str, str]) -> None:
    assert filled.is_dir()
    for extra in ({}, {"NO_COLOR": "1"}):
        assert "\x1b" not in run("sessions", environment={**environment, **extra}).stdout
    forced = {**environment, "FORCE_COLOR": "1", "TERM": "xterm"}
    assert "\x1b[" in run("sessions", environment=forced).stdout
    assert "\x1b[3" not in run("sessions", "--no-color", environment=forced).stdout


def test_debugging_shows_a_traceback(environment: dict[str, str]) -> None:
    done = run("sessions", environment={**environment, "TURNLOG_DEBUG": "1"})
    assert done.returncode == 1
    assert "Traceback" in done.stderr
