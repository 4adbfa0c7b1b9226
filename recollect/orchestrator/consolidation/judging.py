"""What two memories are to each other: repetitions, contradictions, or neither.

The texts are judged by `comparing`; here it is seen to that they speak of the same person, of the
same time and of the same thing at all.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

import msgspec

from recollect.orchestrator.consolidation.comparing import contradiction, said_otherwise, same
from recollect.orchestrator.consolidation.statements import (
    STATEMENT_CHARS_MAX,
    Statement,
    normalised,
    statement_of,
)
from recollect.orchestrator.consolidation.subjects import Said, said_by

Kind = Literal["duplicate", "contradiction"]
DUPLICATE: Kind = "duplicate"
CONTRADICTION: Kind = "contradiction"

SUBJECT_CHARS_MAX = 80
FACTS = frozenset({"general", "semantic"})
"""Types that state what is so; whoever names none means the same."""


class Looked(msgspec.Struct, frozen=True):
    """As much of a memory as judging it takes."""

    num: int
    version: int
    namespace: str
    key: str | None
    memory_type: str
    text: str
    """Normalised; of a long text only its digest."""
    statement: Statement | None
    """None for a long text, which says many things: it is only compared as a whole."""
    said: Said | None
    value: str | None
    author: str | None
    valid_us: tuple[int | None, int | None]


class Verdict(msgspec.Struct, frozen=True):
    """What two memories are to each other, and why."""

    kind: Kind
    reason: str


def looked_at(
    num: int,
    version: int,
    namespace: str,
    key: str | None,
    memory_type: str,
    content: str,
    value: str | None,
    author: str | None,
    valid_us: tuple[int | None, int | None],
) -> Looked:
    """A memory made ready to be judged."""
    short = len(content) <= STATEMENT_CHARS_MAX
    return Looked(
        num=num,
        version=version,
        namespace=namespace,
        key=key,
        memory_type=memory_type,
        text=normalised(content) if short else f"\x00{digest_of(content)}",
        statement=statement_of(content) if short else None,
        said=said_by(content) if short else None,
        value=value,
        author=author,
        valid_us=valid_us,
    )


def digest_of(content: str) -> str:
    """A long text by which it is known again."""
    return blake2b(normalised(content).encode("utf-8", "replace"), digest_size=16).hexdigest()


def judge(one: Looked, other: Looked) -> Verdict | None:
    """What two memories of one namespace are to each other; None if nothing."""
    if one.memory_type != other.memory_type and not {one.memory_type, other.memory_type} <= FACTS:
        return None
    # Two keys are two things, whatever is said of them.
    if one.key is not None and other.key is not None:
        return None
    if _personal(one) | _personal(other) and one.author != other.author:
        return None
    if one.valid_us == other.valid_us and one.value == other.value:
        if one.text == other.text:
            return Verdict(DUPLICATE, "the same text")
        if one.statement and other.statement and same(one.statement, other.statement):
            return Verdict(DUPLICATE, "the same in nearly the same words")
    if one.statement is None or other.statement is None or not _overlap(one, other):
        return None
    if (reason := contradiction(one.statement, other.statement)) is not None:
        return Verdict(CONTRADICTION, reason)
    if one.said is None or other.said is None or one.said.subject != other.said.subject:
        return None
    reason = said_otherwise(one.said, other.said)
    return None if reason is None else Verdict(CONTRADICTION, reason)


def subject_of(looked: Looked) -> str:
    """What a memory is about, for people."""
    if looked.key is not None:
        return looked.key[:SUBJECT_CHARS_MAX]
    if looked.said is not None:
        return looked.said.shown[:SUBJECT_CHARS_MAX]
    if looked.statement is None:
        return "a long text"
    text = " ".join(looked.statement.text.split())
    return text if len(text) <= SUBJECT_CHARS_MAX else f"{text[: SUBJECT_CHARS_MAX - 1]}\u2026"


def _personal(looked: Looked) -> bool:
    """Whether it depends on who speaks what is said; of a long text, it is taken to."""
    return looked.statement is None or looked.statement.personal


def _overlap(one: Looked, other: Looked) -> bool:
    """Whether there is a time at which both are said to hold."""
    (from_us, to_us), (other_from_us, other_to_us) = one.valid_us, other.valid_us
    ends_before = to_us is not None and other_from_us is not None and to_us <= other_from_us
    begins_after = other_to_us is not None and from_us is not None and other_to_us <= from_us
    return not ends_before and not begins_after
