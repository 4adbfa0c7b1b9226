"""Typed, weighted links between memories."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields
from recollect.protocol.tool import Tool


@operation(access="write", http=("POST", "/v1/relationships"))
class AddRelationship(Operation[records.RelationshipAdded], frozen=True):
    """Link one memory to another; linking them again by the same type changes the strength."""

    source_id: fields.MemoryId
    target_id: fields.MemoryId
    relationship_type: Annotated[
        str,
        Meta(min_length=1, max_length=64, description="What the link says: supports, contradicts…"),
    ]
    strength: Annotated[float, Meta(ge=0, le=1, description="From 0 to 1.")] = 1.0


class GetRelatedMemoriesOptions(Operation[records.RelatedFound], frozen=True, kw_only=True):
    depth: Annotated[
        int, Meta(ge=1, le=fields.INTEGER_MAX, description="How many links to walk.")
    ] = 1
    direction: Annotated[
        Literal["both", "out", "in"], Meta(description="Which way to follow the links.")
    ] = "both"
    limit: fields.Limit = 100
    min_seq: fields.MinSeq = None


@operation(
    access="read",
    http=("GET", "/v1/memories/{memory_id}/related"),
    mcp=Tool(
        name="get_related",
        when="Use it to follow links from a memory that was found: what supports it, contradicts "
        "it, or was made from it.",
        example={"memory_id": "0198f2a3b4c5d6e7", "depth": 2},
    ),
)
class GetRelatedMemories(GetRelatedMemoriesOptions, frozen=True):
    """The memories linked to one, from either end, the nearest and strongest first."""

    memory_id: fields.MemoryId
    relationship_type: Annotated[str | None, Meta(description="Only links of this type.")] = None
