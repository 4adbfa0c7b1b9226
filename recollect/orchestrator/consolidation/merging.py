"""One memory out of several, made of their own sentences and properties; no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.orchestrator.consolidation.judging import Looked, judge, looked_at
from recollect.orchestrator.consolidation.sentences import ended, sentences
from recollect.orchestrator.consolidation.statements import normalised
from recollect.orchestrator.memories.rows import MemoryRow, decode_json, encode_json
from recollect.orchestrator.memories.strength import Fading

SOURCE = "consolidation"
TIERS = ("short", "medium", "long")
COMPARED_MAX = 100
"""Sentences that are compared by what they say; beyond that only the same words count."""


def merged_text(rows: Sequence[MemoryRow]) -> str:
    """All that some memories say, each thing once; of what contradicts, what the first ones say.

    The memories come with the one that counts most first.
    """
    kept: list[str] = []
    known: set[str] = set()
    judged: list[Looked] = []
    for row in rows:
        for sentence in sentences(row.content):
            plain = normalised(sentence)
            if plain in known:
                continue
            if len(judged) < COMPARED_MAX:
                looked = looked_at(
                    row.num, 1, row.namespace, None, row.memory_type, sentence, None, None, _ALWAYS
                )
                if any(judge(looked, other) is not None for other in judged):
                    continue
                judged.append(looked)
            known.add(plain)
            kept.append(sentence)
    if len(kept) == 1:
        return kept[0]
    lined = any("\n" in row.content for row in rows)
    return ("\n" if lined else " ").join(map(ended, kept))


_ALWAYS = (None, None)


def merged_row(
    rows: Sequence[MemoryRow],
    content: str,
    *,
    author: str,
    operation: str,
    now_us: int,
    fading: Fading,
    tags_max: int,
    metadata_bytes_max: int,
) -> MemoryRow:
    """A new memory in the place of some, which come with the one that counts most first.

    It is trusted no more than the least of them, and fades no sooner than the last.
    """
    first = rows[0]
    importance = max(row.importance for row in rows)
    tier = max((row.tier for row in rows), key=TIERS.index)
    stability_s = max(row.stability_s for row in rows)
    last_access_us = max(row.last_access_us for row in rows)
    return msgspec.structs.replace(
        first,
        num=0,
        id="",
        seq=0,
        key=None,
        version=1,
        content=content,
        tier=tier,
        metadata=_metadata(rows, metadata_bytes_max),
        tags=_tags(rows, tags_max),
        importance=importance,
        stability_s=stability_s,
        access_count=sum(row.access_count for row in rows),
        last_access_us=last_access_us,
        fades_us=fading.fades_us(last_access_us, stability_s),
        parent_id=_common([row.parent_id for row in rows]),
        session_id=_common([row.session_id for row in rows]),
        created_by=author,
        updated_by=author,
        source=SOURCE,
        trust=min(row.trust for row in rows),
        created_us=now_us,
        updated_us=now_us,
        archived_us=None,
        deleted_us=None,
        operation=operation,
    )


def _tags(rows: Sequence[MemoryRow], most: int) -> str:
    tags = dict.fromkeys(tag for row in rows for tag in decode_json(row.tags))
    return encode_json(list(tags)[:most]).decode()


def _metadata(rows: Sequence[MemoryRow], bytes_max: int) -> str:
    """What any of them says of itself; what the first ones say wins."""
    merged: dict[str, Any] = {}
    for row in reversed(rows):
        merged |= decode_json(row.metadata)
    encoded = encode_json(merged)
    return encoded.decode() if len(encoded) <= bytes_max else rows[0].metadata


def _common(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None
