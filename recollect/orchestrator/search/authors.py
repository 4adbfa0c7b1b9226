"""Who has written into which namespace, so that a question that names somebody is understood."""

from __future__ import annotations

from recollect.orchestrator.rows import encode_json
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

    def within(self, session: Session, home: Condition | None) -> list[str]:
        """Who has written into the namespaces that fit, or anywhere; a bounded number of them."""
        condition, params = home or ("TRUE", [])
        found = session.execute(FIND.format(condition=condition), (*params, FOUND_MAX))
        return [author for (author,) in found]

    def _learn(self, pair: tuple[str, str]) -> None:
        if len(self._known) >= self._known_max:
            self._known.clear()
        self._known.add(pair)
