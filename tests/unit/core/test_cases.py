"""Faults that others shipped, as far as the pure core answers them: one test per case's number."""

from __future__ import annotations

import math
from itertools import permutations
from random import Random
from typing import Any

import orjson
import pytest

from tests.story import (
    Story,
    accepted,
    assistant,
    attempted,
    branch,
    claimed,
    event,
    fact,
    finished,
    forge,
    person,
    result,
    settled,
    state,
    summary,
    t1,
    text,
    used,
    user,
)
from turnlog.core.errors import SchemaError, TooLarge
from turnlog.core.fold import fold
from turnlog.core.frames import Frame, Header, Record, decode, seal
from turnlog.core.rows import Entry, Head
from turnlog.core.text import well_formed_part

HEADER = Header("s", "c", 1, 1, "h")


def chain(*ids: str) -> Story:
    story = Story().begin("first")
    for id_, parent in zip(ids, (None, *ids), strict=False):
        story.own(user(id_, parent))
    return story


def reloaded(story: Story) -> Story:
    """The same log, folded from nothing."""
    again = Story(story.session, story.records)
    assert again.rows == story.rows
    return again


# ---- 1: the second compaction loses the first one's kept tail ----------------------------------


def hidden(story: Story) -> set[str]:
    """Messages on the path that are neither on the surface nor covered by a summary on it."""

    def covers(row: Entry) -> set[int]:
        if row.replaces is None:
            return {row.number}
        before = story.view.surface(row.parent)
        first, last = (before.index(node) for node in row.replaces)
        spans = (covers(story.view.entry(node)) for node in before[first : last + 1])
        return {row.number}.union(*spans)

    seen = set().union(*(covers(story.view.entry(node)) for node in story.view.surface()))
    path = story.view.path()
    return {row.id for row in path if row.kind == "message" and row.number not in seen}


def test_case_01_a_second_compaction_keeps_the_tail_that_the_first_one_kept() -> None:
    story = chain("m1", "m2", "m3", "m4")
    story.own(summary("compact1", "m4", "m1", "m2"), user("m5", "compact1"))
    assert story.surface() == ["compact1", "m3", "m4", "m5"]
    # built only from entries after compact1, it can name nothing else
    story.own(summary("compact2", "m5", "m3", "m4", prepared_at="m5"))
    assert story.surface() == ["compact1", "compact2", "m5"]
    assert hidden(story) == set()
    story.own(summary("compact3", "compact2", "compact1", "compact2"))
    assert story.surface() == ["compact3", "m5"]
    assert hidden(story) == set()


def test_case_01_a_compaction_whose_parent_is_elsewhere_hides_nothing() -> None:
    story = chain("m0", "m1", "m2", "m3", "m4", "m5")
    story.own(summary("compact2", "m0", "m0", "m0"))
    assert story.voids() == {"compact2": "not_at_leaf"}
    assert story.path == story.surface() == ["m0", "m1", "m2", "m3", "m4", "m5"]
    assert hidden(story) == set()


def test_case_01_the_invariant_for_any_number_of_compactions() -> None:
    random = Random(1)
    story = chain("m0")
    for number in range(60):
        surface = [id_ for id_ in story.surface() if id_ is not None]
        first, last = random.choice(surface), random.choice(surface)
        parent = random.choice([story.leaf, story.leaf, random.choice(surface)])
        story.own(summary(f"k{number}", parent, first, last), user(f"m{number + 1}", story.leaf))
        assert hidden(story) == set()
    assert 10 < story.counts["voids"] < 50, "valid and void ones both"


# ---- 3: dangling parents -----------------------------------------------------------------------


def test_case_03_a_parent_that_was_never_written_is_bridged_shown_and_counted() -> None:
    story = chain("m1", "m2")
    story.own(user("m4", "m3"), user("m5", "m4"))
    for seen in (story, reloaded(story)):
        assert seen.path == seen.surface() == ["m1", "m2", "m4", "m5"], "nothing is truncated"
        assert seen.damage() == ["dangling_parent"]
        assert list(seen.head.missing_parents) == ["m3"]
        assert seen.entry("m4").declared == "m3"


def test_case_03_the_gap_is_cleared_when_the_parent_arrives_later() -> None:
    story = chain("m1", "m2")
    story.own(user("m4", "m3"), user("m5", "m4"))
    story.own(user("m3", "m2"))
    assert story.damage() == []
    assert story.path == ["m1", "m2", "m4", "m5"]
    assert story.leaf == "m5"
    story.own(user("m6", "m5"))
    assert story.path == ["m1", "m2", "m4", "m5", "m6"]


