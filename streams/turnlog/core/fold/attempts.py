"""Model requests and what they cost: a delta, counted once for each attempt."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import cast

from turnlog.core.fold import operations
from turnlog.core.fold.draft import Draft
from turnlog.core.frames import Event, content_of
from turnlog.core.rows import EMPTY, Attempt, Json, Reservation

EXACT = Context(prec=400)
"""Prices are sums of decimal strings of at most 48 digits, moved by at most 99 places: never
rounded."""
TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")


def attempt_model(draft: Draft, event: Event) -> None:
    """A model request is about to be sent."""
    data = event.data
    id_, operation = data["attempt"], data["operation"]
    content = content_of(event)
    old = _attempt(draft, id_)
    if old is not None and old.digest is not None:
        if old.digest != content:
            operations.named(draft, operation)
            operations.corrupt(draft, operation, "entry_reused")
        return
    operations.named(draft, operation)
    entry = data["assistant_entry"]
    if operations.is_free(draft, entry):
        draft.put("reservations", Reservation(draft.session, entry, id_), entry)
    else:
        operations.corrupt(draft, operation, "entry_reused")
    row = (old or Attempt(draft.session, id_, operation))._replace(
        operation=operation,
        assistant_entry=entry,
        model=data.get("model"),
        context=data.get("context"),
        claim=draft.own.claim,
        digest=content,
        position=draft.position,
    )
    draft.put("attempts", row, id_)
    operations.set_attempt(draft, operation, id_)
    operations.unpark(draft, operation)


def settle_usage(draft: Draft, event: Event) -> None:
    """What an attempt cost."""
    data = event.data
    old = _attempt(draft, data["attempt"])
    usage: Json = data.get("usage") or EMPTY
    counted = old is not None and old.usage is not None
    if old is not None and counted and (old.usage, old.usage_model) == (usage, data.get("model")):
        return
    operations.named(draft, data["operation"], after_finished=True)
    if old is not None and counted:
        _put(draft, old._replace(usage_conflict=True))
        return
    if old is None:
        row = Attempt(
            draft.session, data["attempt"], data["operation"], model=data.get("model")
        )._replace(usage_conflict=True)
    else:
        row = old
    _put(draft, row._replace(usage=usage, usage_model=data.get("model")))
    draft.usage = add_usage(draft.usage, usage)


def take_usage(draft: Draft, event: Event, claim: str | None) -> None:
    """Usage of a fenced owner counts iff the attempt was applied under that very claim."""
    row = _attempt(draft, event.data["attempt"])
    if row is None or row.claim is None or row.claim != claim or row.usage is not None:
        return
    usage: Json = event.data.get("usage") or EMPTY
    model: str | None = event.data.get("model")
    _put(draft, row._replace(usage=usage, usage_model=model, usage_fenced=True))
    draft.fenced_usage = add_usage(draft.fenced_usage, usage)


def add_usage(total: dict[str, Json], usage: dict[str, Json]) -> dict[str, Json]:
    """Totals with one attempt more."""
    added = {name: total[name] + (usage.get(name) or 0) for name in TOKENS}
    cost = EXACT.add(Decimal(total["cost_usd"]), Decimal(usage.get("cost_usd") or "0"))
    return {**added, "cost_usd": f"{cost:f}", "attempts": total["attempts"] + 1}


def _attempt(draft: Draft, id_: str) -> Attempt | None:
    return cast("Attempt | None", draft.get(("attempts", draft.session, id_)))


def _put(draft: Draft, row: Attempt) -> None:
    draft.put("attempts", row._replace(position=draft.position), row.attempt)
