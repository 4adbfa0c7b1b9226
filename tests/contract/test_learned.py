"""Whether what is learned is any good: from executions as agents tell of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from recollect.orchestrator.learning.words import names_one_thing, split
from recollect.protocol.operations import (
    ExtractPattern,
    FindPattern,
    PatternFeedback,
    SearchPatterns,
    StoreExecution,
)
from tests.harness.executions import DEPLOYMENTS, FLAKY_TESTS, MIGRATIONS
from tests.harness.worlds import World

NAMESPACE = "project:shop"


@pytest.fixture
def learned(world: World) -> Iterator[World]:
    """A world in which agents did three kinds of task by turns."""
    turns = itertools.zip_longest(DEPLOYMENTS, MIGRATIONS, FLAKY_TESTS)
    for number, told in enumerate(one for turn in turns for one in turn if one is not None):
        world(
            StoreExecution(
                f"t{number}",
                told.summary,
                told.success,
                list(told.errors),
                namespace=NAMESPACE,
                task_description=told.description,
            )
        )
    yield world


def suggested(world: World, task: str) -> Any:
    return world(FindPattern(task, namespace=NAMESPACE))["pattern"]


def patterns(world: World) -> Any:
    return world(SearchPatterns(namespace=NAMESPACE))["patterns"]


def test_each_kind_of_task_has_one_pattern_that_says_what_helps(learned: World) -> None:
    assert len(patterns(learned)) == 3
    deploying = suggested(learned, "Deploy checkout-service v3.0.0 to production")
    assert len(deploying["executions"]) == len(DEPLOYMENTS)
    assert deploying["success_indicators"][:2] == ["canary first", "smoke tests passed"]
    assert deploying["failure_indicators"] == [
        "pushed straight to all pods",
        "skipped the canary",
        "502 Bad Gateway from ingress after 118 s",
    ]
    fixing = suggested(learned, "Fix the flaky test test_invoice_pdf")
    assert len(fixing["executions"]) == len(FLAKY_TESTS)
    assert set(fixing["success_indicators"]) == {
        "replaced the sleep with an explicit wait",
        "random seed",
        "isolated the fixture",
        "reproduced locally",
        "froze the clock",
    }
    assert fixing["failure_indicators"] == ["increased the timeout", "TimeoutError after 30 s"]
    assert (
        "Do: random seed (in 2 of 5 that went well, in 0 of 4 that did not), as in "
        '"Reproduced it locally by running it with a random seed".'
    ) in fixing["recommended_context"]
    migrating = suggested(learned, "Run a schema migration on the orders table")
    assert "backfilled in batches" in migrating["success_indicators"]


def test_no_advice_names_one_thing_or_is_for_another_kind_of_task(learned: World) -> None:
    for pattern in patterns(learned):
        for said in map(split, pattern["success_indicators"]):
            assert not names_one_thing(said[0])
            assert not names_one_thing(said[-1])
    for task in ("Feed the cat", "Write the quarterly sales report"):
        assert suggested(learned, task) is None


def test_learning_all_at_once_teaches_the_same_and_what_misled_is_trusted_less(
    learned: World,
) -> None:
    again = learned(ExtractPattern(namespace=NAMESPACE))
    assert again["created"] == 0
    ids = {pattern["id"] for pattern in patterns(learned)}
    assert {pattern["id"] for pattern in again["patterns"]} == ids
    task = "Fix the flaky test test_invoice_pdf"
    before = suggested(learned, task)
    learned(PatternFeedback(before["id"], False))
    after = suggested(learned, task)
    assert (after["id"], after["usage_count"]) == (before["id"], 1)
    assert after["confidence"] < before["confidence"]
