"""What a host sees of its session while something waits to be written."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.unit.host.scene import AMBIENT, MoodyLog, calls, host, steps
from turnlog.core.errors import Fenced
from turnlog.host import Tool, ToolCall
from turnlog.host import link as link_module
from turnlog.owner.guest import queue_input, request_abort, write_guest
from turnlog.owner.owner import claim


async def _nothing(call: ToolCall) -> str:
    return call.call_id


async def test_what_others_write_is_seen_while_something_waits() -> None:
    log = MoodyLog()
    async with host(log, window_s=60) as session:
        await session.set_extension("note", 1)
        assert session.pending() == []
        await write_guest(log, "s", [queue_input("hello", AMBIENT)], writer="g", ambient=AMBIENT)
        assert len(session.pending()) == 1
        assert session.extension("note") == 1
        await steps(50)  # it is told what was written before it is closed


async def test_an_abort_request_is_seen_although_the_operation_waits_to_be_changed() -> None:
    log = MoodyLog()
    async with host(log, Tool("t", _nothing), window_s=60) as session, session.turn("go") as turn:
        async with turn.attempt("model") as attempt:
            await attempt.finish(calls("t"))
        assert turn.plan()[-1]["do"] != "finish"
        asked = request_abort(turn.operation, AMBIENT)
        await write_guest(log, "s", [asked], writer="g", ambient=AMBIENT)
        assert turn.plan()[-1]["outcome"] == "aborted"
        await turn.finish("aborted")


async def test_who_finds_the_session_taken_is_told_by_which_epoch() -> None:
    log = MoodyLog()
    with suppress(Fenced):
        async with host(log, window_s=60) as session:
            await session.set_extension("note", 1)
            await claim(log, "s", tables=log.tables, host="h2", reason="takeover", ambient=AMBIENT)
            session.view()  # before the tail has told of it
            with pytest.raises(Fenced, match="epoch 2 of another claim"):
                session.link.check()


async def test_each_waiting_event_is_folded_once_and_none_is_kept_when_it_is_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, folded = MoodyLog(), []
    add = link_module.Provisional._add

    def counted(self: link_module.Provisional, event: object) -> None:
        folded.append(event)
        add(self, event)

    monkeypatch.setattr(link_module.Provisional, "_add", counted)
    async with host(log, window_s=60) as session:
        for value in range(10):
            await session.set_state({"value": value})
            assert session.state == {"value": value}
        assert len(folded) == 10
        await session.flush()
        assert session.link._layer is None
        assert session.state == {"value": 9}
        assert len(folded) == 10
