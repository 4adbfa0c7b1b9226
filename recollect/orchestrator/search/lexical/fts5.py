"""SQLite's full-text index: fed in one statement a batch of commits, ranked by us."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.lexical.common import CommonWords
from recollect.orchestrator.search.lexical.frequencies import Frequencies
from recollect.orchestrator.search.lexical.fts5_source import Fts5Source
from recollect.orchestrator.search.lexical.interface import Hits, Numbers
from recollect.orchestrator.search.lexical.lengths import Lengths
from recollect.orchestrator.search.lexical.matching import RankedMatches
from recollect.orchestrator.search.lexical.postings import count_words, totals
from recollect.orchestrator.search.lexical.query import terms_of
from recollect.orchestrator.search.lexical.stopwords import STOP_WORDS
from recollect.orchestrator.search.lexical.tokens import Tokens
from recollect.orchestrator.storage.inserting import Insert, insert_rows, insert_sql
from recollect.orchestrator.storage.interface import Session, WriteTransaction

# A trigger for each row would halve the rate of inserts.
FORGET = "DELETE FROM memories_fts WHERE rowid IN (SELECT value FROM json_each(?))"
CLEAR = "INSERT INTO memories_fts (memories_fts) VALUES ('delete-all')"
LEARN = Insert("memories_fts", ("rowid", "content"))
# Deleted rows keep their words in the index, marked as gone, until what holds them is merged. With
# a negative number, everything there is becomes one merge; a positive one goes on with it, for
# about that many pages.
MERGE = "INSERT INTO memories_fts (memories_fts, rank) VALUES ('merge', ?)"
MERGE_PAGES = 200
TOTAL_CHANGES = "SELECT total_changes()"
GONE_MARKS = "SELECT 1 FROM memories_fts_data WHERE id >= ? LIMIT 1"
GONE_MARKS_FROM = 1 << 53
FIND_LEDGER = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ledger'"
LEDGER_SEQ = "SELECT seq FROM ledger WHERE id = 1"
LEARN_TOGETHER_MAX = 8  # beyond this, FTS5 takes single rows faster than many in one statement


class Fts5Index:
    """Words in FTS5. Its own state is only what spares counting again."""

    version = "2"
    held_sql = "SELECT rowid AS num FROM memories_fts"

    def __init__(self) -> None:
        self._tokens = Tokens()
        self._has_ledger: bool | None = None
        self._start_anew()

    def clear(self, transaction: WriteTransaction) -> None:
        transaction.execute(CLEAR)
        transaction.after_commit.append(self._start_anew)

    def _start_anew(self) -> None:
        self._lengths = Lengths()
        self._frequencies = Frequencies(count_words)
        self._common = CommonWords()

    def seal(self, session: Session, transactions: Iterable[WriteTransaction]) -> None:
        texts: dict[int, str | None] = {}
        created: set[int] = set()
        seq = 0
        for transaction in transactions:
            texts |= transaction.texts
            for change in transaction.changes:
                seq = max(seq, change.seq)
                if change.version_before is None:
                    created.add(change.seq)
        # What this batch created is not in the index yet.
        if known := texts.keys() - created:
            session.execute(FORGET, (encode_json(sorted(known)).decode(),))
            self._lengths.forget(known, seq)
            if seq:
                self._common.forget(known, seq)
            else:
                # Texts were indexed anew without a change of the memories.
                self._common.clear()
        rows = [(num, text) for num, text in texts.items() if text is not None]
        if len(rows) <= LEARN_TOGETHER_MAX:
            insert_rows(session, LEARN, rows)
        else:
            session.executemany(insert_sql(LEARN, 1), rows)

    def expunge(self, transaction: WriteTransaction, begin: bool) -> bool:
        if begin:
            if not transaction.execute(GONE_MARKS, (GONE_MARKS_FROM,)):
                return False
            transaction.execute(MERGE, (-MERGE_PAGES,))
            return True
        [(before,)] = transaction.execute(TOTAL_CHANGES)
        transaction.execute(MERGE, (MERGE_PAGES,))
        [(after,)] = transaction.execute(TOTAL_CHANGES)
        # The command counts as one change itself.
        return bool(after - before > 1)

    def warm(self, session: Session) -> None:
        seq = self._seq(session)
        self._lengths.read(session, seq)
        never_asked = set(self._tokens.stems(" ".join(STOP_WORDS)))
        self._common.warm(session, seq, totals(session)[0], never_asked)

    def match(self, session: Session, query: str, within: Numbers | None = None) -> RankedMatches:
        terms = terms_of(query, self._tokens)
        seq = self._seq(session)
        lengths = self._lengths.read(session, seq)
        source = Fts5Source(session, lengths, self._frequencies, self._common, seq, within)
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

    def _seq(self, session: Session) -> int:
        """The last change that the session sees; a store without a ledger does not change."""
        if self._has_ledger is None:
            self._has_ledger = bool(session.execute(FIND_LEDGER))
        if not self._has_ledger:
            return 0
        [(seq,)] = session.execute(LEDGER_SEQ)
        return int(seq)
