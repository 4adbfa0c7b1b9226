"""Embedding around what an embedder refuses: one text must not hold up the others."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from recollect.orchestrator.embedding.interface import Pooled
from recollect.orchestrator.embedding.pipeline import Embedding
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.protocol.errors import EmbedderUnavailable

log = structlog.get_logger()

HARMLESS = "A harmless text."


async def embedded_singly(
    embedding: Embedding, rows: Sequence[MemoryRow]
) -> list[tuple[MemoryRow, Pooled]]:
    """What the embedder makes of some memories; one that it refuses is left out.

    Whether it refuses a text or is away, a harmless text tells.
    """
    if not rows:
        return []
    texts = [meaning_of(row) for row in rows]
    try:
        return list(zip(rows, await embedding.pooled(texts), strict=True))
    except EmbedderUnavailable:
        await embedding.pooled([HARMLESS])
    made: list[tuple[MemoryRow, Pooled]] = []
    for row, text in zip(rows, texts, strict=True):
        try:
            made.append((row, await _alone(embedding, text, f"{HARMLESS} {row.num}")))
        except EmbedderUnavailable as error:
            await embedding.pooled([f"{HARMLESS} {row.num} again"])
            log.warning(
                "A memory could not be embedded.",
                action="embed",
                memory_id=row.id,
                reason=error.message,
            )
    return made


async def _alone(embedding: Embedding, text: str, harmless: str) -> Pooled:
    """What the embedder makes of one text.

    A first refusal may be meant for what was left of an earlier batch and went with it; once a
    harmless text is through, that is gone.
    """
    try:
        [pooled] = await embedding.pooled([text])
    except EmbedderUnavailable:
        await embedding.pooled([harmless])
        [pooled] = await embedding.pooled([text])
    return pooled
