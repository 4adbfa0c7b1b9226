"""What every store is given: vectors, texts and a field to filter by; and what it should find.

Made once for a size and kept in files, since each store is measured by a process of its own. Only
numpy is needed here: this runs in the environments of the stores as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

DIMENSIONS = 384
CENTRES = 2_000
QUERIES = 200
MORE = 20_000
"""Further items, which are added while it is measured."""
TEAMS = 50
K = 10

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


def clustered(rows: int, seed: int) -> Vectors:
    """Unit vectors around a fixed set of centres, some nearer to theirs than others."""
    centres = np.random.default_rng(1).standard_normal((CENTRES, DIMENSIONS), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    chance = np.random.default_rng(seed)
    spread = chance.uniform(0.5, 1.1, size=(rows, 1)).astype(np.float32) / DIMENSIONS**0.5
    around = chance.standard_normal((rows, DIMENSIONS), dtype=np.float32) * spread
    points = centres[chance.integers(CENTRES, size=rows)] + around
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    vectors: Vectors = points.astype(np.float32)
    return vectors


def team_of(number: int) -> str:
    """What an item is filtered by; one in fifty has the same."""
    return f"team-{number % TEAMS}"


def text_of(number: int) -> str:
    """A text that no other item has."""
    return (
        f"Note {number}: {team_of(number)} agreed that the ingest service keeps its retry queue, "
        f"that deploys wait for the canary, and that number {number * 7919 % 10_007} is on call."
    )


class Data:
    """The items of one size, by number."""

    def __init__(self, folder: Path) -> None:
        self._vectors: Vectors = np.load(folder / "vectors.npy", mmap_mode="r")
        queries: Vectors = np.load(folder / "queries.npy")
        self.size = len(self._vectors) - MORE
        self.queries: list[list[float]] = queries.tolist()
        self.query_vectors = queries
        self._truth: dict[str, list[list[int]]] = json.loads((folder / "truth.json").read_text())

    def vector(self, number: int) -> list[float]:
        """The vector of an item; those past the size come around again."""
        place = number if number < self.size else self.size + (number - self.size) % MORE
        vector: list[float] = self._vectors[place].tolist()
        return vector

    def stored(self) -> Vectors:
        """The vectors of all that is stored before it is measured."""
        return np.asarray(self._vectors[: self.size])

    def team_asked(self, query: int) -> str:
        """Whose items a filtered search asks for."""
        return team_of(query * 13)

    def recall(self, kind: str, found: list[list[int]]) -> float:
        """Which part of what should be found was found."""
        wanted = self._truth[kind][: len(found)]
        hits = sum(len(set(a) & set(b[:K])) for a, b in zip(wanted, found, strict=True))
        return hits / sum(map(len, wanted))


def make(folder: Path, size: int) -> None:
    """Write the files of one size, with what an exact search finds."""
    folder.mkdir(parents=True, exist_ok=True)
    vectors, queries = clustered(size + MORE, 2), clustered(QUERIES, 3)
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "queries.npy", queries)
    scores = queries @ vectors[:size].T
    teams = np.arange(size) % TEAMS
    truth: dict[str, Any] = {"search": best(scores, np.ones((QUERIES, size), dtype=bool))}
    asked = np.array([query * 13 % TEAMS for query in range(QUERIES)])
    truth["filtered"] = best(scores, teams[None, :] == asked[:, None])
    (folder / "truth.json").write_text(json.dumps(truth))


def best(scores: npt.NDArray[Any], allowed: npt.NDArray[Any]) -> list[list[int]]:
    """The numbers of the highest scores of each row among those that are allowed."""
    ranked = np.argsort(np.where(allowed, -scores, np.inf), axis=1, kind="stable")[:, :K]
    return [
        [int(number) for number in row if allowed[query, number]]
        for query, row in enumerate(ranked)
    ]