def test_case_03_entries_in_any_order_lose_nothing_and_end_without_damage() -> None:
    entries = [user("m1", None), user("m2", "m1"), user("m3", "m2"), user("m4", "m3")]
    for order in permutations(entries):
        story = Story().begin("first")
        for new in order:
            story.own(new)
        assert story.counts["entries"] == 4
        assert story.head.missing_parents == {}
        assert story.damage() == [], [new.id for new in order]


# ---- 4: cycles and duplicate ids ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "path", "damage"),
    [
        ([("x", "y"), ("y", "x")], ["x"], ["cycle"]),
        ([("x", "x")], ["x"], ["dangling_parent"]),
        ([("x", "x"), ("z", "x")], ["x", "z"], ["dangling_parent"]),
        ([("x", None), ("y", "x"), ("x", "y")], ["x", "y"], ["conflict"]),
        ([("x", "z"), ("y", "x"), ("z", "y"), ("w", "z")], ["x", "y", "z", "w"], ["cycle"]),
    ],
)
def test_case_04_a_cyclic_session_loads_as_far_as_it_can_flagged(
    entries: list[tuple[str, str | None]], path: list[str], damage: list[str]
) -> None:
    story = Story().begin("first")
    for id_, parent in entries:
        story.own(user(id_, parent))
    for seen in (story, reloaded(story)):
        assert seen.path == path
        assert sorted(seen.damage()) == damage
        for row in seen.view.rows("entries"):
            assert len(seen.view.path(row.number)) <= len(entries)


def test_case_04_the_first_write_of_an_id_wins() -> None:
    story = chain("x", "y")
    story.own(user("x", None))
    assert (story.counts["duplicates"], story.damage()) == (1, [])
    position = story.own(user("x", "y"))
    assert story.quarantined() == [(position, 0, "fold")]
    assert (story.path, story.damage()) == (["x", "y"], ["conflict"])


# ---- 5: navigation that does not stick ---------------------------------------------------------


def test_case_05_a_navigation_sticks_though_nothing_follows_it() -> None:
    story = chain("m1", "m2", "m3")
    story.own(branch("nav", "m1", "m3"))
    for seen in (story, reloaded(story)):
        assert (seen.leaf, seen.surface()) == ("nav", ["m1"])


def test_case_05_an_abandoned_branch_stays_abandoned_from_a_snapshot_on() -> None:
    story = chain("m1", "m2", "m3")
    story.own(branch("nav", "m1", "m3"), user("m4", "nav"))
    snapshot = dict(story.rows)
    story.own(summary("k", "m4", "m1", "m4"), user("m5", "k"))
    # folding goes on from rows alone: of the log only what came after the snapshot is needed
    rows = snapshot
    for position, record in enumerate(story.records[-1:], len(story.records)):
        for key, row in fold(decode(record), position, rows).items():
            rows[key] = row
            if row is None:
                del rows[key]
    assert rows == story.rows
    assert story.surface() == ["k", "m5"]
    assert "m2" not in story.path


def test_case_05_moving_off_a_branch_undoes_its_state() -> None:
    story = chain("m1", "m2")
    story.own(state("s", "m2", k=1), user("m3", "s"))
    story.own(branch("nav", "m1", "m3"))
    for seen in (story, reloaded(story)):
        assert seen.state == {}
    story.own(branch("back", "m3", "nav"))
    for seen in (story, reloaded(story)):
        assert seen.state == {"k": 1}


def test_case_05_a_crash_in_mid_rewind_leaves_either_leaf_and_no_mixture() -> None:
    story = chain("m1", "m2", "m3")
    story.own(accepted("n", kind="navigation"))
    assert (story.leaf, story.verdict("n").name) == ("m3", "ready")
    story.own(branch("nav", "m1", "m3", operation="n"))
    assert (story.leaf, story.verdict("n").name) == ("nav", "terminal")
    assert story.surface() == ["m1"]


# ---- 7: answered by recovery, yet run again ----------------------------------------------------


