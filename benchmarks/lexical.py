"""Search by words beside FTS5's own bm25() on the same file.

`python -m benchmarks.lexical --sizes 100000,1000000` writes generated memories, asks natural
questions about them, and measures how long finding takes and how far the results agree.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from benchmarks.raw import raw_row
from benchmarks.table import Row, at_least, at_most, show
from recollect.orchestrator.memories import rows
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.filters import Condition, namespace_condition
from recollect.orchestrator.search.lexical import LEARN, Fts5Index, Hits, lexical_text
from recollect.orchestrator.search.lexical.query import terms_of
from recollect.orchestrator.search.lexical.stopwords import STOP_WORDS
from recollect.orchestrator.search.lexical.tokens import Tokens
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.inserting import insert_sql
from recollect.orchestrator.storage.sqlite.schema import apply_migrations
from recollect.orchestrator.storage.sqlite.session import SqliteSession

VOCABULARY = 60_000
TOPICS = 400
TOPIC_WORDS = 200
FUNCTION_SHARE = 0.45
TOPIC_SHARE = 0.5
NAMESPACE_MEMORIES = 1_000
QUESTIONS = 500
NAIVE_QUESTIONS = 60
SLICE_ROWS = 10_000
K = 10
BOUND_MS = {100_000: 10.0, 1_000_000: 40.0}
YEAR_US = 365 * 86_400_000_000
PEOPLE = ("Anna", "Bo", "Caroline", "Dev", "Emil", "Fatima", "Goran", "Hana", "Ines", "Jonas")
# What people talk about in any conversation: common, but not so common as to be left out.
EVERYDAY = (
    *("time", "day", "people", "work", "week", "thing", "year", "home", "good", "new", "want"),
    *("make", "think", "know", "look", "use", "find", "plan", "start", "need", "family", "call"),
)
ALIVE: Condition = ("deleted_us IS NULL AND (expires_us IS NULL OR expires_us > ?)", [0])
NAIVE = f"""
SELECT memories.num, -bm25(memories_fts) AS score
FROM memories_fts JOIN memories ON memories.num = memories_fts.rowid
WHERE memories_fts MATCH ? AND {ALIVE[0]}
ORDER BY score DESC, memories.num DESC LIMIT ?
"""

Words = npt.NDArray[np.str_]


class Memory(msgspec.Struct, frozen=True):
    """A generated memory."""

    num: int
    content: str
    author: str
    moment_us: int
    namespace: str


class Language:
    """Function words, everyday words and invented ones, each as frequent as in real texts."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._function = np.array(sorted(STOP_WORDS))
        self._function_odds = _zipf(len(self._function), 1)
        self._content = np.array([*EVERYDAY, *self._invent(VOCABULARY - len(EVERYDAY))])
        self._content_odds = _zipf(VOCABULARY, 20)
        self._topics = np.array(
            [
                self._chance.choice(VOCABULARY, TOPIC_WORDS, p=self._content_odds, replace=False)
                for _ in range(TOPICS)
            ]
        )

    def memories(self, count: int) -> Iterator[Memory]:
        """Memories of 20 to 60 words, each about one topic, over two years."""
        chance = self._chance
        for first in range(1, count + 1, SLICE_ROWS):
            lengths = chance.integers(20, 61, min(SLICE_ROWS, count + 1 - first))
            for num, words in enumerate(np.split(self._speak(lengths), np.cumsum(lengths)), first):
                if len(words):
                    yield Memory(
                        num,
                        " ".join(words.tolist()),
                        PEOPLE[int(chance.integers(len(PEOPLE)))],
                        53 * YEAR_US + 2 * YEAR_US * num // count,
                        f"user:u{num * 7919 % max(1, count // NAMESPACE_MEMORIES)}",
                    )

    def question(self, memory: Memory) -> str:
        """A question about some of a memory's words, everyday ones among them."""
        said = [word for word in memory.content.split() if word not in STOP_WORDS]
        asked = [str(word) for word in self._chance.choice(said, 3)]
        common = [str(word) for word in self._chance.choice(EVERYDAY, 2)]
        who = memory.author if self._chance.random() < 0.5 else "they"
        return (
            f"What did {who} {common[0]} about the {asked[0]} {asked[1]} when we were "
            f"at the {asked[2]} that {common[1]}?"
        )

    def _speak(self, lengths: npt.NDArray[np.int64]) -> Words:
        chance, count = self._chance, int(lengths.sum())
        topics = np.repeat(chance.integers(0, TOPICS, len(lengths)), lengths)
        place = np.minimum((chance.pareto(1.0, count) * 8).astype(int), TOPIC_WORDS - 1)
        any_word = chance.choice(VOCABULARY, count, p=self._content_odds)
        chosen = np.where(chance.random(count) < TOPIC_SHARE, self._topics[topics, place], any_word)
        function = self._function[chance.choice(len(self._function), count, p=self._function_odds)]
        spoken: Words = np.where(
            chance.random(count) < FUNCTION_SHARE, function, self._content[chosen]
        )
        return spoken

    def _invent(self, count: int) -> list[str]:
        starts = (*"bcdfghjklmnprstvw", "st", "tr", "pl", "br", "sh", "ch")
        vowels = (*"aeiou", "ai", "ou", "ea")
        ends = ("", *"nrlstm")
        invented: dict[str, None] = {}
        while len(invented) < count:
            syllables = self._chance.integers(2, 4)
            picks = self._chance.integers(0, 2**31, 2 * syllables + 1).tolist()
            word = "".join(
                starts[picks[2 * at] % len(starts)] + vowels[picks[2 * at + 1] % len(vowels)]
                for at in range(syllables)
            )
            invented[word + ends[picks[-1] % len(ends)]] = None
        return list(invented)


