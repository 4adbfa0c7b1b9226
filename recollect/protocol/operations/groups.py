"""Context groups: memories that belong to one piece of work."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

GroupId = Annotated[str, Meta(min_length=1, description="Id of the group.")]


class CreateContextGroupOptions(Operation[records.GroupCreated], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="write", http=("POST", "/v1/groups"))
class CreateContextGroup(CreateContextGroupOptions, frozen=True):
    """Make a group that memories can be put into."""

    name: Annotated[str, Meta(min_length=1, max_length=256, description="For people to read.")]
    description: Annotated[
        Annotated[str, Meta(max_length=4096)] | None, Meta(description="What the group is for.")
    ] = None


@operation(access="write", http=("POST", "/v1/groups/{group_id}/memories"))
class AddToGroup(Operation[records.GroupJoined], frozen=True):
    """Put a memory into a group; once is enough."""

    memory_id: fields.MemoryId
    group_id: GroupId


class GetMemoriesByGroupOptions(Operation[records.MemoriesListed], frozen=True, kw_only=True):
    limit: fields.Limit = 50
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/groups/{group_id}/memories"))
class GetMemoriesByGroup(GetMemoriesByGroupOptions, frozen=True):
    """The memories of a group, in the order in which they joined."""

    group_id: GroupId
