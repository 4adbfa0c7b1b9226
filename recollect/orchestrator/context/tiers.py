"""Where to look for a context: which memories belong to which of its tiers.

Knowledge is what documents say and what was stored as such, wherever it stands in time; every other
memory belongs to the tier that it has.
"""

from __future__ import annotations

from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.filters import Condition
from recollect.protocol.collection_names import DOCUMENTS, KNOWLEDGE
from recollect.protocol.operations.context import ContextTier

KNOWING = (DOCUMENTS, KNOWLEDGE)
KNOWLEDGE_TYPE = "knowledge"
IS_KNOWLEDGE = "(collection IN ('documents', 'knowledge') OR memory_type = 'knowledge')"
STORED_AS: dict[str, ContextTier] = {
    "short": "operational",
    "medium": "working",
    "long": "longterm",
}
_STORED = {tier: stored for stored, tier in STORED_AS.items()}


def condition_of(tier: ContextTier, trust_min: float) -> Condition:
    """What belongs to a tier and is trusted enough, over the columns of `memories`."""
    if tier == "knowledge":
        sql = IS_KNOWLEDGE
    else:
        sql = f"tier = '{_STORED[tier]}' AND NOT {IS_KNOWLEDGE}"
    if trust_min > 0:
        return f"{sql} AND trust >= ?", [trust_min]
    return sql, []


def tier_of(row: MemoryRow) -> ContextTier:
    """The tier that a memory counts for."""
    if row.collection in KNOWING or row.memory_type == KNOWLEDGE_TYPE:
        return "knowledge"
    return STORED_AS[row.tier]
