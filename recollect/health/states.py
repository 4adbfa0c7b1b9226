"""How a component stands, and when that changes: pure functions over what probes find.

    healthy ── bad looks in a row ──► degraded, down
       ▲                                    │
       └────── good looks in a row ─────────┘

One bad look changes nothing and one good look heals nothing, so that nothing flaps. A run of looks
moves a component no further than the mildest of them on the way down, and the worst of them on the
way up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

State = Literal["healthy", "degraded", "down"]
SEVERITY: Mapping[State, int] = {"healthy": 0, "degraded": 1, "down": 2}
NOT_SEEN_YET = "It was not looked at yet."


class Finding(msgspec.Struct, frozen=True):
    """What one look at a component found."""

    state: State
    reasons: tuple[str, ...] = ()
    details: dict[str, Any] = {}
    looks: int | None = None
    """So many like it in a row are enough to get there; else what the rules say."""


class Rules(msgspec.Struct, frozen=True):
    """How many looks in a row it takes."""

    bad_in_a_row: int
    good_in_a_row: int


class Standing(msgspec.Struct, frozen=True):
    """How a component stands, and what speaks for a change."""

    state: State
    since_s: float
    reasons: tuple[str, ...] = ()
    details: dict[str, Any] = {}
    seen_s: float | None = None
    """When it was looked at last."""
    known: bool = True
    """Whether it was ever looked at; what is not known yet may turn out well at the first look."""
    pending: State | None = None
    looks: int = 0
    """So many looks in a row speak for the pending state."""
    urgent: int = 0
    """So many of the last ones were of the kind that needs fewer."""


class Transition(msgspec.Struct, frozen=True):
    """A change of state. `before` is None where nothing was known."""

    at_s: float
    component: str
    before: State | None
    after: State
    reasons: tuple[str, ...]


def unknown(at_s: float) -> Standing:
    """A component that was not looked at yet: nobody should rely on it."""
    return Standing("down", at_s, (NOT_SEEN_YET,), known=False)


def worse(one: State, other: State) -> bool:
    return SEVERITY[one] > SEVERITY[other]


def worst(states: Iterable[State]) -> State:
    return max(states, key=SEVERITY.__getitem__, default="healthy")


def advance(
    name: str, standing: Standing, finding: Finding, at_s: float, rules: Rules
) -> tuple[Standing, Transition | None]:
    """The standing after one more look, and the change that it brought, if any."""
    seen = msgspec.structs.replace(standing, details=finding.details, seen_s=at_s)
    if not standing.known and finding.state == "healthy":
        return _moved(seen, finding, at_s), None
    if standing.known and finding.state == standing.state:
        same = msgspec.structs.replace(
            seen, reasons=finding.reasons, pending=None, looks=0, urgent=0
        )
        return same, None
    getting_worse = not standing.known or worse(finding.state, standing.state)
    pending, looks, urgent = finding.state, 1, 0
    if standing.pending is not None and _same_way(standing, standing.pending, getting_worse):
        both = (standing.pending, finding.state)
        pending = min(both, key=SEVERITY.__getitem__) if getting_worse else worst(both)
        looks, urgent = standing.looks + 1, standing.urgent
    urgent = urgent + 1 if finding.looks is not None else 0
    if finding.looks is not None and urgent >= finding.looks:
        pending = finding.state
    elif looks < (rules.bad_in_a_row if getting_worse else rules.good_in_a_row):
        return msgspec.structs.replace(seen, pending=pending, looks=looks, urgent=urgent), None
    before = standing.state if standing.known else None
    moved = _moved(seen, msgspec.structs.replace(finding, state=pending), at_s)
    return moved, Transition(at_s, name, before, pending, finding.reasons)


def _same_way(standing: Standing, pending: State, getting_worse: bool) -> bool:
    return not standing.known or worse(pending, standing.state) == getting_worse


def _moved(standing: Standing, finding: Finding, at_s: float) -> Standing:
    since_s = at_s
    if not standing.known and finding.state == standing.state:
        since_s = standing.since_s
    return msgspec.structs.replace(
        standing,
        state=finding.state,
        since_s=since_s,
        reasons=finding.reasons,
        known=True,
        pending=None,
        looks=0,
        urgent=0,
    )


def overall(standings: Mapping[str, Standing], vital: frozenset[str]) -> State:
    """How the whole stands: down with what is vital, degraded with anything else."""
    states = [
        standing.state if name in vital or standing.state == "healthy" else "degraded"
        for name, standing in standings.items()
    ]
    return worst(states)
