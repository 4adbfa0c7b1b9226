"""The orchestrator's figures, as people see them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from recollect.cli.stats_view import show_stats
from recollect.protocol.records import Stats


def stats(embedding: dict[str, Any], index: dict[str, Any]) -> Stats:
    whole: Any = {
        "status": "success",
        "memories": {"total": 1200, "by_tier": {"short": 1200}, "deleted": 0},
        "storage": {"kind": "sqlite"},
        "index": {"vectors": 1200, "model": "m", **index},
        "embedding": {
            "model": "all-MiniLM-L6-v2/384",
            "dimensions": 384,
            "available": True,
            "waiting": 0,
            "waiting_reason": None,
            "texts": 1200,
            "cache": {"hits": 1, "misses": 3},
            "reembedding": {"state": "idle"},
            **embedding,
        },
        "requests": {"in_flight": 0, "in_flight_max": 8, "served": {}, "failed": {}},
        "cache": {"entries": 0, "hits": 0, "misses": 0},
        "redis": {"mode": "embedded", "state": "degraded", "reason": "It does not answer."},
        "seq": 1200,
        "uptime_s": 90.0,
    }
    return cast(Stats, whole)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("COLUMNS", "140")

    def show(embedding: dict[str, Any] | None = None, index: dict[str, Any] | None = None) -> str:
        show_stats(stats(embedding or {}, index or {}), "tcp://127.0.0.1:1")
        return " ".join(capsys.readouterr().out.replace("│", " ").split())

    return show


def test_a_quiet_store_tells_its_model_and_nothing_of_exchanges(shown: Any) -> None:
    text = shown()
    assert "model all-MiniLM-L6-v2/384, 384 dimensions" in text
    assert "wait for a vector 0" in text
    assert "texts known again 25%" in text
    assert "re-embedding" not in text


def test_redis_is_told_with_what_is_wrong(shown: Any) -> None:
    assert "redis state embedded, degraded (It does not answer.)" in shown()


def test_what_waits_for_a_vector_is_told_with_the_reason(shown: Any) -> None:
    text = shown({"waiting": 12, "waiting_reason": "Nobody answers.", "available": False})
    assert "wait for a vector 12 (Nobody answers.)" in text
    assert "(not available now)" in text


def test_what_a_provider_charges_is_told(shown: Any) -> None:
    assert "tokens 5,000, which cost 0.0001" in shown({"provider": {"tokens": 5000, "cost": 1e-4}})
    assert "cost" not in shown()


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        ({"state": "running", "done": 720, "total": 1200}, "next/64 ■■■·· 720 of 1,200"),
        ({"state": "running", "done": 0, "total": None}, "re-embedding next/64"),
        ({"state": "waiting", "done": 0, "total": 9, "reason": "Down."}, "0 of 9 (waits: Down.)"),
        ({"state": "clearing", "done": 9, "total": 9}, "done: next/64; the old vectors are"),
        ({"state": "done"}, "done: next/64"),
        ({"state": "failed"}, "failed: next/64"),
    ],
)
def test_an_exchange_of_the_model_tells_how_far_it_is(
    shown: Any, progress: dict[str, Any], told: str
) -> None:
    assert told in shown({"reembedding": {"target": "next/64", **progress}})


def test_segments_are_told_by_kind_and_size(shown: Any) -> None:
    segment = {"kind": "flat", "vectors": 500, "tombstones": 2, "bytes": 1_000_000, "saved": True}
    text = shown(index={"head": 200, "segments": [segment, segment, {**segment, "kind": "ivf"}]})
    assert "vectors 1,200, 200 in the head" in text
    assert "segments flat 2, ivf 1; 3.0 MB, 6 deleted vectors" in text
    assert "segments none" in shown(index={"segments": []})
    assert "building or merging segments" in shown(index={"building": True})
