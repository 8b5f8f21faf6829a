"""The log is the lock: who owns a session, decided from claims and headers alone (design, 4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import Story, claimed, event, fact, forge, released, user
from turnlog.core.frames import Frame, Header, NewEvent, Record, decode, seal
from turnlog.core.ownership import (
    MAX_LOST_CLAIMS,
    Admission,
    Ownership,
    admit,
    after_claim,
    after_frame,
    follow,
    has_claim,
    is_beyond,
    sole_claim,
)

OWN = Ownership("mine", 3, 7, "digest")


def header(claim: str | None = "mine", epoch: int | None = 3, seq: int | None = 8) -> Header:
    return Header("s", claim, epoch, seq, "h")


def guest(*events: NewEvent) -> Frame:
    frame = decode(seal(header(None, None, None), events).record)
    assert isinstance(frame, Frame)
    return frame


def owned(*events: NewEvent, **fields: Any) -> Frame:
    return seal(header(**fields), events).frame


# ---- owner frames ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "digest", "admission"),
    [
        ({"seq": 8}, "new", Admission.APPLIES),
        ({"seq": 9}, "new", Admission.GAP),
        ({"seq": 7}, "digest", Admission.DUPLICATE),
        ({"seq": 7}, "other", Admission.SEQ_CONFLICT),
        ({"seq": 6}, "other", Admission.DUPLICATE),
        ({"seq": 1}, "digest", Admission.DUPLICATE),
        ({"epoch": 2, "claim": "former"}, "new", Admission.FENCED),
        ({"epoch": 2, "claim": "mine"}, "new", Admission.FENCED),
        ({"epoch": 3, "claim": "other"}, "new", Admission.FOREIGN),
        ({"epoch": 4, "claim": "mine"}, "new", Admission.FOREIGN),
        ({"epoch": 4, "claim": "other"}, "new", Admission.FOREIGN),
    ],
)
def test_an_owner_frame_is_judged_by_claim_epoch_seq_and_digest(
    fields: dict[str, Any], digest: str, admission: Admission
) -> None:
    assert admit(OWN, header(**fields), digest) is admission


@pytest.mark.parametrize("seq", [1, 7, 8, 20])
def test_a_released_epoch_stays_in_force_and_accepts_nothing(seq: int) -> None:
    own = OWN._replace(released=True)
    assert admit(own, header(seq=seq), "digest") is Admission.FENCED
    assert admit(own, header(claim="other"), "new") is Admission.FOREIGN
    assert admit(own, header(epoch=4), "new") is Admission.FOREIGN


def test_nobody_owns_a_session_without_a_claim() -> None:
    assert admit(Ownership(), header(epoch=1, seq=1), "new") is Admission.FOREIGN


def test_the_first_frame_of_a_claim_has_seq_1() -> None:
    own = Ownership("mine", 1)
    assert admit(own, header(epoch=1, seq=1), "new") is Admission.APPLIES
    assert admit(own, header(epoch=1, seq=2), "new") is Admission.GAP


def test_an_applied_frame_sets_seq_and_digest_and_nothing_else() -> None:
    assert after_frame(OWN, header(seq=12), "d12") == Ownership("mine", 3, 12, "d12")


# ---- claims ------------------------------------------------------------------------------------


def claim(claim_: str, expects: int, expects_seq: int | None = None) -> dict[str, Any]:
    return {"claim": claim_, "expects": expects, "expects_seq": expects_seq}


@pytest.mark.parametrize(
    ("data", "wins"),
    [
        (claim("new", 3), True),
        (claim("new", 3, 7), True),
        ({"claim": "new", "expects": 3}, True),
        (claim("new", 3, 6), False),
        (claim("new", 3, 8), False),
        (claim("new", 3, 0), False),
        (claim("new", 2), False),
        (claim("new", 4), False),
        (claim("new", 0), False),
        (claim("new", 2, 7), False),
    ],
)
def test_a_claim_wins_iff_it_expects_the_epoch_and_seq_in_force(
    data: dict[str, Any], wins: bool
) -> None:
    won, own = after_claim(OWN._replace(released=True), data)
    assert won is wins
    if wins:
        assert own == Ownership("new", 4, 0, None, released=False)
    else:
        assert own._replace(lost_claims=()) == OWN._replace(released=True)


def test_the_first_claim_of_a_session_expects_0() -> None:
    assert after_claim(Ownership(), claim("a", 0)) == (True, Ownership("a", 1))
    assert after_claim(Ownership(), claim("a", 0, 0)) == (True, Ownership("a", 1))
    assert after_claim(Ownership(), claim("a", 1))[0] is False


def test_a_claim_with_the_id_of_the_one_in_force_is_a_copy_whatever_it_expects() -> None:
    for data in (claim("mine", 3), claim("mine", 3, 7), claim("mine", 4), claim("mine", 2)):
        assert after_claim(OWN, data) == (False, OWN)


def test_of_two_racing_claims_the_first_in_the_log_wins() -> None:
    won, own = after_claim(Ownership(), claim("a", 0))
    lost, after = after_claim(own, claim("b", 0))
    assert (won, lost) == (True, False)
    assert after == own


def test_a_host_may_claim_anew_expecting_its_own_epoch() -> None:
    assert after_claim(OWN, claim("again", 3)) == (True, Ownership("again", 4))


@pytest.mark.parametrize(
    ("lost", "steps"),
    [
        # an epoch that comes, with and without a seq
        (claim("early", 4), [claim("other", 3)]),
        (claim("early", 4, 0), [claim("other", 3)]),
        (claim("early", 5), [claim("other", 3), claim("another", 4)]),
        # a seq that comes
        (claim("early", 3, 9), [8, 9]),
        (claim("early", 4, 2), [claim("other", 3), 1, 2]),
    ],
)
def test_the_first_copy_of_a_claim_counts_also_where_a_later_one_would_win(
    lost: dict[str, Any], steps: list[Any]
) -> None:
    won, own = after_claim(OWN, lost)
    assert not won
    for step in steps:
        if isinstance(step, int):
            own = after_frame(own, header(claim=own.claim, epoch=own.epoch, seq=step), f"d{step}")
        else:
            won, own = after_claim(own, step)
            assert won
    assert after_claim(own, lost) == (False, own)
    assert after_claim(own, {**lost, "claim": "fresh"})[0], "anybody else would have won there"


@pytest.mark.parametrize(
    "data", [claim("old", 2), claim("old", 2, 9), claim("old", 3, 6), claim("old", 3, 0)]
)
def test_only_lost_claims_that_could_still_win_are_remembered(data: dict[str, Any]) -> None:
    assert after_claim(OWN, data) == (False, OWN)


def test_a_won_claim_forgets_the_lost_ones_that_can_win_no_more() -> None:
    own = OWN
    for data in (claim("a", 3, 9), claim("b", 4), claim("c", 9)):
        own = after_claim(own, data)[1]
    assert [item[0] for item in own.lost_claims] == ["a", "b", "c"]
    own = after_claim(own, claim("new", 3))[1]
    assert [item[0] for item in own.lost_claims] == ["b", "c"]


def test_the_copy_of_a_claim_that_won_and_was_followed_does_not_win_again() -> None:
    own = after_claim(Ownership(), claim("a", 0))[1]
    own = after_claim(own, claim("b", 1))[1]
    assert after_claim(own, claim("a", 0)) == (False, own)
    assert after_claim(own, claim("b", 1)) == (False, own)


def test_every_reader_remembers_the_same_lost_claims_however_many_there_are() -> None:
    """One who follows from the start and one who starts from the head's row agree."""
    story = Story().begin("first")
    for number in range(MAX_LOST_CLAIMS + 2):
        story.guest(claimed(f"lost-{number}", 2))
    assert len(story.head.lost_claims) == MAX_LOST_CLAIMS
    assert story.overflow == {"lost_claims": 2}
    assert story.counts["lost_claims"] == MAX_LOST_CLAIMS + 2
    story.claim("second")
    story.guest(claimed(f"lost-{MAX_LOST_CLAIMS - 1}", 2))
    assert story.head.claim == "second"
    # beyond the bound a copy is as good as new, to every reader
    story.guest(claimed(f"lost-{MAX_LOST_CLAIMS}", 2))
    assert story.head.claim == f"lost-{MAX_LOST_CLAIMS}"


