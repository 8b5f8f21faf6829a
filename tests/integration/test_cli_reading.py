"""Commands that read: what a person and what a program gets."""

from pathlib import Path

import pytest

from tests.story import (
    Story,
    accepted,
    assistant,
    attempted,
    branch,
    event,
    result,
    state,
    t1,
    text,
    used,
    user,
)
from tests.unit.cli.calls import Caller, isolated
from tests.unit.query.logs import random_session


@pytest.fixture
def turnlog(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Caller:
    isolated(monkeypatch, tmp_path)
    return Caller(tmp_path, capsysbinary)


def rewound(session: str = "rewound-1") -> Story:
    story = Story(session).begin(title="A poem", cwd="/src/poem", agent="poet")
    story.own(user("e0", None, "write a poem"), state("e1", "e0", k=1), assistant("e2", "e1"))
    story.own(user("e3", "e2", "longer"), state("e4", "e3", k=2))
    story.own(branch("e5", "e2", "e4"), user("e6", "e5", "shorter"))
    return story


def crashed(session: str = "crashed-1") -> Story:
    story = Story(session).begin(title="Pay", cwd="/src/pay")
    story.own(user("u", None, "pay the bill"), accepted("op", "u"), attempted("a", "op", "r"))
    story.own(
        assistant("r", "u", "c1", attempt="a"),
        used("a", "op", input=1200, output=34, cost_usd="0.0123"),
    )
    story.own(t1("d", "op", "r", "t"))
    return story


def test_sessions_for_a_person(turnlog: Caller) -> None:
    turnlog.write(rewound(), crashed())
    listed = turnlog.good("sessions")
    one, other = listed.out.splitlines()
    assert one.startswith("crashed-1  2026-01-01 00:00")
    assert "open" in one
    assert "$0.0123" in one
    assert other.endswith("A poem")
    assert listed.err == "2 sessions, 9 entries, $0.0123\n"


def test_sessions_for_a_program_and_filters(turnlog: Caller) -> None:
    turnlog.write(rewound(), crashed())
    rows = turnlog.good("sessions", "--json").json
    assert {row["session"] for row in rows} == {"rewound-1", "crashed-1"}
    for option, value, left in (
        ("--status", "open", ["crashed-1"]),
        ("--agent", "poet", ["rewound-1"]),
        ("--cwd", "/src/pay", ["crashed-1"]),
        ("--limit", "1", ["crashed-1"]),
    ):
        rows = turnlog.good("sessions", option, value, "--json").json
        assert [row["session"] for row in rows] == left
    assert len(turnlog.good("sessions", "--latest", "--json").json) == 1
    assert turnlog.good("sessions", "--cwd", "nowhere", "--json").json == []
    assert "no sessions" in turnlog.good("sessions", "--cwd", "nowhere").err


def test_a_session_without_a_title_is_called_by_its_first_words(turnlog: Caller) -> None:
    story = Story("s").begin()
    story.own(user("u", None, "what is it\nabout"))
    turnlog.write(story, Story("t").begin())
    assert turnlog.good("sessions").out.splitlines()[0].endswith("what is it⏎about")
    assert turnlog.good("sessions").out.splitlines()[1].endswith("(untitled)")


def test_show_for_a_person(turnlog: Caller) -> None:
    turnlog.write(rewound(), crashed())
    shown = turnlog.good("show", "rew").out
    assert "rewound-1  A poem" in shown
    assert "status   idle, epoch 1 (held by h)" in shown
    assert "poet in /src/poem" in shown
    assert "│ └╴e4        2 entries left behind: longer" in shown
    assert "◉ e6        user      shorter" in shown
    shown = turnlog.good("show", "crashed").out
    assert "open     prompt op: indeterminate_tool" in shown
    assert "call     bash (opaque) open d" in shown
    assert "1.2k in, 34 out, 0 cached, $0.0123 in 1 request" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_parts_of_a_session(turnlog: Caller) -> None:
    turnlog.write(rewound(), crashed())
    surface = turnlog.good("show", "rew", "--surface").out
    assert "Surface at the leaf e6  3 nodes" in surface
    assert surface.index("write a poem") < surface.index("well") < surface.index("shorter")
    assert '"k": 1' in turnlog.good("show", "rew", "--state").out
    older = turnlog.good("show", "rew", "--at", "e4").out
    assert '"k": 2' in older
    assert "Surface at e4" in older
    assert "◉ e6" in older
    operations = turnlog.good("show", "crashed", "--operations").out
    assert "indeterminate_tool" in operations
    assert "1 dispatch" in operations


def test_show_for_a_program(turnlog: Caller) -> None:
    turnlog.write(rewound())
    shown = turnlog.good("show", "rewound-1", "--json").json
    assert (shown["leaf"], shown["state"], shown["at"]) == ("e6", {"k": 1}, None)
    shown = turnlog.good("show", "rewound-1", "--at", "e4", "--json").json
    assert (shown["leaf"], shown["state"], shown["at"]) == ("e6", {"k": 2}, "e4")


def test_a_long_text_is_cut_unless_asked_for(turnlog: Caller) -> None:
    story = Story("s").begin()
    story.own(user("u", None, "x" * 5000))
    turnlog.write(story)
    assert "x" * 599 + "…" in turnlog.good("show", "s", "--surface").out
    assert "x" * 5000 in turnlog.good("show", "s", "--surface", "-v").out


def test_text_is_data(turnlog: Caller) -> None:
    evil = "\x1b[31m[bold]x[/bold]\x07\u202e :smile: \r\n\x1b]8;;http://x\x1b\\"
    story = Story(evil).begin(title=evil, cwd=evil, agent=evil)
    story.own(user(evil, None, evil), state("st", evil, **{evil: evil}))
    story.own(accepted(evil, evil), attempted("a", evil, "r", model=evil))
    story.own(assistant("r", "st", evil), t1("d", evil, "r", "t", tool=evil, call_id=evil))
    story.own(event("fact", name=evil, value=evil), user("v", evil + "missing"))
    story.guest(event("input_queued", input="i", entry="later", content=text(evil)))
    turnlog.write(story)
    for arguments in (
        ["sessions"],
        ["show", evil],
        ["show", evil, "--surface", "--state", "--operations"],
        ["events", evil],
        ["fsck"],
        ["recover", "--dry-run"],
    ):
        done = turnlog.on(*arguments)
        assert done.status in (0, 1)
        for stream in (done.out, done.err):
            assert not set(stream) & set("\x1b\x07\u202e\r")
        assert "[bold]" in done.out
        assert "😄" not in done.out


def test_events(turnlog: Caller) -> None:
    turnlog.write(crashed())
    rows = turnlog.good("events", "crashed-1", "--json").rows
    assert [row["type"] for row in rows][:3] == [
        "session_claimed",
        "session_created",
        "message",
    ]
    rows = turnlog.good("events", "crashed-1", "--type", "usage_settled", "--json").rows
    assert [row["data"]["usage"]["input"] for row in rows] == [1200]
    lines = turnlog.good("events", "crashed").out.splitlines()
    assert len(lines) == 8
    assert all(len(line) <= 80 for line in lines)
    assert "no events of type nope" in turnlog.good("events", "crashed", "-t", "nope").err


def test_fsck(turnlog: Caller) -> None:
    story = rewound()
    turnlog.write(story)
    done = turnlog.good("fsck")
    assert (done.out, done.err) == ("", "1 session: no damage, 0 notes\n")
    assert turnlog.good("fsck", "--json").json == []
    broken = Story("broken").begin()
    broken.own(user("v", "nowhere"))
    broken.own(result("r", "v", "c", dispatch="gone"))
    turnlog.write(broken)
    done = turnlog.on("fsck")
    assert done.status == 1
    assert "dangling_parent" in done.out
    assert "void_result" in done.out
    assert "2 sessions: damage in 1 place, 1 note" in done.err
    rows = turnlog.on("fsck", "--json")
    assert rows.status == 1
    assert [(row["session"], row["kind"]) for row in rows.json] == [
        ("broken", "dangling_parent"),
        ("broken", "void_result"),
    ]
    assert set(rows.json[0]) == {"session", "kind", "position", "detail"}
    assert len(turnlog.on("fsck", "--damage", "--json").json) == 1
    assert turnlog.good("fsck", "rewound", "--json").json == []
    assert "an entry's parent is not in the log (damage)" in turnlog.on("fsck", "-v").err


def test_recover(turnlog: Caller) -> None:
    turnlog.write(rewound(), crashed())
    [report] = turnlog.good("recover", "--dry-run", "--json").json
    assert (report["session"], report["verdict"]) == ("crashed-1", "indeterminate_tool")
    assert [step["do"] for step in report["instructions"]] == ["answer", "finish"]
    shown = turnlog.good("recover", "--dry-run")
    assert "indeterminate_tool: 1 dispatched call(s) without an answer" in shown.out
    assert "nothing was changed" in shown.err
    host = turnlog.good("recover", "--dry-run", "--for", "host", "crashed", "--json").json
    assert [step["do"] for step in host[0]["instructions"]] == ["answer", "continue"]
    assert turnlog.good("recover", "--dry-run", "rewound", "--json").json == []
    assert "nothing is open" in turnlog.good("recover", "--dry-run", "rewound").err


def test_verify_and_rebuild(turnlog: Caller) -> None:
    turnlog.write(rewound(), random_session(3, "random"))
    assert "are a fold of the log" in turnlog.good("verify").err
    assert turnlog.good("verify", "--json").json["differences"] == []
    assert "rebuilt up to position 65" in turnlog.good("rebuild").err
    assert turnlog.good("rebuild", "--json").json["position"] == 65
    assert turnlog.good("verify", "--json").json["differences"] == []


def test_rows_that_differ_fail_a_verification(turnlog: Caller) -> None:
    import sqlite3

    turnlog.write(rewound())
    with sqlite3.connect(turnlog.folder / "log.db") as tables:
        tables.execute("UPDATE sessions SET title = 'forged'")
        tables.execute("DELETE FROM branches_kept WHERE first = 1")
    tables.close()
    done = turnlog.on("verify", "--json")
    assert done.status == 1
    found = {row["table"]: row for row in done.json["differences"]}
    assert set(found) == {"sessions", "branches"}
    assert found["sessions"]["stored"]["title"] == "forged"
    assert found["sessions"]["fresh"]["title"] == "A poem"
    done = turnlog.on("verify")
    assert done.status == 1
    assert "run `turnlog rebuild`" in done.err
    turnlog.good("rebuild")
    turnlog.good("verify")


def test_config_show(turnlog: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = turnlog("config", "show")
    assert shown.status == 0
    assert "turnlog.db  (default)" in shown.out
    monkeypatch.setenv("TURNLOG_LOG", "kafka://me:secret@host/topic")
    shown = turnlog("config", "show", "--json")
    assert shown.json["settings"]["log"] == {
        "value": "kafka://me:***@host/topic",
        "origin": "environment",
    }
    assert turnlog.good("config", "show", "--json").json["settings"]["log"]["origin"] == "--log"


def test_the_log_is_chosen_by_the_environment_and_the_config_file(
    turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    turnlog.write(rewound())
    monkeypatch.setenv("TURNLOG_LOG", turnlog.url)
    assert len(turnlog("sessions", "--json").json) == 1
    monkeypatch.delenv("TURNLOG_LOG")
    (turnlog.folder / "c.toml").write_text(f'log = "{turnlog.url}"')
    monkeypatch.setenv("TURNLOG_CONFIG", "c.toml")
    assert len(turnlog("sessions", "--json").json) == 1


@pytest.mark.parametrize("seed", range(8))
def test_every_command_bears_any_history(turnlog: Caller, seed: int) -> None:
    turnlog.write(random_session(seed, "one", 80), random_session(seed + 100, "two", 40))
    for arguments in (
        ["sessions"],
        ["show", "one"],
        ["show", "one", "--surface", "--state", "--operations", "-v"],
        ["events", "two"],
        ["fsck", "-v"],
        ["recover", "--dry-run"],
        ["recover", "--dry-run", "--for", "host"],
        ["verify"],
    ):
        done = turnlog.on(*arguments)
        assert done.status == (1 if arguments[0] == "fsck" else 0), done
        assert "unexpected" not in done.err
        if arguments[0] == "events":
            assert len(turnlog.good(*arguments, "--json").rows) == len(done.out.splitlines())
        else:
            assert turnlog.on(*arguments, "--json").json is not None