def _zipf(count: int, flat: int) -> npt.NDArray[np.float64]:
    odds: npt.NDArray[np.float64] = 1 / (np.arange(count) + flat)
    odds /= odds.sum()
    return odds


def build(session: SqliteSession, memories: Iterator[Memory]) -> None:
    """Write memories with their words, as the service would."""
    learn, insert = insert_sql(LEARN, 1), insert_sql(rows.INSERT, 1)
    while chunk := [memory for memory, _ in zip(memories, range(SLICE_ROWS), strict=False)]:
        session.begin()
        table = []
        for memory in chunk:
            row = MemoryRow(*raw_row(memory.num, memory.content))
            row.namespace, row.created_us = memory.namespace, memory.moment_us
            table.append(msgspec.structs.astuple(row))
        session.connection.executemany(insert, table)
        session.connection.executemany(
            learn,
            [
                (m.num, lexical_text(m.content, author=m.author, moment_us=m.moment_us))
                for m in chunk
            ],
        )
        session.execute("UPDATE ledger SET seq = ?", (chunk[-1].num,))
        session.commit()


def _timed(
    ask: Callable[[str], Hits],
    questions: Sequence[str],
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[float], list[Hits]]:
    times_ms, answers = [], []
    for question in questions:
        started = clock()
        answers.append(ask(question))
        times_ms.append(1000 * (clock() - started))
    return times_ms, answers


def _agreement(ours: Sequence[Hits], theirs: Sequence[Hits]) -> float:
    """The share of their results that ours hold."""
    shares = []
    for mine, other in zip(ours, theirs, strict=False):
        nums = {num for num, _ in mine}
        shares.append(sum(num in nums for num, _ in other) / max(1, len(other)))
    return float(np.mean(shares))


