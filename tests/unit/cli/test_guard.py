"""Whatever a command raises ends as one line and a status."""

import errno

import pytest
import typer

from turnlog.cli.guard import explain, perform
from turnlog.cli.options import Common
from turnlog.core.errors import LogUnavailable, SessionNotFound, UsageError


def status(work: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    def raising(_terminal: object) -> None:
        if isinstance(work, BaseException):
            raise work

    with pytest.raises(typer.Exit) as ended:
        perform(Common(), raising)
    out, err = capsys.readouterr()
    return ended.value.exit_code, out, err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (None, 0, ""),
        (SessionNotFound("no session 's'"), 1, "turnlog: no session 's'\n"),
        (LogUnavailable("two\nlines \x1b"), 1, "turnlog: two⏎lines ␛\n"),
        (UsageError("no such thing"), 2, "turnlog: no such thing\n"),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "x"),
            1,
            "turnlog: x: No such file; look at the path: the folder it is in must be there\n",
        ),
        (OSError(errno.EIO, "broken", "x"), 1, "turnlog: x: broken\n"),
        (OSError("odd"), 1, "turnlog: odd\n"),
        (KeyboardInterrupt(), 130, "turnlog: interrupted\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_one_line_and_a_status(
    error: BaseException | None, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(error, capsys) == (code, "", said)


def test_what_nobody_thought_of_is_called_a_bug() -> None:
    said, code = explain(ZeroDivisionError("by zero"))
    assert code == 1
    assert said.startswith("unexpected ZeroDivisionError: by zero; this is a bug")
    assert "TURNLOG_DEBUG=1" in said


def test_debugging_shows_errors_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNLOG_DEBUG", "1")
    with pytest.raises(UsageError):
        perform(Common(), lambda _: (_ for _ in ()).throw(UsageError("x")))
    monkeypatch.setenv("TURNLOG_DEBUG", "0")
    assert status(UsageError("x"), capsys)[0] == 2
