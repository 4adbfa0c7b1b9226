"""The memory that stands for a group of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.rows import MemoryRow, decode_json
from recollect.orchestrator.memories.strength import Fading
from recollect.orchestrator.search.authorship import metadata_of, moment_us_of
from recollect.orchestrator.validation import Validator
from recollect.protocol.collection_names import SUMMARIES

SOURCE = "migration"
MEMORY_TYPE = "summary"
TIER = "long"
SOURCES_NAMED_MAX = 10


def summary_row(
    group: Sequence[MemoryRow],
    content: str,
    *,
    author: str,
    operation: str,
    now_us: int,
    fading: Fading,
    validator: Validator,
) -> MemoryRow:
    """A new memory that sums up some of one namespace, which come in order of time.

    It is trusted no more than the least of them, and says whom they had it from.
    """
    importance = max(row.importance for row in group)
    stability_s = max(
        fading.initial_stability_s(TIER, importance), *(row.stability_s for row in group)
    )
    own = {row.id for row in group}
    parent_id = _common([row.parent_id for row in group])
    return msgspec.structs.replace(
        group[0],
        num=0,
        id="",
        seq=0,
        key=None,
        version=1,
        collection=SUMMARIES,
        memory_type=MEMORY_TYPE,
        tier=TIER,
        content=content,
        value=None,
        metadata=validator.metadata(_metadata(group)),
        tags=validator.tags(_tags(group, validator.limits.tags_max)),
        importance=importance,
        stability_s=stability_s,
        access_count=0,
        last_access_us=now_us,
        fades_us=fading.fades_us(now_us, stability_s),
        parent_id=None if parent_id in own else parent_id,
        session_id=_common([row.session_id for row in group]),
        created_by=author,
        updated_by=author,
        source=SOURCE,
        trust=min(row.trust for row in group),
        valid_from_us=None,
        valid_to_us=None,
        created_us=now_us,
        updated_us=now_us,
        expires_us=None,
        archived_us=None,
        deleted_us=None,
        operation=operation,
    )


def _metadata(group: Sequence[MemoryRow]) -> dict[str, Any]:
    named = dict.fromkeys(row.source or row.created_by for row in group)
    moments = [moment_us_of(row, metadata_of(row)) for row in group]
    return {
        "summarises": len(group),
        "first_at": to_iso(min(moments)),
        "last_at": to_iso(max(moments)),
        "sources": [name for name in named if name is not None][:SOURCES_NAMED_MAX],
    }


def _tags(group: Sequence[MemoryRow], most: int) -> list[str]:
    return list(dict.fromkeys(tag for row in group for tag in decode_json(row.tags)))[:most]


def _common(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None
