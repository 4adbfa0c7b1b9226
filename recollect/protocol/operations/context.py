"""Context: what an agent should have in view for its next task, within a number of tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields
from recollect.protocol.tool import Tool

ContextTier = Literal["operational", "working", "longterm", "knowledge"]
CONTEXT_TIERS: tuple[ContextTier, ...] = ("operational", "working", "longterm", "knowledge")


class AssembleContextOptions(Operation[records.ContextAssembled], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    filters: fields.Filters = None
    task_id: Annotated[
        str | None, Meta(description="The task at hand; what belongs to it comes first.")
    ] = None
    trust_min: Annotated[
        float, Meta(ge=0, le=1, description="Leave out what is trusted less than this.")
    ] = 0.0
    min_seq: fields.MinSeq = None


@operation(
    access="read",
    http=("POST", "/v1/context:assemble"),
    mcp=Tool(
        when="Use it once at the beginning of a task; `recall` answers single questions later.",
        example={"task_description": "Upgrade the database of the shop", "max_tokens": 2000},
    ),
)
class AssembleContext(AssembleContextOptions, frozen=True):
    """The context for a task: how things stand, and the most helpful of what is remembered.

    Never more than `max_tokens`. Each piece is fenced and marked as data, with its source, time
    and trust; the receipt tells later what was given."""

    task_description: Annotated[str, Meta(min_length=1, description="What is to be done.")]
    max_tokens: fields.MaxTokens = 4000
    tiers: Annotated[
        list[ContextTier],
        Meta(description="Where to look: operational, working, longterm, knowledge."),
    ] = field(default_factory=lambda: list(CONTEXT_TIERS))


@operation(access="read", http=("GET", "/v1/context/{receipt_id}"))
class ReplayContext(Operation[records.ContextReplayed], frozen=True):
    """A context as it was given before: the same memories in the same versions."""

    receipt_id: Annotated[str, Meta(min_length=1, description="The receipt of that context.")]