def measure(folder: Path, count: int) -> list[Row]:
    """Build a store of so many memories and ask it."""
    language = Language(seed=count)
    session = SqliteSession(folder / f"{count}.db", page_cache_mb=64, readonly=False)
    apply_migrations(session, migrations.FOLDER / "sqlite")
    session.connection.pragma("synchronous", "off")
    asked: list[Memory] = []
    every = max(1, count // QUESTIONS)

    def kept() -> Iterator[Memory]:
        for memory in language.memories(count):
            if memory.num % every == 0:
                asked.append(memory)
            yield memory

    started = time.perf_counter()
    build(session, kept())
    print(f"{count:,} memories written in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    questions = [language.question(memory) for memory in asked[:QUESTIONS]]
    index, tokens = Fts5Index(), Tokens()
    first_ms, _ = _timed(lambda q: index.find(session, q, ALIVE, K, 0), questions[-20:])
    started = time.perf_counter()
    index.warm(session)
    print(f"warmed in {time.perf_counter() - started:.2f} s", file=sys.stderr)

    def naive(question: str) -> Hits:
        words = (term.text for term in terms_of(question, tokens))
        match = " OR ".join(f'"{word}"' for word in words)
        return [(num, score) for num, score in session.execute(NAIVE, (match, 0, K))]

    def all_words(question: str) -> Hits:
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(question[:-1].lower().split()))
        return [(num, score) for num, score in session.execute(NAIVE, (match, 0, K))]

    homes = dict(zip(questions, (memory.namespace for memory in asked), strict=False))

    def scoped(question: str) -> Hits:
        sql, params = namespace_condition(homes[question])
        return index.find(session, question, (f"{ALIVE[0]} AND {sql}", [0, *params]), K, 0)

    chosen = np.random.default_rng(1).choice(count, 200, replace=False).tolist()

    def scored(question: str) -> Hits:
        return list(index.score(session, question, chosen).items())

    find_ms, found = _timed(lambda q: index.find(session, q, ALIVE, K, 0), questions)
    # On a busy machine this says what the search itself takes.
    busy_ms, _ = _timed(lambda q: index.find(session, q, ALIVE, K, 0), questions, time.thread_time)
    scoped_ms, in_scope = _timed(scoped, questions)
    score_ms, _ = _timed(scored, questions)
    naive_ms, expected = _timed(naive, questions[:NAIVE_QUESTIONS])
    all_ms, _ = _timed(all_words, questions[: NAIVE_QUESTIONS // 4])
    session.connection.close()
    print(
        f"find, CPU time: p50 {np.median(busy_ms):.1f}, p99 {np.percentile(busy_ms, 99):.1f} ms; "
        f"first searches before that: at most {max(first_ms):.1f} ms; "
        f"all words, bm25(): p50 {np.median(all_ms):.1f} ms; "
        f"results in scope: {np.mean([len(hits) for hits in in_scope]):.1f} of {K}; "
        f"score of 200: p50 {np.median(score_ms):.1f} ms",
        file=sys.stderr,
    )
    bound_ms = BOUND_MS.get(count, max(1.0, 40.0 * count / 1_000_000))
    at = f"{count:,} memories"
    p99 = float(np.percentile(find_ms, 99))
    p99_scoped = float(np.percentile(scoped_ms, 99))
    middle, middle_naive = float(np.median(find_ms)), float(np.median(naive_ms))
    agreed = 100 * _agreement(found, expected)
    return [
        at_most(f"find, p99, {at}", p99, bound_ms, 1.0, "ms", "bound"),
        at_most(
            f"find in one of many namespaces, p99, {at}", p99_scoped, bound_ms, 1.0, "ms", "bound"
        ),
        at_most(f"find, p50, {at}", middle, middle_naive, 0.5, "ms", "bm25() of the same words"),
        at_least(f"the same first {K} as bm25(), {at}", agreed, 100.0, 0.98, "%", "all"),
    ]


def main(arguments: Sequence[str] | None = None) -> bool:
    """Measure each size and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lexical", description=__doc__)
    parser.add_argument("--sizes", default="100000,1000000", help="Numbers of memories.")
    sizes = [int(size) for size in parser.parse_args(arguments).sizes.split(",")]
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        measured = [row for size in sizes for row in measure(Path(name), size)]
    return show("Search by words beside FTS5's bm25()", measured)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
