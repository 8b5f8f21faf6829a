"""Frames and ownership as the fold applies them: design, 4 and rule 10; RULES, "Frames"."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.story import (
    Story,
    abort,
    accepted,
    assistant,
    cancelled,
    claimed,
    created,
    custom,
    decided,
    event,
    fact,
    finished,
    parked,
    person,
    queued,
    released,
    rerun_allowed,
    result,
    settled,
    state,
    user,
)
from turnlog.core.events import GUEST_TYPES, TYPES
from turnlog.core.fold import ENTRIES, GUEST_RECORDS, RECORDS, fold
from turnlog.core.frames import Header, Record, decode, digest_of, seal
from turnlog.core.rows import Head

GUEST = Header("s", None, None, None, "guest")


def begun() -> Story:
    """A session under claim `first`, epoch 1, with one entry; the next seq is 3."""
    story = Story().begin("first")
    story.own(user("u1", None))
    return story


def succeeded() -> Story:
    """The same, taken over by claim `second`, epoch 2."""
    return begun().claim("second")


def unreadable(story: Story, **header: Any) -> Record:
    """A record with the header that the owner's next frame would have, and a broken body."""
    fields = {"claim": story.claim_id, "epoch": story.epoch, "seq": story.seq + 1, "writer": "h"}
    return Record("s", Header("s", **{**fields, **header}), b'{"broken')


# ---- the fold itself ---------------------------------------------------------------------------


def test_every_known_type_has_its_rule() -> None:
    kept_by_no_table = {"context_set", "chunk"}
    assert set(ENTRIES) | set(RECORDS) | kept_by_no_table | {"session_claimed"} == set(TYPES)
    assert set(GUEST_RECORDS) | {"session_claimed"} == GUEST_TYPES


def test_rule_1_a_frame_at_or_below_the_heads_position_changes_nothing() -> None:
    story = begun()
    before = dict(story.rows)
    for position, record in enumerate(story.records, 1):
        assert fold(decode(record), position, story.rows) == {}
    other = decode(story.sealed(user("else", "u1"), seq=3))
    assert fold(other, len(story.records), story.rows) == {}
    assert fold(other, 0, story.rows) == {}
    assert story.rows == before
    assert fold(other, len(story.records) + 1, story.rows) != {}


def test_positions_may_have_holes() -> None:
    story = Story()
    story.claim("first")
    for position, name in ((5, "a"), (100, "b"), (10**12, "c")):
        story.seq += 1
        story.put(story.sealed(user(name, None)), position)
        assert story.head.position == position
        assert story.entry(name).position == position
    assert story.damage() == []


def test_the_fold_is_pure_and_never_changes_a_row_in_place() -> None:
    story = Story().called("c1", "c2", effect="idempotent")
    story.own(result("r1", "a1", "c1", dispatch="d1"), queued("i", "later"), fact("title", "T"))
    story.claim()
    frames = [
        decode(story.sealed(state("s1", "r1", k=1), seq=1)),
        decode(story.sealed(user("later", "u1"), finished("op"), seq=1)),
        decode(story.sealed(settled("d1", "error"), parked("op"), seq=2)),
        decode(story.forged("nonsense", user("u1", "other"), seq=1)),
    ]
    rows = story.rows
    snapshot = deepcopy(rows)
    for frame in frames:
        first = fold(frame, 99, rows)
        assert rows == snapshot
        assert fold(frame, 99, rows) == first
        for key, row in first.items():
            if key in rows:
                assert row is not rows[key]


def test_the_head_row_is_the_last_of_the_changes() -> None:
    story = begun()
    frame = decode(story.sealed(user("u2", "u1"), state("s1", "u2", k=1), fact("x", 1), seq=3))
    assert list(fold(frame, 50, story.rows))[-1] == ("sessions", "s")


# ---- records that cannot be read: rule 10 ------------------------------------------------------


def test_rule_10_an_unreadable_body_under_a_header_in_force_is_damage_and_its_seq_counts() -> None:
    story = begun()
    position = story.put(unreadable(story))
    story.seq += 1
    [row] = story.quarantine()
    assert (row.position, row.event_index, row.stage, row.damage) == (position, -1, "decode", True)
    assert row.digest == digest_of(b'{"broken')
    assert "the body is no JSON" in row.reason
    assert [item[:2] for item in story.head.damage] == [("unreadable", position)]
    assert story.head.seq == 3
    story.own(user("u2", "u1"))
    assert story.path == ["u1", "u2"]
    assert story.damage() == ["unreadable"]


