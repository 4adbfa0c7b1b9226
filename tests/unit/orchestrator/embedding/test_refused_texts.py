"""A text that the embedder refuses holds up no other; an embedder that is away is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Kind, Vectors
from recollect.orchestrator.embedding.pipeline import Embedding
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.vectors.refused_texts import embedded_singly
from recollect.protocol.errors import EmbedderUnavailable


class Picky(HashedEmbedder):
    """Refuses a whole batch for one word in it, as a server may."""

    inline = False
    away = False

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        if self.away or any("poison" in text for text in texts):
            raise EmbedderUnavailable("refused")
        return super().embed_now(texts, kind)


def row(num: int, content: str) -> MemoryRow:
    values: dict[str, Any] = dict.fromkeys(MemoryRow.__struct_fields__)
    return MemoryRow(**values | {"num": num, "id": f"m{num}", "content": content, "metadata": "{}"})


def made_of(embedder: Picky, contents: Sequence[str]) -> list[str]:
    """The contents that were embedded, in their order."""

    async def run() -> list[str]:
        embedding = Embedding(
            embedder,
            loop=asyncio.get_running_loop(),
            threads=2,
            batch_texts_max=4,
            queue_texts_max=100,
            cache_texts_max=100,
        )
        try:
            rows = [row(num, content) for num, content in enumerate(contents, 1)]
            return [kept.content for kept, _ in await embedded_singly(embedding, rows)]
        finally:
            embedding.close()

    return asyncio.run(asyncio.wait_for(run(), 20))


def test_only_what_is_refused_is_left_out() -> None:
    contents = ["one", "two poison", "three", "four", "poison five", "six"]
    assert made_of(Picky(16), contents) == ["one", "three", "four", "six"]
    assert made_of(Picky(16), ["poison"]) == []
    assert made_of(Picky(16), []) == []


def test_an_embedder_that_is_away_is_told_from_a_text_that_it_refuses() -> None:
    embedder = Picky(16)
    embedder.away = True
    with pytest.raises(EmbedderUnavailable):
        made_of(embedder, ["one", "two"])
