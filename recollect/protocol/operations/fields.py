"""Field types that several operations share, each with its help and its fixed bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from recollect.protocol.collection_names import COLLECTIONS
from recollect.protocol.tool import FOR_PROGRAMS

DEFAULT_NAMESPACE = "app:default"
INTEGER_MAX = (1 << 63) - 1
"""The largest that a column holds; MessagePack has larger ones."""
RUN_ITEMS_MAX = 100_000
"""How much one run sees to at most. It is bounded apart from pages: it answers with counts."""

WORD = r"^[a-z][a-z0-9_.-]{0,63}$(?!\n)"
"""A word of somebody's own in small letters; `$` alone would let a line's end pass."""

Content = Annotated[str, Meta(min_length=1, description="What to remember.")]
MemoryType = Annotated[
    str,
    Meta(
        pattern=WORD,
        description="Kind of memory: general, semantic, episodic, procedural, or a word of yours.",
    ),
]
MemoryTypeFilter = Annotated[str | None, Meta(description="Only memories of this type.")]
MemoryTier = Annotated[
    Literal["short", "medium", "long"], Meta(description="How fast it fades: short, medium, long.")
]
Importance = Annotated[
    float, Meta(ge=0, le=1, description="From 0 to 1; important memories fade more slowly.")
]
Trust = Annotated[float, Meta(ge=0, le=1, description="From 0 to 1: how far to believe it.")]
Metadata = Annotated[
    dict[str, Any] | None, Meta(description="Any JSON object; its paths can be filtered on.")
]
Tags = Annotated[list[str] | None, Meta(description="Labels to filter by.")]
MemoryId = Annotated[str, Meta(min_length=1, description="Id of the memory.")]
ParentId = Annotated[str | None, Meta(description="Id of the memory this one is a part of.")]
Namespace = Annotated[
    str,
    Meta(
        description="Where it lives: temp, session, user, app or project, then parts after colons."
    ),
]
NamespaceFilter = Annotated[
    str | None, Meta(description="Only this namespace and those below it; all if absent.")
]
Key = Annotated[
    Annotated[str, Meta(min_length=1)] | None,
    Meta(description="A name of your own, unique in its namespace."),
]
Value = Annotated[Any, Meta(description="Any JSON value to keep beside the text.")]
ExpectedVersion = Annotated[
    Annotated[int, Meta(ge=1, le=INTEGER_MAX)] | None,
    Meta(description="Refuse with version_conflict unless this is the present version."),
]
DryRun = Annotated[bool, Meta(description="Only say what would be done.")]
MinSeq = Annotated[
    Annotated[int, Meta(ge=0, le=INTEGER_MAX)] | None,
    Meta(
        description="Wait until this change is visible: read your own writes.",
        extra=FOR_PROGRAMS,
    ),
]
Moment = Annotated[str | float | None, Meta(description="ISO 8601 text, or seconds since 1970.")]
AsOf = Annotated[
    str | float | None,
    Meta(description="Read the past: ISO 8601 text, or seconds since 1970."),
]
Version = Annotated[int, Meta(ge=1, le=INTEGER_MAX)]
Cursor = Annotated[
    str | None, Meta(description="Where the last page ended: the `cursor` of its answer.")
]
Limit = Annotated[int, Meta(ge=1, le=INTEGER_MAX, description="How many at most.")]
Filters = Annotated[
    dict[str, Any] | None,
    Meta(
        description="Conditions on fields, tags and metadata paths, applied before ranking: "
        '{"memory_type": "general"}, {"importance": {"gte": 0.5}}, AND, OR, NOT.'
    ),
]
Threshold = Annotated[
    float | None,
    Meta(description="Leave out what scores less than this.", extra=FOR_PROGRAMS),
]
LikenessMin = Annotated[
    Annotated[float, Meta(ge=-1, le=1)] | None,
    Meta(description="From -1 to 1: leave out what is less alike than this.", extra=FOR_PROGRAMS),
]
SearchAsOf = Annotated[
    str | float | None,
    Meta(description="Search the past: what was known then, as it was then."),
]
Explain = Annotated[
    bool, Meta(description="Say of each result how its score came about.", extra=FOR_PROGRAMS)
]
ShownFields = Annotated[
    list[str] | None,
    Meta(
        description="Show only these fields of each memory, beside its id and score, such as "
        "content and metadata; all if absent.",
        extra=FOR_PROGRAMS,
    ),
]
Query = Annotated[str, Meta(min_length=1, description="What to look for.")]
TaskId = Annotated[str, Meta(min_length=1, description="The task, by the name that it has.")]
MaxTokens = Annotated[int, Meta(ge=1, le=10_000_000, description="How many tokens at most.")]
Collections = Annotated[
    list[str] | None,
    Meta(description=f"Only these collections, any of: {', '.join(COLLECTIONS)}."),
]
