"""Ids, times, cursors, the cache, decay, the error bus, and where one may bind."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from recollect.config.settings import DecaySettings
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.clock import IdSource, parse_moment, to_iso
from recollect.orchestrator.memories.strength import DAY_S, Fading
from recollect.orchestrator.running.data_folder import DataFolder, FolderInUse
from recollect.orchestrator.running.failpoints import arm
from recollect.orchestrator.running.process import is_loopback
from recollect.orchestrator.troubles.error_bus import ErrorBus
from recollect.protocol.errors import BY_CODE, InvalidArgument, from_body


class FixedClock:
    def __init__(self) -> None:
        self.value_us = 1_800_000_000_000_000

    def now_us(self) -> int:
        return self.value_us


def test_ids_keep_their_order_even_when_the_clock_steps_back() -> None:
    clock = FixedClock()
    ids = IdSource(clock)
    made = [ids.new() for _ in range(10_000)]
    clock.value_us -= 86_400_000_000
    made += [ids.new() for _ in range(10)]
    clock.value_us += 2 * 86_400_000_000
    made += [ids.new() for _ in range(10)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {uuid.UUID(text).version for text in made} == {7}


@pytest.mark.parametrize(
    ("moment", "iso"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000Z"),
        ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00.000000Z"),
        ("2026-01-31", "2026-01-31T00:00:00.000000Z"),
        (0, "1970-01-01T00:00:00.000000Z"),
        (1.5, "1970-01-01T00:00:01.500000Z"),
    ],
)
def test_moments_are_read_and_shown(moment: str | float, iso: str) -> None:
    parsed = parse_moment("at", moment)
    assert parsed is not None
    assert to_iso(parsed) == iso


@pytest.mark.parametrize("moment", ["soon", "", float("nan"), float("inf"), 1e30, "2026-13-01"])
def test_what_is_no_moment_is_refused(moment: str | float) -> None:
    with pytest.raises(InvalidArgument, match="not a time"):
        parse_moment("at", moment)


def test_the_cache_is_bounded_and_refuses_old_news() -> None:
    cache: LocalCache[int] = LocalCache(2)
    ticket = cache.ticket()
    for at, key in enumerate("abc"):
        cache.keep(key, at, ticket)
    assert cache.get("a") is None
    assert cache.get("c") == 2
    ticket = cache.ticket()
    cache.drop("c")
    cache.keep("c", 99, ticket)
    assert cache.get("c") is None


def test_the_cache_is_bounded_by_what_its_entries_weigh() -> None:
    cache: LocalCache[int] = LocalCache(10, 100)
    for at, key in enumerate("abcde"):
        cache.keep(key, at, cache.ticket(), 30)
    assert [key for key in "abcde" if cache.get(key) is not None] == ["c", "d", "e"]
    # What is kept again weighs what it does now, and what is dropped makes room.
    cache.keep("c", 2, cache.ticket(), 10)
    cache.drop("d")
    for key in "fg":
        cache.keep(key, 9, cache.ticket(), 30)
    assert [key for key in "cdefg" if cache.get(key) is not None] == ["c", "e", "f", "g"]
    cache.keep("h", 1, cache.ticket(), 101)
    assert len(cache) == 0
    cache.keep("i", 1, cache.ticket(), 100)
    assert cache.get("i") == 1


def test_a_memory_has_half_its_strength_after_the_half_life_and_fades_at_the_threshold() -> None:
    fading = Fading(DecaySettings(half_life_days_short=7, fade_threshold=0.5, importance_gain=0))
    stability_s = fading.initial_stability_s("short", 0.0)
    faded_s = fading.fades_us(0, stability_s) / 1_000_000
    assert faded_s == pytest.approx(7 * DAY_S, rel=1e-6)


def test_stability_is_bounded() -> None:
    fading = Fading(DecaySettings())
    assert fading.bounded(1e30) == DecaySettings().stability_days_max * DAY_S
    assert fading.bounded(0.0) == 1.0
    assert to_iso(fading.fades_us(253_402_300_000_000_000, 1e12)).startswith("9999")


def test_the_error_bus_keeps_a_bounded_number_of_kinds() -> None:
    bus = ErrorBus(3)
    for at in range(5):
        bus.report("source", f"code{at}", "message", at)
    bus.report("source", "code3", "message", 9, count=4)
    assert [(e["code"], e["count"]) for e in bus.recent(10, None, None)] == [
        ("code3", 5),
        ("code4", 1),
        ("code2", 1),
    ]
    assert bus.recent(10, "other", None) == []


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://127.0.0.1:1",
        "tcp://[::1]:1",
        "tcp://localhost:1",
        "ipc:///tmp/x",
        "tcp://127.0.0.53:*",
    ],
)
def test_loopback_is_known(endpoint: str) -> None:
    assert is_loopback(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://*:1",
        "tcp://0.0.0.0:1",
        "tcp://192.168.0.5:1",
        "tcp://[::]:1",
        "tcp://example.org:1",
        "tcp://eth0:1",
    ],
)
def test_all_else_is_beyond_loopback(endpoint: str) -> None:
    assert not is_loopback(endpoint)


def test_a_data_folder_has_one_holder(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    with pytest.raises(FolderInUse, match="in use"):
        DataFolder(tmp_path)
    first.release()
    DataFolder(tmp_path).release()


def test_an_unknown_failpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="no failpoint"):
        arm("nowhere:1")


def test_errors_survive_the_wire_and_unknown_codes_stay_themselves() -> None:
    for code, cls in BY_CODE.items():
        error = from_body(cls("what happened", field="x").body())
        assert type(error) is cls
        assert (error.code, error.details) == (code, {"field": "x"})
    newer = from_body({"code": "from_tomorrow", "message": "m", "retryable": True, "details": {}})
    assert (newer.code, newer.retryable) == ("from_tomorrow", True)
