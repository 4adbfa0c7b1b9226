"""Which model a store starts with, and which one it moves to."""

from __future__ import annotations

import pytest

from recollect.models.errors import ModelUnavailable
from recollect.orchestrator.embedding.choosing import Choice, Known, choose
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Embedder
from recollect.orchestrator.embedding.specs import EmbedderSpec, hashed

LOCAL = EmbedderSpec("local", "minilm")
OTHER = EmbedderSpec("local", "granite")


class Shelf:
    """Makes embedders, except of those that are missing."""

    def __init__(self, *missing: EmbedderSpec) -> None:
        self._missing = missing

    def __call__(self, spec: EmbedderSpec, dimensions: int | None) -> Embedder:
        if spec in self._missing:
            raise ModelUnavailable(f"{spec.model} is not installed")
        return HashedEmbedder(dimensions or 64)


def known(
    active: EmbedderSpec | None = None,
    *,
    target: EmbedderSpec | None = None,
    configured: EmbedderSpec | None = None,
    empty: bool = False,
) -> Known:
    model = None if active is None or empty else f"{active.model}/64"
    return Known(active, target, configured, model, 0 if model is None else 64, empty)


def asked(choice: Choice) -> EmbedderSpec | None:
    """What a next start takes for the settings of this one."""
    return None if choice.provisional else choice.configured


def test_a_new_store_takes_the_configured_model() -> None:
    choice = choose(known(empty=True), LOCAL, Shelf())
    assert (choice.active, choice.target, choice.fallback_reason) == (LOCAL, None, None)


def test_a_new_store_without_the_model_takes_the_light_one_and_moves_when_it_is_there() -> None:
    choice = choose(known(empty=True), LOCAL, Shelf(LOCAL))
    assert choice.active == hashed()
    assert choice.fallback_reason == "minilm is not installed"
    later = choose(known(choice.active, configured=asked(choice)), LOCAL, Shelf())
    assert (later.active, later.target) == (hashed(), LOCAL)


def test_other_settings_move_the_store() -> None:
    choice = choose(known(LOCAL, configured=LOCAL), OTHER, Shelf())
    assert (choice.active, choice.target) == (LOCAL, OTHER)
    back = choose(known(LOCAL, target=OTHER, configured=OTHER), LOCAL, Shelf())
    assert (back.active, back.target) == (LOCAL, None)


def test_what_a_call_chose_stands_while_the_settings_stay() -> None:
    choice = choose(known(OTHER, configured=LOCAL), LOCAL, Shelf())
    assert (choice.active, choice.target) == (OTHER, None)


@pytest.mark.parametrize("active", [LOCAL, OTHER])
def test_a_model_that_is_missing_for_one_start_changes_nothing(active: EmbedderSpec) -> None:
    without = choose(known(active, configured=LOCAL), LOCAL, Shelf(active))
    assert (without.active, without.target) == (active, None)
    assert without.embedder.model == f"{active.model}/64"
    again = choose(known(active, configured=asked(without)), LOCAL, Shelf())
    assert (again.active, again.target, again.fallback_reason) == (active, None, None)
