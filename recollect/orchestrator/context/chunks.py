"""The pieces of a context as callers see them beside its text."""

from __future__ import annotations

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.context import live
from recollect.orchestrator.context.fencing import Quotation
from recollect.orchestrator.context.live import LivePiece
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.authorship import author_of, metadata_of, moment_us_of
from recollect.protocol import records


def memory_chunk(
    n: int,
    row: MemoryRow,
    quoted: Quotation,
    *,
    tier: str,
    score: float,
    tokens: int,
    chars: int | None,
) -> records.ContextChunk:
    """A memory that was given."""
    metadata = metadata_of(row)
    return {
        "n": n,
        "memory_id": row.id,
        "version": row.version,
        "tier": tier,
        "collection": row.collection,
        "namespace": row.namespace,
        "source": row.source,
        "author": author_of(row.created_by, metadata),
        "at": to_iso(moment_us_of(row, metadata)),
        "trust": row.trust,
        "score": score,
        "tokens": tokens,
        "truncated": chars is not None,
        "text": quoted.shown(chars),
    }


def live_chunk(n: int, piece: LivePiece, tokens: int) -> records.ContextChunk:
    """A part of how things stood."""
    return {
        "n": n,
        "memory_id": None,
        "version": None,
        "tier": live.TIER,
        "collection": piece.kind,
        "namespace": piece.namespace,
        "source": None,
        "author": piece.author,
        "at": piece.at,
        "trust": 1.0,
        "score": 1.0,
        "tokens": tokens,
        "truncated": False,
        "text": piece.quotation.text,
    }
