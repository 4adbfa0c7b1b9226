"""The words of a copy, made of its memories as its own storage keeps them."""

from __future__ import annotations

from collections.abc import Callable

from recollect.orchestrator.memories.rows import PRESENT
from recollect.orchestrator.memories.words_rebuilding import learn, page
from recollect.orchestrator.relocation.bookmarks import Bookmark, bookmark, put_bookmark
from recollect.orchestrator.relocation.side import CopySession, Side, transaction
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.storage.inserting import Gathered
from recollect.orchestrator.storage.interface import SequenceCounter, WriteTransaction
from recollect.protocol.errors import StorageFailed

WORDS = "words"
SEARCHED = f"SELECT count(*) FROM memories WHERE {PRESENT}"
PAGE_ROWS = 1_000


def copy_words(target: Side, report: Callable[[str, int, int], None]) -> None:
    """Index the words of all memories, or go on with it."""
    session = target.session
    [(total,)] = session.execute(SEARCHED)
    known = bookmark(session, WORDS)
    if known is None:
        known = Bookmark(after=(0,))
        with transaction(session):
            write = _write(session)
            target.lexical.clear(write)
            write.keep()
            put_bookmark(session, WORDS, known)
    after, done = int(known.after[0]), known.rows
    while rows := page(after, session, PAGE_ROWS):
        with transaction(session):
            write = _write(session)
            learn(rows, write)
            target.lexical.seal(session, [write])
            after, done = rows[-1].num, done + len(rows)
            failpoint("copying_words")
            put_bookmark(session, WORDS, Bookmark(after=(after,), rows=done))
        report("Indexing words", done, total)
    [(held,)] = session.execute(f"SELECT count(*) FROM ({target.lexical.held_sql}) AS held")
    if held != total:
        raise StorageFailed(
            f"The words of {held} memories are in the copy, and it has {total}. The copy is not "
            "used; try again into a new database."
        )


def _write(session: CopySession) -> WriteTransaction:
    return WriteTransaction(session, SequenceCounter(0), Gathered(), None)
