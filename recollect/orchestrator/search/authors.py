"""Who has written into which namespace, so that a question that names somebody is understood."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction

KEEP = Insert("authors", ("namespace", "author"), present=("namespace", "author"))
# An author named in the metadata stands there as a text in JSON.
FORGET = """
DELETE FROM authors WHERE namespace = ? AND author = ? AND NOT EXISTS (
    SELECT 1 FROM memories WHERE memories.namespace = ?
    AND (created_by = ? OR metadata LIKE ? ESCAPE '\\')
)
"""
FIND = "SELECT DISTINCT author FROM authors WHERE {condition} LIMIT ?"
EVERYWHERE: Condition = ("TRUE", [])
KNOWN_MAX = 100_000
FOUND_MAX = 1_000


class Authors:
    """Notes authors in the transactions that write for them, and finds those of a scope."""

    def __init__(self, *, alone: bool) -> None:
        """`alone` says that nobody else writes to the store, who might forget an author."""
        self._known_max = KNOWN_MAX if alone else 0
        # Those that are surely in the table: filled after a commit, on the event loop; read, and
        # thinned, by the writer. Only ever a shortcut, and emptied when it grows too large.
        self._known: set[tuple[str, str]] = set()
        # Those of all namespaces, for which the whole table is gone through; only where nobody else
        # writes. Kept by any reader, unless an author came or went since it began: that is counted
        # on the event loop.
        self._anywhere: tuple[str, ...] | None = None
        self._changes = 0
        # What going through the whole table took of the processor the last time.
        self._walk_s = math.inf

    def note(self, transaction: WriteTransaction, namespace: str, author: str | None) -> None:
        """Remember that somebody has written into a namespace."""
        if author is None or (pair := (namespace, author)) in self._known:
            return
        transaction.insert(KEEP, [pair])
        if self._known_max:
            transaction.after_commit.append(lambda: self._learn(pair))

    def forget(self, transaction: WriteTransaction, namespace: str, author: str | None) -> None:
        """Forget somebody of whom no memory is left in a namespace."""
        if author is None:
            return
        quoted = encode_json(author).decode()
        for special in ("\\", "%", "_"):
            quoted = quoted.replace(special, f"\\{special}")
        transaction.execute(FORGET, (namespace, author, namespace, author, f"%{quoted}%"))
        self._known.discard((namespace, author))
        transaction.after_commit.append(self._changed)

    def within(self, session: Session, home: Condition | None) -> Sequence[str]:
        """Who has written into the namespaces that fit, or anywhere; a bounded number of them."""
        if home is not None:
            return _found(session, home)
        anywhere, changes = self._anywhere, self._changes
        if anywhere is not None:
            return anywhere
        began_s = time.thread_time()
        anywhere = tuple(_found(session, EVERYWHERE))
        self._walk_s = time.thread_time() - began_s
        # Whoever asks for them does so first in its read: what it sees is no older than the count.
        if self._known_max and changes == self._changes:
            self._anywhere = anywhere
        return anywhere

    def quick(self, home: Condition | None, within_s: float) -> bool:
        """Whether it takes no longer to find them, as far as that is known."""
        return home is not None or self._anywhere is not None or self._walk_s <= within_s

    def _changed(self) -> None:
        self._changes += 1
        self._anywhere = None

    def _learn(self, pair: tuple[str, str]) -> None:
        if len(self._known) >= self._known_max:
            self._known.clear()
        self._known.add(pair)
        if self._anywhere is None or pair[1] not in self._anywhere:
            self._changed()


def _found(session: Session, home: Condition) -> list[str]:
    condition, params = home
    found = session.execute(FIND.format(condition=condition), (*params, FOUND_MAX))
    return [author for (author,) in found]
