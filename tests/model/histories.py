"""Random histories of one session: mostly well-formed work, sprinkled with every known fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.model import acts_tree as tree
from tests.model import acts_work as work
from tests.model import faults
from tests.model.world import Dice, Drawn, Seeded, World
from tests.model.writing import History, event, record_of
from turnlog.core.frames import Data, Header

Act = Callable[[World], list[Any]]

PLAIN_ACTS: list[tuple[int, Act]] = [
    (8, tree.write_user),
    (8, work.write_turn),
    (6, work.write_prompt),
    (8, work.write_attempt),
    (9, tree.write_assistant),
    (8, work.write_dispatch),
    (12, tree.write_result),
    (5, tree.write_plain_result),
    (6, work.write_usage),
    (6, work.write_finished),
    (4, tree.write_state),
    (3, tree.write_branch),
    (3, tree.write_custom),
    (7, tree.write_summary),
    (5, tree.write_prune),
    (3, work.write_bracket),
    (4, work.write_settlement),
    (4, work.write_rerun),
    (8, work.write_repeat),
    (3, work.write_asked),
    (2, work.write_decided),
    (2, work.write_parked),
    (3, work.write_fact),
    (2, work.write_input),
    (1, work.write_abort),
    (2, work.write_blob),
]
ODD_ACTS: list[tuple[int, Act]] = [
    (2, tree.write_jump),
    (3, tree.write_opaque),
    (3, work.write_silent),
    (6, faults.write_again),
    (4, faults.write_malformed),
    (1, faults.write_misplaced),
    (1, work.write_released),
]
ACTS = [(10 * weight, act) for weight, act in PLAIN_ACTS] + [(6 * w, act) for w, act in ODD_ACTS]
GUEST_ACTS: list[tuple[int, Act]] = [
    (6, lambda world: [work.queued(world)]),
    (2, lambda world: [work.cancelled(world)]),
    (3, lambda world: [work.decision(world)]),
    (3, lambda world: [work.fact(world)]),
    (5, lambda world: [work.rerun(world)]),
    (6, lambda world: [work.settlement(world, world.dispatch("unknown"), "person")]),
    (2, lambda world: [work.abort(world)]),
    (1, work.write_silent),
    (1, faults.write_malformed),
    (1, faults.write_again),
]
PLAIN_GUEST_ACTS = 7


def written_by_owner(world: World) -> list[Any]:
    """What an owner writes in one frame."""
    events: list[Any] = []
    for number in range(1 + world.pick([0, 1, 2, 3])):
        is_idle = number == 0 and not world.operations
        acts = PLAIN_ACTS if world.calm else ACTS
        act = work.write_turn if is_idle and world.chance(60) else world.weighted(acts)
        new = act(world)
        events.extend(new)
        world.written.extend(
            e for e in new if isinstance(e, dict) and isinstance(e.get("data"), dict)
        )
    return events


def owner_frame(world: World) -> None:
    """The next frame in force."""
    events = written_by_owner(world)
    if world.model.ownership.frames_applied == 0 and not world.chance(6):
        events.insert(1 if world.chance(4) else 0, created(world))
    ahead = 1 if not world.chance(2) else 2 + world.dice.below(2)
    world.file(record_of(world.header(ahead=ahead), events))


def created(world: World) -> Data:
    """The session's own facts: plain, a fork, or a sub-agent's session."""
    data: dict[str, Any] = {"title": "a session", "cwd": "/src", "agent": "x"}
    if world.chance(30):
        data["initial_app_state"] = {"k": 0}
    if world.chance(25):
        fork_at = {"entry": "p7", "epoch": 1, "seq": 4}
        data |= {"parent_session": "p", "fork_at": fork_at, "title": None}
    elif world.chance(10):
        data |= {"parent_session": "p", "spawned_by": {"entry": "p3", "call_index": 0}}
    new = event("session_created", world.fresh("r"), **data)
    world.written.append(new)
    return new


def claim(world: World) -> None:
    """Somebody claims: in time, late, too early, a copy, or with the seq that it saw."""
    own = world.model.ownership
    if world.claim_events and world.chance(12):
        claimed = world.pick(world.claim_events[::-1])
    else:
        id_ = world.fresh("c")
        expects = own.epoch if not world.chance(20) else max(0, own.epoch + world.pick([-1, 1, 2]))
        seqs = [None, own.seq, own.seq + 1, max(own.seq - 1, 0), own.seq + 3]
        reason = world.pick(["open", "resume", "recovery", "import", None])
        claimed = event(
            "session_claimed",
            world.fresh("r"),
            claim=id_,
            expects=expects,
            expects_seq=world.pick(seqs),
            host=f"host-{id_}",
            reason=reason,
        )
        world.claim_events.append(claimed)
    guest(world, [claimed])
    if own.claim is not None and (own.claim, own.epoch) not in world.claims:
        world.claims.append((own.claim, own.epoch))


def guest(world: World, events: list[Any]) -> None:
    """File a guest frame."""
    world.file(record_of(Header(world.script.session, None, None, None, "guest"), events))


def guest_frame(world: World) -> None:
    """What guests write, and now and then what they may not."""
    events: list[Any] = []
    for _ in range(1 + world.pick([0, 1])):
        new = world.weighted(GUEST_ACTS[:PLAIN_GUEST_ACTS] if world.calm else GUEST_ACTS)(world)
        events.extend(new)
        world.written.extend(
            e for e in new if isinstance(e, dict) and isinstance(e.get("data"), dict)
        )
    if world.chance(6):
        events = faults.forbidden(world, events)
    if world.chance(2) and world.claim_events:
        events.append(world.pick(world.claim_events))
    guest(world, events)


def fenced_frame(world: World) -> None:
    """Late words of a former owner."""
    if not world.claims:
        return claim(world)
    others = written_by_owner(world) if world.chance(15) else []
    return world.file(faults.fenced(world, others))


def resent(world: World) -> None:
    """A record that is in the log already; mostly the last ones."""
    if not world.records:
        return claim(world)
    few = world.records[::-1][: world.pick([2, 6, 60])]
    return world.file(world.pick(few))


def strange_frame(world: World) -> None:
    """A frame that is not in force, or no frame at all."""
    make = world.weighted([(1, faults.out_of_force), (2, faults.unreadable)])
    world.file(make(world, written_by_owner(world)))


def step(world: World) -> None:
    """One more record."""
    own = world.model.ownership
    is_owned = own.claim is not None and not own.released
    if not is_owned and (world.calm or not world.chance(25)):
        claim(world)
        return
    kinds = [(70 if is_owned else 0, owner_frame), (12, guest_frame), (5, claim)]
    if not world.calm:
        late = 5 if world.claims else 0
        kinds += [(late, fenced_frame), (3, resent), (3, strange_frame)]
    world.weighted(kinds)(world)


def history(dice: Dice, frames: int, *, calm: bool = False) -> History:
    """A history of so many frames."""
    world = World(dice, calm=calm)
    for _ in range(frames):
        step(world)
    return world.script.items


@st.composite
def histories(draw: st.DrawFn, frames_max: int = 45, *, calm: bool = False) -> History:
    """Random histories of one session; a calm one holds no faults, but races and late work."""
    return history(Drawn(draw), draw(st.integers(1, frames_max)), calm=calm)


def seeded_history(seed: int, frames: int = 45, *, calm: bool = False) -> History:
    """The history of a seed: quick, and the same each time."""
    return history(Seeded(seed), frames, calm=calm)