def test_rule_10_an_unreadable_frame_may_leave_a_gap_before_it() -> None:
    story = begun()
    story.put(unreadable(story, seq=5))
    assert story.damage() == ["gap", "unreadable"]
    assert story.head.seq == 5


def test_an_unreadable_frame_again_is_a_duplicate_and_with_other_bytes_a_conflict() -> None:
    story = begun()
    story.put(unreadable(story))
    story.put(unreadable(story))
    assert story.counts["duplicates"] == 1
    assert story.counts["quarantined"] == 1
    position = story.put(unreadable(story)._replace(body=b"["))
    assert story.damage() == ["unreadable", "seq_conflict"]
    assert story.quarantined()[-1] == (position, -1, "decode")
    assert story.head.seq == 3


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Record("s", GUEST, b"{"), "no JSON"),
        (Record("s", Header("s", "first", 1, 3, "h"), b"{"), "no JSON"),
        (Record("s", Header("s", "second", 3, 1, "h"), b"{"), "not in force"),
        (Record("s", Header("s", "third", 2, 1, "h"), b"{"), "not in force"),
        (Record("s", Header("t", "second", 2, 1, "h"), b"{"), "filed under another session"),
        (
            Record("s", Header("t", "second", 2, 1, "h"), b'{"session":"t"}'),
            "filed under another session",
        ),
        (
            seal(Header("t", "second", 2, 1, "h"), [user("x", None)]).record._replace(session="s"),
            "filed under another session",
        ),
        (
            seal(Header("t", None, None, None, "h"), [claimed("x", 2)]).record._replace(
                session="s"
            ),
            "filed under another session",
        ),
    ],
)
def test_rule_10_a_record_that_speaks_for_nobody_in_force_is_quarantined_without_damage(
    record: Record, reason: str
) -> None:
    story = succeeded()
    before = story.head
    position = story.put(record)
    [row] = story.quarantine()
    assert (row.position, row.event_index, row.stage, row.damage) == (position, -1, "decode", False)
    assert reason in row.reason
    assert story.head.damage == ()
    after = story.head._replace(position=before.position, counts=before.counts)
    assert after == before, "nothing else changed"
    fenced = record.header == Header("s", "first", 1, 3, "h")
    assert story.counts["fenced"] == (1 if fenced else 0)


@pytest.mark.parametrize(
    "header", [None, Header("s", "second", 2, None, "h"), Header("s", None, 2, 1, "h")]
)
def test_rule_10_a_record_without_a_readable_header_is_damage(header: Header | None) -> None:
    story = succeeded()
    body = story.sealed(user("u2", "u1"), seq=1).body
    position = story.put(Record("s", header, body))
    assert story.quarantined() == [(position, -1, "decode")]
    assert story.quarantine()[0].damage
    assert story.damage() == ["no_header"]
    assert (story.head.seq, story.leaf) == (0, "u1")


def test_rule_10_the_partition_goes_on_after_what_cannot_be_folded() -> None:
    story = begun()
    broken = (Record("s", None, b""), Record("s", GUEST, b"\xff"), unreadable(story))
    for record in (*broken, Record("s", None, b"[]")):
        story.put(record)
    story.seq += 1
    story.own(user("u2", "u1"))
    assert story.leaf == "u2"


# ---- guest frames ------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", sorted(set(TYPES) - GUEST_TYPES))
def test_a_guest_frame_with_a_known_type_of_an_owner_is_quarantined_whole(type_: str) -> None:
    story = begun()
    before = story.head
    # malformed or not, and whatever stands beside it
    position = story.forge_guest(fact("title", "T"), {"type": type_, "v": 1, "id": "e", "data": {}})
    [row] = story.quarantine()
    assert (row.position, row.event_index, row.stage, row.damage) == (position, -1, "fold", False)
    assert type_ in row.reason
    assert story.head.title is None
    assert story.head.damage == before.damage == ()
    assert story.counts["events"] == before.counts["events"]


