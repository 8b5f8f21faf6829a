from turnlog.owner.ambient import Ambient, random_ids, rfc3339, system_clock


def test_a_time_is_a_label_in_utc() -> None:
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"
    assert rfc3339(1_767_225_600_123) == "2026-01-01T00:00:00.123Z"


def test_ids_are_not_given_twice() -> None:
    assert len({random_ids() for _ in range(1000)}) == 1000


def test_clock_and_ids_are_passed_in() -> None:
    ambient = Ambient(clock=lambda: 1000, ids=lambda: "id")
    assert ambient.now() == "1970-01-01T00:00:01.000Z"
    assert ambient.ids() == "id"
    assert Ambient().clock is system_clock