def test_case_07_an_answer_by_recovery_settles_and_nothing_runs_again() -> None:
    story = Story().called("c1")
    story.claim("recovery", reason="recovery")
    closer = result("r1", "a1", "c1", dispatch="d1", status="error", settled_by="recovery")
    story.own(closer, finished("op", "interrupted"))
    assert (story.dispatch("d1").status, story.dispatch("d1").settled_by) == ("error", "recovery")
    for executor in ("host", "consumer"):
        assert story.plan(executor) == [], "one definition of settled for all"
    # a host that does it all the same
    story.claim("host")
    story.own(t1("d1", "op", "a1", "r1", try_=2))
    assert story.corruption() == ["after_finished", "t1_repeated"]
    story.own(result("r1-again", "r1", "c1", dispatch="d1"))
    row = story.dispatch("d1")
    assert row.status == "error", "the first terminal answer wins"
    assert [item["event"] for item in row.evidence] == ["r1-again"]
    assert story.surface() == ["u1", "a1", "r1"]


def test_case_07_recovery_run_twice_adds_nothing() -> None:
    story = Story().called("c1")
    story.claim("recovery")
    closers = (
        result("r1", "a1", "c1", dispatch="d1", status="unknown", settled_by="recovery"),
        finished("op", "interrupted"),
    )
    story.own(*closers)
    before = story.dispatch("d1"), story.operation("op"), story.leaf, story.surface()
    story.claim("recovery again")
    story.own(*closers)
    assert (story.dispatch("d1"), story.operation("op"), story.leaf, story.surface()) == before
    assert story.counts["evidence"] == 0


# ---- 8: call ids are not unique ----------------------------------------------------------------


def test_case_08_the_same_call_id_in_two_turns() -> None:
    story = Story().begin("first")
    parent = None
    for turn in ("1", "2"):
        op, u, a, r, d = (name + turn for name in ("op", "u", "a", "r", "d"))
        story.own(user(u, parent), accepted(op, u))
        story.own(assistant(a, u, "call_0"))
        story.own(t1(d, op, a, r, call_id="call_0"))
        story.own(result(r, a, "call_0", dispatch=d), finished(op))
        parent = r
    assert story.path == ["u1", "a1", "r1", "u2", "a2", "r2"]
    assert [item["entry"] for item in story.view.context()] == story.path
    assert {row.status for row in story.view.rows("dispatches")} == {"ok"}


def test_case_08_two_calls_with_one_id_in_one_message() -> None:
    story = Story().called("call_0", "call_0")
    story.own(t1("d2", "op", "a1", "r2", call_index=1, call_id="call_0"))
    assert [row.call_index for row in story.view.rows("dispatches")] == [0, 1]
    story.own(result("r2", "a1", "call_0", dispatch="d2"))
    assert (story.dispatch("d1").status, story.dispatch("d2").status) == ("open", "ok")
    story.own(result("r1", "a1", "call_0", dispatch="d1"))
    assert [item["entry"] for item in story.view.context()] == ["u1", "a1", "r1", "r2"]


def test_case_08_a_result_that_answers_nothing_open_is_kept_off_the_surface() -> None:
    story = Story().called("call_0")
    story.own(result("r1", "a1", "call_0", dispatch="d1"))
    story.own(result("again", "r1", "call_0", dispatch="d1"))
    story.own(result("stray", "r1", "call_0", dispatch="nobody"))
    assert story.voids() == {"again": "late_result", "stray": "unknown_dispatch"}
    assert story.surface() == ["u1", "a1", "r1"]


# ---- 10: two hosts, one session ----------------------------------------------------------------


def test_case_10_of_two_hosts_the_one_whose_claim_won_is_applied() -> None:
    story = chain("m6", "m7")
    before = story.pen
    # both read epoch 1; H2 claims first
    story.guest(claimed("H2", 1, host="h2"))
    story.guest(claimed("H1", 1, host="h1"))
    h2, h1 = {"claim": "H2", "epoch": 2}, {"claim": "H1", "epoch": 2}
    story.own(user("m8-h1", "m7"), **h1, seq=1)
    story.own(user("m8-h2", "m7"), **h2, seq=1)
    story.own(user("m9-h1", "m8-h1"), **h1, seq=2)
    story.own(user("m9-old", "m7"), **before, seq=9)
    assert story.path == ["m6", "m7", "m8-h2"]
    assert [row.stage for row in story.quarantine()] == ["fold", "fold"]
    assert story.counts["fenced"] == 1
    assert story.damage() == [], "never a load failure, and no damage to the owner's session"
    assert reloaded(story).leaf == "m8-h2"


