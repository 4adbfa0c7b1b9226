"""A write takes effect once: its answer is kept under its key, in the write's own transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call, expired
from recollect.orchestrator.canonical import canonical
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Embedded, Meaning, Meanings
from recollect.orchestrator.jobs.fencing import check_fence
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import (
    Change,
    Session,
    WriteFunction,
    WriteTransaction,
)
from recollect.protocol.errors import IdempotencyConflict
from recollect.protocol.operation import Operation

FIND = """
SELECT key, operation, payload_hash, reply, namespaces FROM idempotency
WHERE identity = ? AND key IN ({keys})
"""
KEEP = Insert(
    "idempotency",
    ("identity", "key", "operation", "payload_hash", "reply", "at_us", "namespaces"),
)
# A bounded step, so that trimming never holds up the writer for long.
TRIM = """
DELETE FROM idempotency WHERE (identity, key) IN (
    SELECT identity, key FROM idempotency WHERE at_us < ? ORDER BY at_us LIMIT ?
)
RETURNING 1
"""
COUNT_OLD = "SELECT count(*) FROM (SELECT 1 FROM idempotency WHERE at_us < ? LIMIT ?) AS old"
# What an answer repeats of its request, so that a text of a memory is in no kept answer.
ECHOED = ("key", "task_id")

_encode = msgspec.msgpack.Encoder().encode


class Answered(msgspec.Struct, frozen=True):
    """What was answered under a key, and to what."""

    operation: str
    payload_hash: bytes
    reply: bytes
    namespaces: str | None
    """Where its changes were by the right of who made them, a line each."""


Known = dict[tuple[str, str], Answered]


class Prefetched(msgspec.Struct, frozen=True):
    """What a batch of writes needs before its first one runs."""

    known: Known
    """Answers that are kept for the keys of the batch."""
    meaning: Meaning
    vectors: dict[str, Vectors | None]
    """The vectors of the texts that its functions name."""

    def embedded(self, text: str) -> Embedded:
        """One of those vectors; none if the model was just exchanged for one that takes longer."""
        return Embedded(self.meaning, [text], [self.vectors.get(text)])


class Once:
    """A write that gives its encoded answer, and the same answer when it comes again."""

    __slots__ = (
        "_call",
        "_check_allowed",
        "_clock",
        "_echoed",
        "_function",
        "_payload_hash",
        "mark",
        "texts",
    )

    def __init__(
        self,
        call: Call,
        operation: Operation[Any],
        function: WriteFunction[Any],
        clock: Clock,
        check_allowed: Callable[[Call], None],
    ) -> None:
        """`check_allowed` refuses a call whose caller may no longer do what it might."""
        self._call = call
        self._clock = clock
        self._check_allowed = check_allowed
        self._function = function
        self._payload_hash = b""
        self._echoed: dict[str, Any] = {}
        self.texts: tuple[str, ...] = getattr(function, "texts", ())
        """Texts whose vectors the function will ask for."""
        self.mark: tuple[str, str] | None = None
        """Whose write it is and under which key; None if it may be repeated."""
        if call.key is not None:
            self.mark = (call.identity, call.key)
            for name in ECHOED:
                if (value := getattr(operation, name, None)) is not None:
                    self._echoed[name] = value
            self._payload_hash = hashlib.blake2b(canonical(operation), digest_size=16).digest()

    def __call__(self, transaction: WriteTransaction) -> bytes:
        if self._clock.now_us() >= self._call.deadline_us:
            raise expired()
        self._check_allowed(self._call)
        if self._call.fence is not None:
            check_fence(self._call, transaction)
        if self.mark is None:
            return _encode(self._function(transaction))
        known: Known = transaction.prefetched.known
        before = known.get(self.mark)
        if before is not None:
            self._check(before)
            return self._complete(before.reply)
        result = self._function(transaction)
        answered = reply = _encode(result)
        if self._echoed:
            reply = _encode(self._kept(result))
        name = self._call.operation
        changed = transaction.changes
        if not changed:
            # There is no effect to be had twice, and nothing would say who may be told again.
            return answered
        if len(changed) == 1:
            namespaces = changed[0].namespace
        else:
            namespaces = "\n".join(self._places(changed)) or None
        transaction.insert(
            KEEP,
            [(*self.mark, name, self._payload_hash, reply, self._call.now_us, namespaces)],
        )
        # The same key may come again within this very batch.
        known[self.mark] = Answered(name, self._payload_hash, reply, namespaces)
        return answered

    def _places(self, changed: Sequence[Change]) -> list[str]:
        """Where the caller changed something by its own right. What it set free elsewhere, because
        it hung below what is gone, is not its to be told of."""
        allows, access = self._call.grants.allows, self._call.access
        named = {change.namespace for change in changed if change.namespace}
        return sorted(namespace for namespace in named if allows(namespace, access))

    def _kept(self, result: dict[str, Any]) -> dict[str, Any]:
        """What is kept of an answer: nothing where it repeats the request."""
        return {
            name: None if name in self._echoed and self._echoed[name] == value else value
            for name, value in result.items()
        }

    def _complete(self, kept: bytes) -> bytes:
        """An answer that was kept, as it was given."""
        if not self._echoed:
            return kept
        told: dict[str, Any] = msgspec.msgpack.decode(kept)
        for name, value in self._echoed.items():
            if name in told and told[name] is None:
                told[name] = value
        return _encode(told)

    def _check(self, before: Answered) -> None:
        if before.operation != self._call.operation or before.payload_hash != self._payload_hash:
            raise IdempotencyConflict(
                f"The idempotency key {self._call.key!r} was used before with another operation or "
                "payload; use a new key for a new write.",
                key=self._call.key,
                operation=before.operation,
            )
        # What the caller may no longer do, it may not be told of again either.
        for namespace in (before.namespaces or "").splitlines():
            self._call.require(namespace, self._call.key or "")


class Prefetch:
    """Brings, for a whole batch at once, what each of its writes will ask for."""

    def __init__(self, meanings: Meanings) -> None:
        self._meanings = meanings

    def __call__(self, session: Session, functions: Sequence[Any]) -> Prefetched:
        once = [function for function in functions if isinstance(function, Once)]
        texts = [text for function in once for text in function.texts]
        meaning, vectors = self._meanings.current, dict[str, Vectors | None]()
        if texts and meaning.embedding.inline:
            embedded = self._meanings.embed_now(texts)
            meaning = embedded.meaning
            vectors.update(zip(texts, embedded.vectors, strict=True))
        return Prefetched(_known(session, once), meaning, vectors)


def _known(session: Session, functions: Sequence[Once]) -> Known:
    keys: dict[str, list[str]] = {}
    for function in functions:
        if function.mark is not None:
            identity, key = function.mark
            keys.setdefault(identity, []).append(key)
    known: Known = {}
    for identity, wanted in keys.items():
        sql = FIND.format(keys=", ".join("?" for _ in wanted))
        for key, name, payload_hash, reply, where in session.execute(sql, (identity, *wanted)):
            known[identity, key] = Answered(name, bytes(payload_hash), bytes(reply), where)
    return known


def trim(before_us: int, rows_max: int, transaction: WriteTransaction) -> int:
    """Forget the oldest answers, so many at most; how many."""
    return len(transaction.execute(TRIM, (before_us, rows_max)))