@pytest.mark.parametrize(
    ("data", "beyond"),
    [
        (claim("new", 4), True),
        (claim("new", 3, 8), True),
        (claim("new", 3, 6), False),
        (claim("new", 2), False),
        (claim("lost-7", 4), False),
        (claim("mine", 4), False),
    ],
)
def test_only_a_claim_that_should_be_remembered_and_is_not_exceeds_the_bound(
    data: dict[str, Any], beyond: bool
) -> None:
    assert MAX_LOST_CLAIMS == 256
    lost = tuple((f"lost-{number}", 4, None) for number in range(MAX_LOST_CLAIMS))
    full = OWN._replace(lost_claims=lost)
    assert is_beyond(full, data) is beyond
    assert after_claim(full, data) == (False, full)
    room = OWN._replace(lost_claims=lost[:-1])
    assert not is_beyond(room, data)
    assert after_claim(room, data)[1] == (room if not beyond else remembering(room, data))


def remembering(own: Ownership, data: dict[str, Any]) -> Ownership:
    item = (data["claim"], data["expects"], data["expects_seq"])
    return own._replace(lost_claims=(*own.lost_claims, item))


def test_a_lost_claim_that_was_remembered_does_not_count_twice() -> None:
    story = Story().begin("first")
    for _ in range(3):
        story.guest(claimed("lost", 7))
    assert story.head.lost_claims == (("lost", 7, None),)
    assert story.counts["lost_claims"] == 3
    assert story.overflow == {}