def test_case_10_the_same_seq_again_is_a_duplicate_or_a_conflict() -> None:
    story = chain("m7")
    same = story.sealed(user("m8", "m7"), seq=3)
    story.put(same)
    story.put(same)
    story.own(user("m8-other", "m7"), seq=3)
    assert story.counts["duplicates"] == 1
    assert story.damage() == ["seq_conflict"]
    story.own(user("m9", "m8"), seq=4)
    assert story.path == ["m7", "m8", "m9"]


# ---- 11: order taken from clocks ---------------------------------------------------------------


def busy() -> Story:
    """A history with something of everything."""
    story = Story().called("c1", "c2", effect="idempotent")
    story.own(t1("d2", "op", "a1", "r2", call_index=1, call_id="c2"))
    story.own(result("r2", "a1", "c2", dispatch="d2"), used("at1", "op", input=7))
    former = story.pen
    story.claim("second")
    story.own(t1("d1", "op", "a1", "r1", effect="idempotent", try_=2))
    story.own(result("r1", "a1", "c1", dispatch="d1", status="unknown"), fact("title", "T"))
    story.own(settled("d1", "ok"), **former, seq=90)
    story.own(state("s1", "r1", k=1), summary("k", "s1", "u1", "r2"), user("x", "lost"))
    story.own(branch("n", "s1", "x"), user("u2", "n"), finished("op"), accepted("op2", "u2"))
    story.guest(person("d1", "not_started"), fact("mood", 1), event("input_queued", **queue()))
    story.own(attempted("at2", "op2", "a2"), used("at2", "op2", input=1, cost_usd="0.5"))
    return story


def queue() -> dict[str, Any]:
    return {"input": "i", "entry": "u9", "content": text("later")}


def retimed(record: Record, times: Any) -> Record:
    raw = orjson.loads(record.body)
    for item in raw["events"]:
        item["time"] = times()
    return record._replace(body=orjson.dumps(raw))


@pytest.mark.parametrize("seed", range(5))
def test_case_11_timestamps_are_labels(seed: int) -> None:
    """Ahead, behind, equal, backwards, or absent: nothing but the labels changes."""
    random = Random(seed)
    story = busy()
    choices = ["2026-01-01T12:10:00Z", "2026-01-01T12:00:00Z", "1970-01-01T00:00:00Z", "?", None]
    shuffled = Story(
        "s", [retimed(record, lambda: random.choice(choices)) for record in story.records]
    )

    def untimed(rows: dict[Any, Any]) -> dict[Any, Any]:
        head: Head = rows[("sessions", "s")]
        return {**rows, ("sessions", "s"): head._replace(first_time=None, last_time=None)}

    assert untimed(shuffled.rows) == untimed(story.rows)
    assert shuffled.view.context() == story.view.context()
    for id_ in ("op", "op2"):
        assert shuffled.verdict(id_) == story.verdict(id_)


# ---- 13: half characters and NULs --------------------------------------------------------------


def test_case_13_text_is_made_well_formed_once_and_says_so() -> None:
    part = well_formed_part({"type": "text", "text": "ok \ud83d"})
    assert part == {"type": "text", "text": "ok \ufffd", "normalised": True}
    story = chain("m1")
    story.own(user("m2", "m1", content=[part]))
    assert story.view.context()[-1]["content"] == [part]
    with pytest.raises(SchemaError, match="half a character"):
        story.own(user("m3", "m2", "ok \ud83d"))
    assert story.leaf == "m2"


def test_case_13_nul_is_legal_and_comes_back() -> None:
    story = chain("m1")
    story.own(result("r", "m1", "c1", content=text("W\x00s\x00l\x00")))
    assert story.view.data(story.entry("r"))["content"] == text("W\x00s\x00l\x00")
    story.own(user("id with \x00", "r"), fact("name \x00", "\x00"))
    assert story.leaf == "id with \x00"


def test_case_13_one_bad_event_never_stops_a_partition() -> None:
    story = chain("m1")
    for body in (
        b'{"session":"s","events":[{"type":"message","data":{"text":"\\ud83d"}}]}',
        b'{"session":"s","x":NaN,"events":[]}',
        b'{"session":"s","x":\xb2,"events":[]}',
        b'{"session":"s","x":' + b"[" * 100_000,
        b"",
    ):
        story.seq += 1
        story.put(Record("s", Header("s", **story.pen, seq=story.seq, writer=None), body))
    assert story.damage() == ["unreadable"] * 5
    story.own(user("m2", "m1"))
    assert story.path == ["m1", "m2"]


