"""What is measured of a store is true of it: shown with stores whose answers are known."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from benchmarks.peers import data, driving, goals, tables
from benchmarks.peers.environments import PEERS
from benchmarks.peers.peer import NotOffered

SIZE = 600
OPTIONS = argparse.Namespace(calls=5, seconds=0.05, rounds=1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> data.Data:
    folder = tmp_path_factory.mktemp("data")
    data.make(folder, SIZE)
    return data.Data(folder)


class Exact:
    """Compares with everything; `after` looks for the team only among the nearest, as some do."""

    durability, note, version = "none", "", ""
    clients: Literal["processes", "threads"] = "threads"

    def __init__(self, *, after: bool = False, pause_s: float = 0.0) -> None:
        self._after, self._pause_s = after, pause_s
        self.added: list[int] = []

    def open(self, folder: Path, given: data.Data) -> None:
        self._data = given

    def fill(self) -> None:
        self._vectors = self._data.stored()

    def session(self) -> Exact:
        return self

    def pids(self) -> list[int]:
        return []

    def close(self) -> None:
        pass

    def add(self, number: int) -> None:
        time.sleep(self._pause_s)
        self.added.append(number)

    def get(self, number: int) -> object:
        return self._vectors[number]

    def search(self, query: int) -> list[int]:
        return self._ranked(query)[: data.K]

    def filtered(self, query: int) -> list[int]:
        ranked = self._ranked(query)
        among = ranked[: data.K] if self._after else ranked
        team = self._data.team_asked(query)
        return [number for number in among if data.team_of(number) == team][: data.K]

    def _ranked(self, query: int) -> list[int]:
        scores = self._vectors @ self._data.query_vectors[query]
        return [int(number) for number in np.argsort(-scores)]


def measured(driver: Any, given: data.Data, folder: Path) -> dict[str, Any]:
    return driving.measure(driver, given, folder, OPTIONS)


def test_an_exact_search_finds_everything(stored: data.Data, tmp_path: Path) -> None:
    found = measured(Exact(), stored, tmp_path)
    assert found["search_recall"] == found["filtered_recall"] == 1.0


def test_a_filter_after_the_best_were_taken_shows(stored: data.Data, tmp_path: Path) -> None:
    found = measured(Exact(after=True), stored, tmp_path)
    assert found["search_recall"] == 1.0
    assert found["filtered_recall"] < 0.5


def test_what_a_call_takes_is_at_least_what_it_waits(stored: data.Data, tmp_path: Path) -> None:
    found = measured(Exact(pause_s=0.005), stored, tmp_path)
    assert found["add"]["p50_ms"] >= 5
    assert found["add"]["p99_ms"] >= found["add"]["p50_ms"]
    assert 0 < found["add"]["per_s"] <= driving.CLIENTS / 0.005


def test_no_item_is_added_twice(stored: data.Data, tmp_path: Path) -> None:
    driver = Exact()
    measured(driver, stored, tmp_path)
    assert len(driver.added) == len(set(driver.added))
    assert min(driver.added) >= SIZE


def test_what_a_store_does_not_offer_is_said(stored: data.Data, tmp_path: Path) -> None:
    class Bare(Exact):
        def search(self, query: int) -> list[int]:
            raise NotOffered

        filtered = search

    found = {"peer": "Bare", "version": "1", "size": SIZE, **measured(Bare(), stored, tmp_path)}
    assert found["search"] is None and found["search_recall"] is None
    assert tables.cells(found).count("-") == 6


def test_a_client_that_fails_fails_the_measurement(stored: data.Data, tmp_path: Path) -> None:
    class Failing(Exact):
        def add(self, number: int) -> None:
            if number > driving.CLIENT_NUMBERS:
                raise RuntimeError("too many clients")

    with pytest.raises(RuntimeError, match="too many clients"):
        measured(Failing(), stored, tmp_path)


def test_every_store_has_its_driver_and_pinned_versions() -> None:
    folder = Path(driving.__file__).parent / "drivers"
    drivers = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {peer.driver for peer in PEERS} == drivers
    assert all("==" in package for peer in PEERS for package in peer.packages)


def test_a_store_that_cannot_run_has_no_goal_and_says_why() -> None:
    rates = {kind: {"per_s": 100.0} for kind in ("add", "search", "filtered")}
    ours = {"peer": "Recollect", "version": "1", "size": 10, **rates}
    failed = {"peer": "Chroma server", "version": "1", "size": 10, "failed": "no disk"}
    slow = {kind: {"per_s": 5.0} for kind in rates}
    other = {"peer": "Chroma server", "version": "1", "size": 20, **slow}
    assert goals.rows([ours, failed]) == []
    assert "no disk" in tables.cells(failed)[1]
    rows = goals.rows([{**ours, "size": 20}, other])
    assert [(row.ratio, row.met) for row in rows] == [(20.0, False), (20.0, True), (20.0, False)]