@pytest.mark.parametrize("by", ["host", "recovery", None])
def test_a_guest_may_settle_a_dispatch_for_a_person_only(by: str | None) -> None:
    story = Story().called()
    story.own(settled("d1", "unknown"))
    position = story.guest(settled("d1", "ok", settled_by=by), fact("title", "T"))
    assert story.quarantined() == [(position, -1, "fold")]
    assert story.dispatch("d1").status == "unknown"
    assert story.head.title is None
    assert story.damage() == []
    story.guest(person("d1", "ok"))
    assert story.dispatch("d1").status == "ok"


@pytest.mark.parametrize(
    "beside", [fact("title", "T"), event("zzz"), claimed("another", 1), user("u2", "u1")]
)
def test_a_claim_with_anything_beside_it_is_quarantined_with_its_whole_frame(beside: Any) -> None:
    for events in ((claimed("new", 1), beside), (beside, claimed("new", 1))):
        story = begun()
        position = story.guest(*events)
        assert story.quarantined() == [(position, -1, "fold")]
        assert (story.head.claim, story.head.title) == ("first", None)
        assert story.head.damage == ()
        assert story.counts["lost_claims"] == 0


def test_a_malformed_claim_claims_nothing_alone_or_not() -> None:
    story = begun()
    alone = story.forge_guest(claimed("", 1))
    beside = story.forge_guest(claimed("", 1), fact("title", "T"))
    assert story.quarantined() == [(alone, 0, "decode"), (beside, -1, "fold")]
    assert (story.head.claim, story.head.title, story.head.damage) == ("first", None, ())


def test_a_malformed_event_of_a_guest_is_quarantined_alone_and_is_no_damage() -> None:
    story = begun()
    position = story.forge_guest(
        fact("a", 1), fact("", 1), settled("", settled_by="host"), fact("b", 2)
    )
    assert story.quarantined() == [(position, 1, "decode"), (position, 2, "decode")]
    assert not any(row.damage for row in story.quarantine())
    assert story.damage() == []
    assert story.row("facts", "a").value == 1
    assert story.row("facts", "b").value == 2


def test_unknown_types_and_newer_versions_of_a_guest_only_advance_the_position() -> None:
    story = begun()
    before = story.head
    position = story.guest(
        event("zzz"),
        event("zzz", "node", parent="u1"),
        user("u2", "u1")._replace(v=2),
        fact("title", "T")._replace(v=2),
        claimed("x", 1)._replace(v=2),
        settled("d", settled_by="host")._replace(v=2),
    )
    assert story.head.position == position
    after = story.head._replace(position=before.position, counts=before.counts)
    assert after == before
    assert not story.has("node")
    assert story.quarantine() == []


def test_guests_write_before_the_session_begins() -> None:
    story = Story()
    story.guest(queued("i", "u1"), fact("mood", "good"))
    assert not story.head.listed
    assert story.input("i").status == "queued"
    story.begin()
    story.own(user("u1", None))
    assert story.input("i").status == "placed"
    assert story.row("facts", "mood").value == "good"
    assert story.head.listed


# ---- claims ------------------------------------------------------------------------------------


def test_a_claim_sets_claim_epoch_owner_and_reason_and_starts_at_seq_0() -> None:
    story = begun()
    story.own(released("first"))
    story.guest(claimed("second", 1, host="h2", reason="takeover"))
    head = story.head
    assert (head.claim, head.epoch, head.owner, head.reason) == ("second", 2, "h2", "takeover")
    assert (head.seq, head.digest, head.released) == (0, None, False)
    assert story.leaf == "u1"


def test_of_two_racing_claims_the_first_in_the_log_wins_and_the_other_is_counted() -> None:
    story = Story()
    story.guest(claimed("first", 0, host="h1"))
    story.guest(claimed("second", 0, host="h2"))
    assert (story.head.claim, story.head.epoch, story.head.owner) == ("first", 1, "h1")
    assert story.counts["lost_claims"] == 1
    assert story.damage() == []


def test_a_recovery_does_not_rob_a_host_that_still_writes() -> None:
    story = begun()
    story.guest(claimed("recovery", 1, expects_seq=1))
    assert story.head.claim == "first"
    story.guest(claimed("again", 1, expects_seq=2))
    assert story.head.claim == "again"


