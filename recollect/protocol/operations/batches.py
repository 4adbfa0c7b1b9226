"""Many memories in one call."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields


class BatchAddMemoriesOptions(Operation[records.BatchAdded], frozen=True, kw_only=True):
    namespace: Annotated[
        str | None, Meta(description="For the items that name no namespace of their own.")
    ] = None
    atomic: Annotated[
        bool, Meta(description="Refuse the whole batch if one item is bad, instead of that item.")
    ] = False


@operation(access="write", http=("POST", "/v1/memories:batch"))
class BatchAddMemories(BatchAddMemoriesOptions, frozen=True):
    """Store many memories in one transaction, with an answer for each."""

    memories: Annotated[
        list[dict[str, Any]],
        Meta(min_length=1, description="Each a dict of the arguments of add_memory."),
    ]


class BatchGetMemoriesOptions(Operation[records.BatchFetched], frozen=True, kw_only=True):
    min_seq: fields.MinSeq = None


@operation(access="read", http=("POST", "/v1/memories:get"))
class BatchGetMemories(BatchGetMemoriesOptions, frozen=True):
    """Read many memories by id, with an answer for each."""

    memory_ids: Annotated[list[str], Meta(min_length=1, description="Ids, in the order wanted.")]
