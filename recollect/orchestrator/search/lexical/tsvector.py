"""PostgreSQL's full text: our own words in a tsvector with a GIN index, ranked by us.

It keeps nothing that another orchestrator's write would make wrong: what one writes, all find.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.lexical.frequencies import Frequencies
from recollect.orchestrator.search.lexical.interface import Hits, Numbers
from recollect.orchestrator.search.lexical.matching import RankedMatches
from recollect.orchestrator.search.lexical.query import terms_of
from recollect.orchestrator.search.lexical.tokens import Tokens
from recollect.orchestrator.search.lexical.tsvector_source import TsvectorSource, count_words
from recollect.orchestrator.search.lexical.tsvector_text import vector_of
from recollect.orchestrator.storage.interface import Session, WriteTransaction

FORGET = "DELETE FROM memory_words WHERE num = ANY (CAST(? AS BIGINT[])) RETURNING length"
LEARN = """
INSERT INTO memory_words (num, length, words)
SELECT num, length, CAST(words AS tsvector)
FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[])) AS new (num, length, words)
"""
COUNT = "UPDATE word_totals SET texts = texts + ?, words = words + ? WHERE id = 1"
CLEAR = (
    "DELETE FROM memory_words",
    "UPDATE word_totals SET texts = 0, words = 0 WHERE id = 1",
)
TOTALS = "SELECT l.seq, t.texts, t.words FROM ledger l, word_totals t WHERE l.id = 1 AND t.id = 1"
HOME = """
SELECT count(*), CAST(coalesce(sum(length), 0) AS BIGINT) FROM memory_words
WHERE num = ANY (CAST(? AS BIGINT[]))
"""
HOMES_KEPT_MAX = 32
# What is written together. Making words of a text takes time in which the server hears nothing of
# us, and after some seconds of that it takes a transaction for abandoned.
LEARN_TEXTS_MAX = 200
LEARN_CHARS_MAX = 200_000


class TsvectorIndex:
    """Words in a table of their own."""

    version = "1"
    held_sql = "SELECT num FROM memory_words"

    def __init__(self) -> None:
        # Apart, so that a search need not wait for a batch of writes.
        self._tokens = Tokens()
        self._written_tokens = Tokens()
        self._frequencies = Frequencies(count_words)
        # What is known of homes asked for lately, by the identity of their list, which is kept with
        # it and never changes. Only a shortcut: threads may overwrite each other's.
        self._homes: OrderedDict[int, tuple[Numbers, tuple[int, int]]] = OrderedDict()

    def clear(self, transaction: WriteTransaction) -> None:
        for statement in CLEAR:
            transaction.execute(statement)

    def seal(self, session: Session, transactions: Iterable[WriteTransaction]) -> None:
        texts: dict[int, str | None] = {}
        created: set[int] = set()
        for transaction in transactions:
            texts |= transaction.texts
            created.update(c.seq for c in transaction.changes if c.version_before is None)
        if not texts:
            return
        gone: list[int] = []
        # What this batch created is not in the index yet.
        if known := texts.keys() - created:
            forgotten = session.execute(FORGET, (np.array(sorted(known), dtype=np.int64),))
            gone = [length for (length,) in forgotten]
        lengths = [self._learn(session, part) for part in _parts(texts)]
        learned = [length for part in lengths for length in part]
        session.execute(COUNT, (len(learned) - len(gone), sum(learned) - sum(gone)))

    def _learn(self, session: Session, texts: Sequence[tuple[int, str]]) -> list[int]:
        """Write the words of some memories; how many each has."""
        nums, lengths, words = list[int](), list[int](), list[str]()
        for num, text in texts:
            stems = self._written_tokens.stems(text)
            nums.append(num)
            lengths.append(len(stems))
            words.append(vector_of(stems))
        session.execute(
            LEARN, (np.array(nums, dtype=np.int64), np.array(lengths, dtype=np.int64), words)
        )
        return lengths

    def expunge(self, transaction: WriteTransaction, begin: bool) -> bool:
        # The server takes dead words out when the storage has it scrubbed.
        return False

    def warm(self, session: Session) -> None:
        """Nothing to do: the server keeps what is used often."""

    def match(self, session: Session, query: str, within: Numbers | None = None) -> RankedMatches:
        terms = terms_of(query, self._tokens)
        [(newest, texts, words)] = session.execute(TOTALS)
        home = None if within is None else self._home(session, within)
        source = TsvectorSource(session, self._frequencies, (texts, words), home, within, newest)
        return RankedMatches(source, terms)

    def find(
        self,
        session: Session,
        query: str,
        condition: Condition,
        limit: int,
        offset: int,
        within: Numbers | None = None,
    ) -> Hits:
        return self.match(session, query, within).best(condition, limit, offset)

    def score(self, session: Session, query: str, nums: Sequence[int]) -> dict[int, float]:
        return self.match(session, query).score(nums)

    def _home(self, session: Session, within: Numbers) -> tuple[int, int]:
        """How many texts and words some memories have."""
        known = self._homes.get(id(within))
        if known is not None:
            return known[1]
        [(texts, words)] = session.execute(HOME, (within,))
        if not within.flags.writeable:
            self._homes[id(within)] = (within, (texts, words))
            while len(self._homes) > HOMES_KEPT_MAX:
                try:
                    self._homes.popitem(last=False)
                except KeyError:
                    break
        return texts, words


def _parts(texts: dict[int, str | None]) -> Iterator[list[tuple[int, str]]]:
    """Those that are there, as many at a time as are written together."""
    part: list[tuple[int, str]] = []
    chars = 0
    for num, text in texts.items():
        if text is None:
            continue
        if part and (len(part) >= LEARN_TEXTS_MAX or chars + len(text) > LEARN_CHARS_MAX):
            yield part
            part, chars = [], 0
        part.append((num, text))
        chars += len(text)
    if part:
        yield part
