"""The outline: ids in few bytes, parents whenever they come, and what carries messages."""

from turnlog.ingest.outline import Facts, Kind, Outline, hash_of, key_of

UUID = "550e8400-e29b-41d4-a716-446655440000"


def test_a_uuid_goes_by_its_own_bits_and_any_other_id_by_a_digest() -> None:
    assert key_of(UUID) == bytes.fromhex(UUID.replace("-", ""))
    odd = [UUID.upper(), UUID[:-1] + "g", UUID.replace("-", "_"), "a", "", "é"]
    assert len({key_of(id_) for id_ in [UUID, *odd]}) == 7
    assert hash_of("a") != hash_of("b") != 0


def test_a_parent_may_come_later() -> None:
    outline = Outline()
    child = outline.add(1, 0, Facts(Kind.PROMPT, "c", "p"))
    assert outline.kinds[child] & Kind.LOST
    parent = outline.add(2, 9, Facts(Kind.OTHER, "p", None))
    assert (outline.parents[child], outline.kinds[child] & Kind.LOST) == (parent, 0)
    assert outline.kinds[parent] & Kind.CARRIES
    assert (outline.row("p"), outline.row("x"), len(outline)) == (parent, 0, 2)


def test_an_id_is_taken_once() -> None:
    outline = Outline()
    assert outline.add(1, 0, Facts(Kind.PROMPT, "a")) == 1
    assert outline.add(2, 5, Facts(Kind.PROMPT, "a")) == 0
    assert outline.add(3, 9, Facts(Kind.RECORD)) == 2


def test_carrying_goes_up_to_the_next_message_also_in_a_circle() -> None:
    outline = Outline()
    outline.add(1, 0, Facts(Kind.PROMPT, "m"))
    outline.add(2, 0, Facts(Kind.OTHER, "x", "m"))
    outline.add(3, 0, Facts(Kind.OTHER, "y", "x"))
    assert not outline.kinds[2] & Kind.CARRIES
    outline.add(4, 0, Facts(Kind.RESULT, "r", "y"))
    assert outline.kinds[2] & outline.kinds[3] & Kind.CARRIES
    assert not outline.kinds[1] & Kind.CARRIES
    outline.add(5, 0, Facts(Kind.OTHER, "p", "q"))
    outline.add(6, 0, Facts(Kind.OTHER, "q", "p"))
    outline.add(7, 0, Facts(Kind.PROMPT, "s", "p"))
    assert outline.kinds[5] & outline.kinds[6] & Kind.CARRIES
