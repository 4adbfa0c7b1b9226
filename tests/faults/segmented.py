"""A store whose vectors lie in several small segments: changed, damaged and asked about.

The orchestrator runs in the test's own process or in another; here it is only what answers.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from recollect.config.settings import (
    DecaySettings,
    EmbeddingSettings,
    IndexSettings,
    RecallSettings,
    Settings,
)
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.search.vectors.snapshots import SnapshotFolder
from recollect.protocol.operations import (
    BatchAddMemories,
    DeleteMemory,
    ListMemories,
    Stats,
    UpdateMemory,
)
from tests.faults import counts
from tests.faults.comparing import (
    ALL,
    DIMENSIONS,
    KINDS,
    NAMESPACES,
    Ask,
    Comparison,
    Question,
    Truth,
)
from tests.faults.polling import wait_for
from tests.faults.tools import index_damages

HEAD_MAX = 16
MODEL = HashedEmbedder(DIMENSIONS).model
MODEL_FOLDER = "hashed-ngrams-v1-64"
SETTLED_WITHIN_S = 30.0
QUESTIONS = 6
SETTINGS = Settings(
    embedding=EmbeddingSettings(provider="hashed", dimensions=DIMENSIONS),
    index=IndexSettings(head_max=HEAD_MAX),
    # Being found makes a memory stronger, and here the same is asked twice.
    recall=RecallSettings(strength=0),
    decay=DecaySettings(access_flush_ms=60_000),
)
ENVIRONMENT = {
    "RECOLLECT_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
    "RECOLLECT_INDEX_HEAD_MAX": str(HEAD_MAX),
    "RECOLLECT_RECALL_STRENGTH": "0",
    "RECOLLECT_DECAY_ACCESS_FLUSH_MS": "60000",
}


class Store:
    """What is done to the memories and asked about them, wherever the orchestrator runs."""

    def __init__(self, data: Path, number: int = 0) -> None:
        self.data = data
        self.chance = random.Random(counts.SEED + number)
        self.index = data / "index" / MODEL_FOLDER
        self._vocabulary = [self._word() for _ in range(400)]

    def fill(self, ask: Ask, sizes: tuple[int, ...]) -> None:
        """Add memories in portions, each of which becomes a segment of its own."""
        for size in sizes:
            self.add(ask, size)
            settle(ask)

    def add(self, ask: Ask, count: int) -> None:
        for namespace in NAMESPACES:
            items = [self._item() for _ in range(count // len(NAMESPACES) or 1)]
            ask(BatchAddMemories(items, namespace=namespace))

    def change(self, ask: Ask) -> None:
        """Some are deleted, some get other words, some are new."""
        listed = ask(ListMemories(limit=100))["memories"]
        for number, memory in enumerate(self.chance.sample(listed, 6)):
            if number % 2:
                ask(DeleteMemory(memory["id"]))
            else:
                ask(UpdateMemory(memory["id"], {"content": self._item()["content"]}))
        self.add(ask, self.chance.choice([1, 12, 24]))

    def compare(
        self,
        ask: Ask,
        comparison: Comparison,
        asked: list[tuple[Question, dict[str, float]]] | None = None,
    ) -> list[tuple[Question, dict[str, float]]]:
        """Ask by meaning and by all means; what was asked before is asked again."""
        truth = Truth(self.data)
        held = ask(Stats())["index"]["vectors"]
        if held != len(truth):
            comparison.wrong.append(f"the index holds {held} vectors of {len(truth)}")
        if asked is None:
            new = truth.questions(self.chance, QUESTIONS)
            asked = [(question, comparison.recall(ask, truth, question)) for question in new]
        for question, before in asked:
            comparison.semantic(ask, truth, question)
            comparison.recall(ask, truth, question, before)
        comparison.semantic(ask, truth, Question(asked[0][0].query), ALL)
        return asked

    def check_saved(self, ask: Ask, comparison: Comparison) -> None:
        """All but a head is in segments, and their files verify."""
        index = settle(ask)
        names = [path.name for path in index_damages.segments(self.index)]
        if not index["segments"] or not all(one["saved"] for one in index["segments"]):
            comparison.wrong.append(f"not rebuilt: {index}, {names}")
        # Opened as a start would do it, which removes what does not verify.
        opened = SnapshotFolder(self.index, MODEL, DIMENSIONS).open()
        if len(opened) != len(index["segments"]):
            comparison.wrong.append(f"{len(opened)} of {names} verify, {index}")
        held = sum(len(segment) for segment in opened)
        gone = sum(one["tombstones"] for one in index["segments"])
        if held != index["vectors"] - index["head"] + gone:
            comparison.wrong.append(f"{held} vectors are saved: {index}")

    def damage(self, number: int) -> str:
        """The next kind of damage, and now and then another with it."""
        chosen = [index_damages.ALL[number % len(index_damages.ALL)]]
        if self.chance.random() < 0.2:
            chosen.append(self.chance.choice(index_damages.ALL))
        said = []
        for damage in chosen:
            if index_damages.files(self.index):
                said.append(damage(self.index, self.chance))
        return "; ".join(said)

    def _item(self) -> dict[str, Any]:
        words = self.chance.sample(self._vocabulary, self.chance.randint(4, 9))
        return {
            "content": " ".join(words),
            "memory_type": self.chance.choice(KINDS),
            "importance": round(self.chance.random(), 3),
        }

    def _word(self) -> str:
        return "".join(self.chance.choices("abdefgiklmnoprstuvz", k=self.chance.randint(4, 9)))


def settle(ask: Ask) -> dict[str, Any]:
    """Wait until nothing is left to be sealed or merged; what the index is then."""
    index: dict[str, Any] = {}

    def settled() -> bool:
        index.update(ask(Stats())["index"])
        return not index["building"] and index["head"] < HEAD_MAX

    wait_for(settled, within_s=SETTLED_WITHIN_S, what="a settled index")
    return index
