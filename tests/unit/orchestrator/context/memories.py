"""Memories as a search brings them, made from little."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from recollect.orchestrator.context.fencing import draw_nonce, quotation_of
from recollect.orchestrator.context.selection import Selected, Selection
from recollect.orchestrator.context.weighing import Considered, value_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.tokens import Estimate, TokenCounter

DEFAULTS: dict[str, Any] = {
    "seq": 1,
    "namespace": "app:default",
    "key": None,
    "version": 1,
    "collection": "memories",
    "memory_type": "general",
    "tier": "long",
    "value": None,
    "metadata": "{}",
    "tags": "[]",
    "importance": 0.5,
    "stability_s": 1.0,
    "access_count": 0,
    "last_access_us": 0,
    "fades_us": 0,
    "parent_id": None,
    "session_id": None,
    "created_by": "agent",
    "updated_by": "agent",
    "source": None,
    "trust": 1.0,
    "valid_from_us": None,
    "valid_to_us": None,
    "created_us": 0,
    "updated_us": 0,
    "expires_us": None,
    "archived_us": None,
    "deleted_us": None,
    "operation": "add_memory",
}


def memory(
    num: int,
    content: str,
    score: float = 1.0,
    *,
    tier: Any = "longterm",
    first: bool = False,
    vector: list[float] | None = None,
    **columns: Any,
) -> Considered:
    row = MemoryRow(**{**DEFAULTS, "num": num, "id": f"m{num}", "content": content, **columns})
    return Considered(
        row=row,
        tier=tier,
        score=score,
        value=value_of(score, row.trust),
        first=first,
        vector=None if vector is None else np.array(vector, dtype=np.float32),
    )


def select(
    considered: list[Considered],
    tokens_max: int,
    counter: TokenCounter | None = None,
    live: Any = (),
) -> Selected:
    quoted = [(one, quotation_of(one.row)) for one in considered]
    nonce = draw_nonce(random.Random(3), [quotation for _, quotation in quoted])
    return Selection(counter or Estimate(), nonce, tokens_max, quoted).run(live)


def chosen(selected: Selected) -> list[int]:
    return [pick.considered.row.num for pick in selected.picks]
