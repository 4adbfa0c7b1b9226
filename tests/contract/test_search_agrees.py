"""Whatever is done to the memories, searching agrees with a comparison of all of them."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, invariant, rule

from recollect.config.settings import EmbeddingSettings, IndexSettings, Settings
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.protocol.operations import (
    AddMemory,
    BatchAddMemories,
    DeleteMemory,
    Purge,
    Recall,
    Reembed,
    Restore,
    SearchMemory,
    SemanticSearch,
    Stats,
    UpdateMemory,
)
from tests.harness.histories import History, noted
from tests.harness.postgres import new_database
from tests.harness.worlds import ANSWERED_WITHIN_S, World

WORDS = ("apple", "river", "engine", "violin", "harbour", "copper", "meadow", "signal")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
places = st.sampled_from(["app:a", "app:a:b", "app:ab", "user:c"])
kinds = st.sampled_from(["general", "semantic"])
LIVING = """
SELECT id, content, namespace, memory_type, importance FROM memories WHERE deleted_us IS NULL
"""


class Agreement(History):
    """A store with a tiny head, so that segments are built and merged all the time."""

    memories: Bundle[str] = Bundle("memories")

    def url(self) -> str:
        return "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(
            self.url(),
            Path(self.folder.name) / "data",
            Settings(
                embedding=EmbeddingSettings(provider="hashed", dimensions=64),
                index=IndexSettings(head_max=16),
            ),
        )

    def teardown(self) -> None:
        self.world.close()
        self.folder.cleanup()
        super().teardown()

    @rule(target=memories, content=texts, namespace=places, kind=kinds)
    @noted
    def add(self, content: str, namespace: str, kind: str) -> str:
        answer = self.world(AddMemory(content, kind, namespace=namespace))
        memory_id: str = answer["memory_id"]
        return memory_id

    @rule(contents=st.lists(texts, min_size=1, max_size=40), namespace=places)
    @noted
    def add_many(self, contents: list[str], namespace: str) -> None:
        self.world(BatchAddMemories([{"content": c} for c in contents], namespace=namespace))

    @rule(memory_id=memories, content=texts)
    @noted
    def update(self, memory_id: str, content: str) -> None:
        self._try(UpdateMemory(memory_id, {"content": content}))

    @rule(memory_id=memories)
    @noted
    def delete(self, memory_id: str) -> None:
        self._try(DeleteMemory(memory_id))

    @rule(memory_id=memories)
    @noted
    def restore(self, memory_id: str) -> None:
        self._try(Restore(memory_id))

    @rule(memory_id=consumes(memories))
    @noted
    def purge(self, memory_id: str) -> None:
        self._try(Purge(memory_id))

    @rule()
    @noted
    def restart(self) -> None:
        self.world.restart()

    @rule(dimensions=st.sampled_from([48, 64, 96]))
    @noted
    def begin_to_reembed(self, dimensions: int) -> None:
        """Everything else goes on while the model is being exchanged, or the exchange given up."""
        self._try(Reembed("hashed", "hashed", dimensions))

    @rule()
    @noted
    def await_the_new_model(self) -> None:
        until = time.monotonic() + ANSWERED_WITHIN_S
        while time.monotonic() < until:
            embedding = self.world(Stats())["embedding"]
            if embedding["reembedding"]["state"] in ("idle", "done") and not embedding["waiting"]:
                return
        raise AssertionError(f"the new model did not come into use: {embedding}")

    @rule(query=texts, namespace=st.none() | places, kind=st.none() | kinds)
    @noted
    def search_by_meaning(self, query: str, namespace: str | None, kind: str | None) -> None:
        filters = {"memory_type": kind} if kind else None
        before = self._model_in_use()
        answer = self.world(SemanticSearch(query, 7, filters, namespace=namespace))
        found = {r["id"]: r["score"] for r in answer["results"]}
        if before is None or self._model_in_use() != before:
            assert found.keys() <= self._living(namespace, kind).keys()
            return
        expected = self._similarities(query, namespace, kind, before)
        best = sorted(expected.values(), reverse=True)[:7]
        np.testing.assert_allclose(sorted(found.values(), reverse=True), best, atol=1e-5)
        for memory_id, score in found.items():
            assert abs(expected[memory_id] - score) < 1e-5

    def _model_in_use(self) -> int | None:
        """The dimensions of the model, if every memory has its vector; None while some have not.

        That is so when none waits for one, and no exchange has just put another model into use:
        right after that, some are still to be put among those that wait. If it is so before and
        after a search, it was so meanwhile, since exchanges are begun by a rule alone.
        """
        # How far the exchange is, is told a moment after the others were counted: so, twice.
        stats = self.world(Stats())
        if not _steady(stats):
            return None
        stats = self.world(Stats())
        dimensions: int = stats["embedding"]["dimensions"]
        return dimensions if _steady(stats) and not stats["embedding"]["waiting"] else None

    @rule(query=texts, namespace=st.none() | places, kind=st.none() | kinds)
    @noted
    def search_by_words(self, query: str, namespace: str | None, kind: str | None) -> None:
        answer = self.world(SearchMemory(query, kind, 1000, namespace=namespace))
        wanted = set(query.split())
        expected = {
            memory_id
            for memory_id, content in self._living(namespace, kind).items()
            if wanted & set(content.split())
        }
        assert {r["id"] for r in answer["results"]} == expected
        few = self.world(SearchMemory(query, kind, 5, namespace=namespace))
        assert len(few["results"]) == min(5, len(expected))

    @rule(query=texts, namespace=st.none() | places, kind=st.none() | kinds)
    @noted
    def recall(self, query: str, namespace: str | None, kind: str | None) -> None:
        """A scoped caller gets k results when k exist, and only of the scope."""
        before = self._model_in_use()
        answer = self.world(Recall(query, 5, namespace=namespace, memory_type=kind, collapse=False))
        living = self._living(namespace, kind)
        assert {r["id"] for r in answer["results"]} <= living.keys()
        assert len(answer["results"]) <= min(5, len(living))
        # One that has no vector yet is found by its words alone.
        if before is not None and self._model_in_use() == before:
            assert len(answer["results"]) == min(5, len(living))

    @invariant()
    @noted
    def the_index_holds_the_living(self) -> None:
        # While the model is exchanged, and at once after that, the counts are not of one moment.
        if self.world(Stats())["embedding"]["reembedding"]["state"] in ("idle", "done"):
            stats = self.world(Stats())
            living, waiting = stats["memories"]["total"], stats["embedding"]["waiting"]
            # Those that wait may get their vector between the two counts.
            assert living - waiting <= stats["index"]["vectors"] <= living

    def _try(self, operation: Any) -> None:
        body = self.world.send(operation.spec.name, msgspec.msgpack.encode(operation))
        if body["status"] == "error":
            assert body["error"]["code"] in ("not_found", "invalid_argument")

    def _living(self, namespace: str | None, kind: str | None) -> dict[str, str]:
        async def read() -> list[Any]:
            return await self.world.storage.read(lambda session: session.execute(LIVING))

        return {
            memory_id: content
            for memory_id, content, place, memory_type, _ in self.world.run(read())
            if (namespace is None or place == namespace or place.startswith(f"{namespace}:"))
            and (kind is None or memory_type == kind)
        }

    def _similarities(
        self, query: str, namespace: str | None, kind: str | None, dimensions: int
    ) -> dict[str, float]:
        living = self._living(namespace, kind)
        if not living:
            return {}
        embedder = HashedEmbedder(dimensions)
        vectors = embedder.embed_now(list(living.values()))
        scores = vectors @ embedder.embed_now([query])[0]
        return dict(zip(living, map(float, scores), strict=True))


def _steady(stats: dict[str, Any]) -> bool:
    """Whether no exchange is about to end or has just ended."""
    exchange = stats["embedding"]["reembedding"]
    if exchange["state"] == "running":
        return exchange["total"] is not None and exchange["target"] != stats["index"]["model"]
    return exchange["state"] in ("idle", "done")


Agreement.TestCase.settings = settings(
    max_examples=int(os.environ.get("SEARCH_HISTORIES", "25")),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestSearchAgrees = Agreement.TestCase


class AgreementOnPostgresql(Agreement):
    """The same where the database holds the indexes."""

    def url(self) -> str:
        return new_database()


AgreementOnPostgresql.TestCase.settings = settings(
    Agreement.TestCase.settings,
    max_examples=int(os.environ.get("SEARCH_HISTORIES", "25")) // 3,
)
TestSearchAgreesOnPostgresql = AgreementOnPostgresql.TestCase