def test_case_13_what_another_encoder_wrote_is_read_or_quarantined() -> None:
    """An integer beyond 64 bits becomes a float on reading: where it must count, it is a fault."""
    story = chain("m1")
    big = 2**70
    raw = b'{"type":"%s","v":1,"id":"%s","time":null,"data":%s}'
    header = {**story.pen, "seq": 3}
    start = orjson.dumps({"session": "s", **header, "writer": None})[:-1]
    events = [
        raw % (b"fact", b"f", b'{"name":"n","value":%d}' % big),
        raw % (b"session_created", b"c", b'{"spawned_by":{"call_index":%d}}' % big),
    ]
    body = start + b',"events":[' + b",".join(events) + b"]}"
    story.put(Record("s", Header("s", **header, writer=None), body))
    assert story.row("facts", "n").value == float(big)
    assert story.damage() == ["malformed"]


# ---- 14: too big -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([user("m", None, "x" * 300_000)], "event 'm' (message): content[0] has 300,0"),
        ([fact("n", "x" * 950_000, "f")], "largest event is 'f' (fact) with 950,"),
        ([fact("n", 1)] * 1_025, "1 to 1024 events, not 1025"),
        ([state("s", None, n=2**64)], "event 's' (app_state): data.value.n: the integer"),
        ([state("s", None, n=[math.nan])], "event 's' (app_state): data.value.n[0]: nan"),
    ],
)
def test_case_14_what_does_not_fit_raises_before_anything_is_written(
    events: list[Any], words: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        seal(HEADER, events)
    assert "session 's'" in str(caught.value)
    assert words in str(caught.value)
    assert isinstance(caught.value, TooLarge) is not ("data." in words)


def test_case_14_a_compaction_costs_the_same_however_much_it_replaces() -> None:
    """It stores ids and a summary, never history; and what follows it rewrites small rows."""
    sizes = []
    for count in (3, 300):
        ids = [f"m{number:03}" for number in range(count)]
        story = Story().begin("first")
        story.own(*(user(id_, p) for id_, p in zip(ids, [None, *ids], strict=False)))
        new = summary("k", ids[-1], "m000", ids[-1])
        story.own(new)
        assert story.surface() == ["k"]
        sizes.append(len(orjson.dumps(new.data)))
        changes = fold(decode(story.sealed(user("after", "k"), seq=4)), 99, story.rows)
        rows = [list(row) for key, row in changes.items() if key[0] != "ids" and row is not None]
        assert len(orjson.dumps(rows)) < 4_000
    assert sizes[0] == sizes[1]


def test_case_14_a_turn_with_a_large_result_goes_as_a_reference() -> None:
    story = Story().called("c1")
    blob = {"type": "blob", "digest": "d", "size": 5_000_000, "media_type": "t", "preview": "x"}
    story.own(event("blob_part", digest="d", index=0, of=1, bytes="QUJD"))
    story.own(result("r1", "a1", "c1", dispatch="d1", content=[blob]))
    assert story.view.context()[-1]["content"] == [blob]


# ---- 26: zombies -------------------------------------------------------------------------------


def test_case_26_a_zombies_work_is_kept_as_evidence_and_changes_nothing() -> None:
    story = Story().called("c1")
    h1 = story.pen
    story.claim("H2", host="h2", reason="recovery")
    story.own(
        result("r1", "a1", "c1", dispatch="d1", status="error", settled_by="recovery"),
        finished("op", "interrupted"),
    )
    before = story.head
    zombie = result("r1", "a1", "c1", dispatch="d1", status="ok")
    story.own(zombie, **h1, seq=7)
    story.own(finished("op", "completed"), user("more", "r1"), **h1, seq=8)
    row = story.dispatch("d1")
    assert (row.status, story.operation("op").outcome) == ("error", "interrupted")
    [piece] = row.evidence
    assert (piece["status"], piece["fenced"], piece["claim"]) == ("ok", True, h1["claim"])
    assert story.counts["fenced"] == 2
    assert (story.leaf, story.damage(), story.corruption()) == ("r1", [], [])
    assert not story.has("more")
    assert story.head.digest == before.digest


def test_case_26_every_acquisition_gets_a_higher_epoch_also_for_the_same_host() -> None:
    story = Story()
    epochs = []
    for number in range(4):
        story.claim(f"claim-{number}", host="the same")
        epochs.append(story.head.epoch)
    assert epochs == [1, 2, 3, 4]
    story.own(user("old", None), claim="claim-2", epoch=3, seq=1)
    assert not story.has("old")


# ---- 28: folding twice -------------------------------------------------------------------------


def test_case_28_a_record_delivered_twice_changes_nothing() -> None:
    story = Story().called("c1")
    story.own(used("at1", "op", input=10))
    rows = dict(story.rows)
    for position in range(1, len(story.records) + 1):
        story.put(story.records[position - 1], position)
    assert story.rows == rows
    assert story.head.usage["input"] == 10


def test_case_28_an_early_event_delivered_again_does_not_reset_a_later_state() -> None:
    story = chain("m1")
    position = story.own(state("s1", "m1", k=1))
    story.own(state("s2", "s1", k=2), fact("title", "later"))
    story.put(story.records[position - 1], position)
    assert story.state == {"k": 2}


def test_case_28_a_log_whose_every_record_was_written_twice_counts_everything_once() -> None:
    """A producer's retry, or a log that was copied twice: other positions, the same frames."""
    story = busy()
    doubled = Story("s")
    for record in story.records:
        doubled.put(record)
        doubled.put(record)
    assert doubled.head.usage == story.head.usage
    assert doubled.head.damage == tuple(
        (kind, 2 * position - 1, detail) for kind, position, detail in story.head.damage
    )
    for name in ("entries", "messages", "voids", "evidence", "jumps"):
        assert doubled.counts[name] == story.counts[name]
    assert (doubled.path, doubled.surface(), doubled.state) == (
        story.path,
        story.surface(),
        story.state,
    )
    assert doubled.corruption() == story.corruption()
    assert doubled.view.context() == story.view.context()


def test_case_28_the_same_log_at_other_positions_gives_the_same_session() -> None:
    story = busy()
    moved = Story("s")
    for number, record in enumerate(story.records):
        moved.put(record, 1_000 + 7 * number)
    assert (moved.path, moved.surface(), moved.state) == (story.path, story.surface(), story.state)
    assert moved.head.counts == story.head.counts
    assert moved.head.usage == story.head.usage


# ---- 29: old events, new reader ----------------------------------------------------------------


def test_case_29_missing_optional_fields_have_their_defaults() -> None:
    story = chain("m1", "m2")
    compaction = {
        "parent": "m2",
        "kind": "summary",
        "replaces": {"first": "m1", "last": "m1"},
        "content": [],
    }
    story.own(event("compaction", "k", **compaction))
    assert story.surface() == ["k", "m2"]
    assert story.damage() == []


def test_case_29_unknown_types_advance_the_position_and_stall_nothing() -> None:
    story = chain("m1")
    position = story.own(event("zzz", what="ever"), event("node", "z", parent="m1"))
    assert story.head.position == position
    story.own(user("m2", "z"))
    assert story.path == ["m1", "z", "m2"]
    frame = decode(story.records[position - 1])
    assert isinstance(frame, Frame)
    assert frame.events[0].data == {"what": "ever"}, "it can be shown as it is"


def test_case_29_a_newer_version_marks_the_session_and_the_rest_goes_on() -> None:
    story = chain("m1")
    story.own(user("m2", "m1")._replace(v=2, data={"parent": "m1", "everything": "else"}))
    story.own(user("m3", "m2"))
    assert story.head.newer
    assert story.path == ["m1", "m2", "m3"]
    assert story.damage() == []


def test_case_29_an_envelope_for_one_session_with_a_body_for_another_moves_neither() -> None:
    s1 = chain("m1")
    body = seal(Header("S2", "c", 1, 1, None), [user("x", None)]).record.body
    header = Header("s", s1.claim_id, 1, 3, None)
    s1.put(Record("s", header, body))
    assert s1.damage() == ["unreadable"]
    assert not s1.has("x")
    s1.put(Record("s", Header("S2", "c", 1, 1, None), body))
    assert s1.counts["quarantined"] == 2
    assert s1.damage() == ["unreadable"], "no frame in force: no damage"
    assert [key[1] for key in s1.rows if key[0] == "sessions"] == ["s"]
    s2 = Story("S2").claim("c")
    s2.put(Record("S2", header, body))
    assert (s2.head.seq, s2.damage()) == (0, [])


def test_case_29_events_of_a_malformed_kind_do_not_lose_the_session() -> None:
    story = chain("m1")
    story.put(forge(Header("s", **story.pen, seq=3, writer=None), {"type": "message", "v": 1}))
    story.seq = 3
    story.own(user("m2", "m1"))
    assert (story.path, story.damage()) == (["m1", "m2"], ["malformed"])