# ---- frames that hold claims -------------------------------------------------------------------


def test_a_claim_is_alone_in_a_guest_frame() -> None:
    assert sole_claim(guest(claimed("a"))) is not None
    assert sole_claim(guest(claimed("a"), fact("x", 1))) is None
    assert sole_claim(guest(claimed("a"), claimed("b"))) is None
    assert sole_claim(guest(fact("x", 1))) is None
    assert sole_claim(owned(claimed("a"))) is None
    assert sole_claim(guest(claimed("a")._replace(v=2))) is None
    assert sole_claim(decode(forge(header(None, None, None), claimed("")))) is None
    assert sole_claim(decode(Record("s", header(None, None, None), b"{"))) is None


def test_a_frame_has_a_claim_whether_or_not_that_can_be_read() -> None:
    assert has_claim(owned(fact("x", 1), claimed("a")))
    malformed = decode(forge(header(), claimed("")))
    assert isinstance(malformed, Frame)
    assert has_claim(malformed)
    assert not has_claim(owned(claimed("a")._replace(v=2)))
    assert not has_claim(owned(fact("x", 1)))


# ---- following ---------------------------------------------------------------------------------


def test_following_gives_the_admission_and_the_ownership_after_each_frame() -> None:
    own = Ownership()
    fields = {"claim": "a", "epoch": 1}
    first, second = owned(user("u", None), **fields, seq=1), owned(fact("x", 1), **fields, seq=2)
    steps: list[tuple[Any, Admission | None, Ownership]] = [
        (first, Admission.FOREIGN, own),
        (guest(claimed("a")), None, Ownership("a", 1)),
        (guest(fact("x", 1)), None, Ownership("a", 1)),
        (first, Admission.APPLIES, Ownership("a", 1, 1, first.digest)),
        (first, Admission.DUPLICATE, Ownership("a", 1, 1, first.digest)),
        (second, Admission.APPLIES, Ownership("a", 1, 2, second.digest)),
        (guest(claimed("b")), None, Ownership("a", 1, 2, second.digest)),
        (guest(claimed("b", 1)), None, Ownership("b", 2)),
        (second, Admission.FENCED, Ownership("b", 2)),
    ]
    for frame, admission, after in steps:
        assert follow(own, frame) == (admission, after)
        own = after


def test_following_sees_a_release_only_where_it_holds() -> None:
    own = Ownership("a", 1)

    def after(frame: Any) -> bool:
        return follow(own, frame)[1].released

    fields = {"claim": "a", "epoch": 1, "seq": 1}
    assert after(owned(fact("x", 1), released("a"), **fields))
    assert after(owned(released("a"), **{**fields, "seq": 4}))
    assert not after(owned(released("other"), **fields))
    assert not after(owned(released("a")._replace(v=2), **fields))
    assert not after(owned(released("a"), claimed("b", 1), **fields))
    assert not after(owned(released("a"), **{**fields, "epoch": 2}))
    assert not after(guest(event("session_released", claim="a")))
    assert not after(decode(forge(header(**fields), released(""))))
    assert not after(decode(forge(header(**fields), released("a")._replace(id=""))))


def test_an_unreadable_frame_takes_part_by_its_header() -> None:
    own = Ownership("a", 1)
    unreadable = decode(Record("s", header("a", 1, 1), b"{"))
    assert follow(own, unreadable) == (Admission.APPLIES, Ownership("a", 1, 1, unreadable.digest))
    assert follow(own, decode(Record("s", None, b"{"))) == (None, own)
    assert follow(own, decode(Record("s", header(None, None, None), b"{"))) == (None, own)
    foreign = Record("other", header("a", 1, 1), b"{}")
    assert follow(own, decode(foreign)) == (None, own)
