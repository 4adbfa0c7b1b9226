"""States change when they should, and not sooner."""

from __future__ import annotations

import itertools

from recollect.health.states import (
    Finding,
    Rules,
    Standing,
    State,
    Transition,
    advance,
    overall,
    unknown,
)

RULES = Rules(bad_in_a_row=3, good_in_a_row=2)
GOOD, BAD, DOWN = Finding("healthy"), Finding("degraded", ("slow",)), Finding("down", ("gone",))
GONE = Finding("down", ("no answer",), looks=2)


def looked(start: Standing, *findings: Finding) -> tuple[list[State], list[Transition]]:
    """The state after each look, a second apart, and the changes."""
    states: list[State] = []
    changes = []
    standing = start
    for at_s, finding in zip(itertools.count(100), findings, strict=False):
        standing, change = advance("it", standing, finding, float(at_s), RULES)
        states.append(standing.state)
        changes += [change] if change else []
    return states, changes


HEALTHY = Standing("healthy", 0.0)


def test_it_gets_worse_only_after_so_many_bad_looks_in_a_row() -> None:
    states, changes = looked(HEALTHY, BAD, BAD, GOOD, BAD, BAD, BAD, BAD)
    assert states == ["healthy"] * 5 + ["degraded"] * 2
    assert changes == [Transition(105.0, "it", "healthy", "degraded", ("slow",))]


def test_it_gets_better_only_after_so_many_good_looks_in_a_row() -> None:
    states, changes = looked(Standing("down", 0.0), GOOD, DOWN, GOOD, GOOD)
    assert states == ["down", "down", "down", "healthy"]
    assert [change.after for change in changes] == ["healthy"]


def test_what_flickers_stays_as_it_is() -> None:
    states, changes = looked(HEALTHY, *[BAD, BAD, GOOD] * 20)
    assert (set(states), changes) == ({"healthy"}, [])


def test_what_does_not_answer_is_told_of_after_the_second_look() -> None:
    states, changes = looked(HEALTHY, GONE, GONE, GONE)
    assert states == ["healthy", "down", "down"]
    assert [change.at_s for change in changes] == [101.0]


def test_what_is_slow_before_it_is_gone_is_told_of_as_gone() -> None:
    states, changes = looked(HEALTHY, BAD, GONE, GONE)
    assert states == ["healthy", "healthy", "down"]
    assert [change.after for change in changes] == ["down"]


def test_what_speaks_for_itself_also_heals_sooner_but_not_by_what_was_bad_before() -> None:
    well = Finding("healthy", looks=2)
    states, _ = looked(Standing("degraded", 0.0), GONE, well, well)
    assert states == ["degraded", "degraded", "healthy"]


def test_mixed_looks_move_it_no_further_than_all_of_them_say() -> None:
    states, _ = looked(HEALTHY, DOWN, BAD, DOWN)
    assert states[-1] == "degraded"
    states, _ = looked(Standing("down", 0.0), BAD, GOOD)
    assert states[-1] == "degraded"


def test_what_was_never_seen_may_be_well_at_once_but_is_not_reported_lost_at_once() -> None:
    assert looked(unknown(0.0), GOOD) == (["healthy"], [])
    states, changes = looked(unknown(0.0), GONE, GONE)
    assert states == ["down", "down"]
    assert changes == [Transition(101.0, "it", None, "down", ("no answer",))]
    assert looked(unknown(0.0), GONE, GOOD)[1] == []


def test_reasons_are_kept_up_to_date_without_a_change() -> None:
    standing, _ = advance("it", Standing("degraded", 5.0, ("old",)), BAD, 9.0, RULES)
    assert (standing.reasons, standing.since_s, standing.seen_s) == (("slow",), 5.0, 9.0)


def test_the_whole_is_down_only_with_what_is_vital() -> None:
    def whole(**states: State) -> State:
        standings = {name: Standing(state, 0.0) for name, state in states.items()}
        return overall(standings, frozenset({"heart"}))

    assert whole(heart="healthy", hand="healthy") == "healthy"
    assert whole(heart="healthy", hand="down") == "degraded"
    assert whole(heart="down", hand="healthy") == "down"
