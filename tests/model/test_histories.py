"""The random histories are interesting: every rule is reached by some of them."""

from __future__ import annotations

from collections import Counter

from tests.model.histories import seeded_history
from tests.model.model import Model
from tests.model.observable import observable
from tests.model.writing import History
from turnlog.core.events import TYPES
from turnlog.core.frames import Frame

EVERY_DAMAGE = (
    "no_header",
    "unreadable",
    "gap",
    "seq_conflict",
    "misplaced_claim",
    "late_created",
    "malformed",
    "conflict",
    "dangling_parent",
    "cycle",
)
EVERY_VOID = (
    "late",
    "not_at_leaf",
    "prepared_elsewhere",
    "not_on_surface",
    "not_one_result",
    "unbalanced",
    "unknown_dispatch",
    "late_result",
    "not_placed",
)
EVERY_CORRUPTION = (
    "not_accepted",
    "accepted_twice",
    "second_of_kind",
    "inside_compaction",
    "input_missing",
    "after_finished",
    "entry_reused",
    "assistant_missing",
    "t1_repeated",
    "open_dispatch",
)


def reached(model: Model, items: History) -> set[tuple[str, str]]:
    seen = observable(model)
    work = model.work
    found = {("type", e.type) for i in items if isinstance(i.frame, Frame) for e in i.frame.events}
    found |= {("damage", kind) for kind, _ in seen["damage"]}
    found |= {("void", str(node.void)) for node in model.tree.nodes}
    found |= {("corrupt", r) for o in work.operations.values() for r in o.corruption}
    found |= {("attempt", attempt.status) for attempt in work.attempts.values()}
    found |= {("dispatch", f"{d.status} {d.settled_by}") for d in work.dispatches.all.values()}
    found |= {("input", status) for status, _, _ in seen["inputs"].values()}
    found |= {("session", seen["session"]["status"])}
    found |= {("flag", "superseded") for o in work.operations.values() if o.superseded}
    found |= {("flag", "fenced usage") for a in work.attempts.values() if a.fenced}
    found |= {("flag", "usage conflict") for a in work.attempts.values() if a.conflict}
    found |= {("flag", "fork")} if model.tree.fork_entry else set()
    found |= {("flag", "newer")} if model.newer else set()
    for d in work.dispatches.all.values():
        found |= {("flag", name) for name in ("evidence", "notes", "rerun") if getattr(d, name)}
        found |= {("flag", f"{len(d.tries)} tries")}
    return found


def test_the_histories_reach_every_rule() -> None:
    found: Counter[tuple[str, str]] = Counter()
    for seed in range(200):
        items = seeded_history(seed)
        found.update(reached(Model(items.frames), items))
    wanted = {("type", name) for name in [*TYPES, "later_entry", "later_record"]}
    wanted |= {("damage", name) for name in EVERY_DAMAGE}
    wanted |= {("void", name) for name in [*EVERY_VOID, "None"]}
    wanted |= {("corrupt", name) for name in EVERY_CORRUPTION}
    wanted |= {("attempt", n) for n in ("started", "completed", "failed", "aborted", "continues")}
    wanted |= {("input", name) for name in ("queued", "placed", "cancelled")}
    wanted |= {("session", name) for name in ("idle", "open", "requires_action")}
    wanted |= {("dispatch", f"{s} person") for s in ("ok", "error", "not_started")}
    wanted |= {("dispatch", f"{s} recovery") for s in ("ok", "error", "not_started", "unknown")}
    flags = "superseded,fenced usage,usage conflict,fork,newer,evidence,notes,rerun,2 tries,3 tries"
    wanted |= {("flag", name) for name in flags.split(",")}
    assert not sorted(wanted - set(found))
