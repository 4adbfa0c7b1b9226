"""What docs/scaling.md says of sizes is what the model says, and the model what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scaling_model

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"


def test_the_page_shows_the_table_of_the_model() -> None:
    assert scaling_model.table(384, scaling_model.MEASURED_CHARS, 50) in PAGE.read_text(), (
        "put the output of python -m benchmarks.scaling_model into docs/scaling.md"
    )


@pytest.mark.parametrize(
    ("calculated", "measured"),
    [
        (scaling_model.vector_bytes(256), 1171),
        (scaling_model.vector_bytes(384), 1653),
        (scaling_model.graph_bytes(256), 832),
        (scaling_model.graph_bytes(384), 1171),
        (scaling_model.sqlite_vector_bytes(256), 1369),
    ],
)
def test_the_model_gives_back_what_was_measured(calculated: float, measured: float) -> None:
    assert calculated == pytest.approx(measured, rel=0.02)


def test_a_size_is_made_of_its_parts() -> None:
    found = scaling_model.step(100_000_000, 384, scaling_model.MEASURED_CHARS, 100)
    assert found.cells == 10
    assert found.disk_gb > found.memory_gb > found.graph_gb
    smaller = scaling_model.step(10_000_000, 384, scaling_model.MEASURED_CHARS, 100)
    assert found.disk_gb == pytest.approx(10 * smaller.disk_gb)
    assert found.search_ms == smaller.search_ms