def test_a_claim_is_known_by_its_id_and_the_first_copy_counts() -> None:
    story = Story()
    story.guest(claimed("early", 1))
    story.claim("first")
    story.guest(claimed("early", 1))
    assert story.head.claim == "first"
    assert story.counts["lost_claims"] == 2


def test_a_claim_alone_does_not_list_a_session() -> None:
    story = Story().claim("first")
    assert not story.head.listed
    story.guest(fact("title", "T"))
    assert not story.head.listed


# ---- owner frames ------------------------------------------------------------------------------


def test_a_lower_epoch_is_fenced_kept_and_not_applied() -> None:
    story = succeeded()
    before = story.head
    for seq in (3, 1, 40):
        story.own(user(f"zombie-{seq}", "u1"), claim="first", epoch=1, seq=seq)
    assert story.counts["fenced"] == 3
    assert story.quarantine() == []
    after = story.head._replace(position=before.position, counts=before.counts)
    assert after == before
    assert not story.has("zombie-3")


@pytest.mark.parametrize(("claim", "epoch"), [("second", 3), ("other", 3), ("other", 2)])
def test_a_higher_epoch_or_another_claim_is_quarantined_without_damage(
    claim: str, epoch: int
) -> None:
    story = succeeded()
    before = story.head
    position = story.own(user("u2", "u1"), claim=claim, epoch=epoch, seq=1)
    [row] = story.quarantine()
    assert (row.position, row.event_index, row.stage, row.damage) == (position, -1, "fold", False)
    after = story.head._replace(position=before.position, counts=before.counts)
    assert after == before
    assert not story.has("u2")


def test_an_owner_frame_before_any_claim_is_quarantined() -> None:
    story = Story()
    position = story.own(user("u1", None), claim="c", epoch=1, seq=1)
    assert story.quarantined() == [(position, -1, "fold")]
    assert not story.head.listed
    assert story.damage() == []


def test_seq_one_above_the_last_applies() -> None:
    story = begun()
    story.own(user("u2", "u1"), seq=3)
    assert story.leaf == "u2"
    assert story.head.seq == 3
    assert story.damage() == []


def test_the_last_seq_with_the_same_digest_is_a_duplicate() -> None:
    story = begun()
    before = story.head
    story.put(story.records[-1])
    assert story.counts["duplicates"] == 1
    assert story.quarantine() == []
    assert story.head._replace(position=before.position, counts=before.counts) == before


def test_the_last_seq_with_another_digest_is_a_seq_conflict() -> None:
    story = begun()
    position = story.own(user("u1-other", None), seq=2)
    assert story.quarantined() == [(position, -1, "fold")]
    assert [item[:2] for item in story.head.damage] == [("seq_conflict", position)]
    assert story.quarantine()[0].damage
    assert not story.has("u1-other")
    assert story.head.seq == 2
    story.own(user("u2", "u1"), seq=3)
    assert story.leaf == "u2"


def test_a_seq_below_the_last_is_a_duplicate_whatever_it_holds() -> None:
    story = begun()
    story.own(user("u2", "u1"))
    story.own(user("else", "u1"), seq=2)
    story.own(user("else", "u1"), seq=1)
    assert story.counts["duplicates"] == 2
    assert story.damage() == []
    assert not story.has("else")


def test_a_jump_of_seq_is_a_gap_that_applies_and_is_damage() -> None:
    story = begun()
    position = story.own(user("u2", "u1"), seq=7)
    assert story.leaf == "u2"
    assert story.head.seq == 7
    assert story.head.damage == (("gap", position, "4 frame(s) missing before seq 7"),)
    story.own(user("u3", "u2"), seq=8)
    assert story.damage() == ["gap"]


def test_a_frame_that_was_skipped_is_a_duplicate_when_it_comes_late() -> None:
    story = begun()
    story.own(user("u3", "u1"), seq=4)
    story.own(user("u2", "u1"), seq=3)
    assert not story.has("u2")
    assert story.counts["duplicates"] == 1


def test_a_released_epoch_accepts_nothing_until_somebody_claims() -> None:
    story = begun()
    story.own(fact("title", "T"), released("first"), fact("cwd", "same frame"))
    assert story.head.released
    assert story.row("facts", "cwd").value == "same frame"
    story.own(user("u2", "u1"))
    assert not story.has("u2")
    assert story.counts["fenced"] == 1
    assert story.head.epoch == 1
    story.guest(fact("mood", "guests still write"))
    assert story.row("facts", "mood").value == "guests still write"
    story.claim("second")
    story.own(user("u2", "u1"))
    assert story.leaf == "u2"


