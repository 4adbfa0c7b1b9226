"""The full-text index, made anew when what is indexed of a memory has changed."""

from __future__ import annotations

from functools import partial

import structlog

from recollect.orchestrator.memories.memory_texts import words_of
from recollect.orchestrator.memories.rows import COLUMNS, PRESENT, MemoryRow
from recollect.orchestrator.search.lexical import LexicalIndex
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.storage.properties import get_property, set_property

log = structlog.get_logger()

PROPERTY = "words_version"
BEGUN = "begun"
PAGE_ROWS = 5_000
PAGE_CHARS = 2_000_000
"""A page is one transaction, for which all other writes wait: long texts are fewer of one."""
REPORT_ROWS = 100_000
SIZES = f"""
SELECT num, length(content) + length(metadata) FROM memories
WHERE num > ? AND {PRESENT} ORDER BY num LIMIT ?
"""
PAGE = f"""
SELECT {COLUMNS} FROM memories WHERE num > ? AND num <= ? AND {PRESENT} ORDER BY num
"""


async def ensure_words(storage: Storage, lexical: LexicalIndex) -> int:
    """Index the words of all memories, unless that was done in the present way; how many.

    Others may write meanwhile, and begin with the same: what one has indexed, none takes away.
    """
    version = lexical.version
    known = await storage.read(lambda session: get_property(session, PROPERTY))
    if known == version:
        return 0
    after, done = 0, 0
    await storage.write(partial(_clear, lexical))
    while nums := await storage.write(partial(_learn, after)):
        before, after, done = done, nums[-1], done + len(nums)
        if done // REPORT_ROWS > before // REPORT_ROWS:
            log.info("Words are being indexed.", action="index_words", memories=done)
    await storage.write(lambda transaction: set_property(transaction, PROPERTY, version))
    return done


def _clear(lexical: LexicalIndex, transaction: WriteTransaction) -> None:
    """Begin anew, unless somebody has begun in the present way."""
    begun = f"{BEGUN} {lexical.version}"
    if get_property(transaction, PROPERTY) not in (begun, lexical.version):
        lexical.clear(transaction)
        set_property(transaction, PROPERTY, begun)


def _learn(after: int, transaction: WriteTransaction) -> list[int]:
    """Index a page of memories as they are in this very transaction; their numbers."""
    rows = page(after, transaction)
    learn(rows, transaction)
    return [row.num for row in rows]


def page(after: int, session: Session, size: int = PAGE_ROWS) -> list[MemoryRow]:
    """Memories that are searched, behind one of them: at least one, if there is any."""
    last, chars = after, 0
    for num, length in session.execute(SIZES, (after, size)):
        chars += length
        if last != after and chars > PAGE_CHARS:
            break
        last = num
    return [MemoryRow(*row) for row in session.execute(PAGE, (after, last))]


def learn(rows: list[MemoryRow], transaction: WriteTransaction) -> None:
    """Have the words of memories indexed when the transaction is sealed."""
    for row in rows:
        transaction.texts[row.num] = words_of(row)