@pytest.mark.parametrize("claim_event", [claimed("new", 1), claimed("", 1), claimed("first", 1)])
@pytest.mark.parametrize("alone", [True, False])
def test_a_claim_in_an_owner_frame_is_quarantined_with_its_whole_frame_and_its_seq_counts(
    claim_event: Any, alone: bool
) -> None:
    story = begun()
    position = story.forge(*(() if alone else (user("u2", "u1"),)), claim_event)
    assert story.quarantined() == [(position, -1, "fold")]
    assert [item[:2] for item in story.head.damage] == [("misplaced_claim", position)]
    assert (story.head.claim, story.head.epoch, story.head.seq) == ("first", 1, 3)
    assert not story.has("u2")
    story.own(user("u3", "u1"))
    assert story.leaf == "u3"
    assert story.damage() == ["misplaced_claim"]


def test_a_claim_of_a_newer_version_in_an_owner_frame_is_opaque() -> None:
    story = begun()
    story.own(claimed("new", 1)._replace(v=2), user("u2", "u1"))
    assert story.leaf == "u2"
    assert story.head.newer
    assert story.damage() == []


# ---- listing and creation ----------------------------------------------------------------------


def test_a_session_is_listed_from_its_first_applied_owner_frame() -> None:
    story = Story().claim("first")
    story.own(user("x", None), claim="other")
    assert not story.head.listed
    story.own(user("u1", None), seq=1)
    assert story.head.listed
    assert not story.head.created, "without session_created it has defaults, and that shows"
    assert (story.head.title, story.state) == (None, {})


@pytest.mark.parametrize("first", ["unreadable", "misplaced_claim"])
def test_a_frame_that_is_applied_but_quarantined_lists_the_session(first: str) -> None:
    story = Story().claim("first")
    if first == "unreadable":
        story.put(unreadable(story))
        story.seq += 1
    else:
        story.own(claimed("x", 1))
    assert story.head.listed
    story.own(created(title="late"))
    assert story.head.title is None
    assert not story.head.created
    assert story.damage() == [first, "late_created"]


# ---- malformed and newer events ----------------------------------------------------------------


def test_a_malformed_event_is_quarantined_alone_and_the_rest_of_its_frame_applies() -> None:
    story = begun()
    position = story.forge(
        user("u2", "u1"), user("u3", "u2", role="poet"), "no event", user("u4", "u2")
    )
    assert story.path == ["u1", "u2", "u4"]
    assert story.quarantined() == [(position, 1, "decode"), (position, 2, "decode")]
    assert [item[:2] for item in story.head.damage] == [("malformed", position)] * 2
    assert all(row.damage for row in story.quarantine())
    assert not story.has("u3")


def test_a_malformed_entry_does_not_count_for_its_id() -> None:
    story = begun()
    story.forge(user("u2", "u1", role="poet"))
    story.own(user("u2", "u1"))
    assert story.leaf == "u2"
    assert story.damage() == ["malformed"]


def test_a_malformed_parent_is_a_missing_parent() -> None:
    story = begun()
    story.forge(user("u2", "u1", role="poet"), user("u3", "u2"))
    assert story.entry("u3").declared == "u2"
    assert story.damage() == ["malformed", "dangling_parent"]


def test_a_newer_version_is_opaque_and_marks_the_session() -> None:
    story = begun()
    assert not story.head.newer
    story.own(
        user("u2", "u1")._replace(v=2),
        fact("title", "T")._replace(v=2),
        custom("c", "u2")._replace(v=9),
        user("u3", "c"),
    )
    assert story.head.newer
    assert story.path == ["u1", "u2", "c", "u3"]
    assert [story.entry(id_).kind for id_ in story.path] == [
        "message",
        "opaque",
        "opaque",
        "message",
    ]
    assert story.surface() == ["u1", "u3"]
    assert story.head.title is None
    assert story.damage() == []


def test_an_unknown_type_is_kept_and_does_not_mark_the_session() -> None:
    story = begun()
    story.own(event("zzz", what=1)._replace(v=5), event("node", "n", parent="u1"), event("n", "x"))
    assert not story.head.newer
    assert story.leaf == "n"
    assert story.entry("n").kind == "opaque"
    assert not story.has("x")
    assert story.head.position == len(story.records)
    assert story.damage() == []


# ---- bounds ------------------------------------------------------------------------------------


def test_damage_is_kept_up_to_256_and_then_counted() -> None:
    story = begun()
    for _ in range(2):
        story.forge(*(["no event"] * 130))
    assert len(story.head.damage) == 256
    assert story.overflow == {"damage": 4}
    assert story.counts["quarantined"] == 260


# ---- what a head counts ------------------------------------------------------------------------


def test_the_head_counts_frames_events_entries_and_messages() -> None:
    story = Story()
    story.claim("first")
    assert story.counts == {**Head("s").counts, "frames": 1, "events": 1}
    story.own(created(), user("u1", None), state("s1", "u1"), event("zzz"))
    story.guest(fact("a", 1), fact("b", 2))
    assert story.counts == {
        **Head("s").counts,
        "frames": 3,
        "events": 7,
        "entries": 2,
        "messages": 1,
    }
    story.put(story.records[1])  # a duplicate frame
    story.own(user("u1", None), user("u2", "s1"))  # a duplicate entry
    story.own(user("x", None), claim="other")  # not in force
    story.seq -= 1
    story.put(Record("s", None, b""))
    story.guest(claimed("late", 0))
    story.own(result("r", "u2", "c", dispatch="nobody"), user("u3", "u1"))
    counts = story.counts
    assert counts["frames"] == 9
    assert counts["entries"] == 5
    assert counts["messages"] == 3, "a void message is none"
    assert counts["duplicates"] == 2
    assert counts["lost_claims"] == 1
    assert counts["quarantined"] == 2
    assert counts["voids"] == 1
    assert counts["jumps"] == 1


def test_a_message_of_a_newer_version_is_no_message() -> None:
    story = begun()
    story.own(user("u2", "u1")._replace(v=2))
    assert story.counts["entries"] == 2
    assert story.counts["messages"] == 1


# ---- status and times --------------------------------------------------------------------------


def test_the_status_is_idle_open_or_requires_action() -> None:
    story = begun()
    assert story.head.status == "idle"
    story.own(user("u2", "u1"), accepted("op", "u2"))
    assert story.head.status == "open"
    story.own(parked("op"))
    assert story.head.status == "requires_action"
    story.own(finished("op"))
    assert story.head.status == "idle"


def test_first_and_last_time_are_copied_from_applied_entries_for_people() -> None:
    story = Story().claim("first")
    assert (story.head.first_time, story.head.last_time) == (None, None)
    story.own(created()._replace(time=None), user("u1", None)._replace(time=None))
    assert (story.head.first_time, story.head.last_time) == (None, None)
    story.own(user("u2", "u1")._replace(time="t2"), fact("x", 1)._replace(time="t3"))
    assert (story.head.first_time, story.head.last_time) == ("t2", "t2")
    story.own(user("u3", "u2")._replace(time="t1"), user("u4", "u3")._replace(time=None))
    story.guest(fact("y", 1)._replace(time="t9"))
    assert (story.head.first_time, story.head.last_time) == ("t2", "t1")


def test_guests_of_all_kinds_corrupt_and_damage_nothing() -> None:
    """Rule 7: whatever a guest writes, no operation is corrupted and nothing is damaged."""
    story = Story().called()
    story.own(assistant("a2", "a1"), finished("op"))
    before = story.operation("op").corruption
    story.guest(
        queued("i", "x"),
        queued("i", "y"),
        cancelled("nobody"),
        cancelled("i"),
        abort("op"),
        abort("nobody"),
        decided("op", "a1"),
        decided("nobody", "a1"),
        fact("title", 1),
        fact("label:nobody", "l"),
        rerun_allowed("d1"),
        rerun_allowed("nobody"),
        person("d1", "ok"),
        person("nobody", "ok"),
    )
    story.forge_guest(fact("", 1), "no event")
    story.guest(user("u9", None))
    assert story.operation("op").corruption == before
    assert story.row("operations", "nobody") is None
    assert story.damage() == []
    assert story.leaf == "a2"
