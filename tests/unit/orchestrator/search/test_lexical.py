"""Search by words: any text can be asked, odd words are found, and the ranking is BM25's."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.orchestrator.search.filters import Condition, namespace_condition
from recollect.orchestrator.search.lexical import (
    Fts5Index,
    LexicalIndex,
    common,
    lexical_text,
    matching,
    survivors,
)
from recollect.orchestrator.search.lexical.lengths import read_many_varints, read_varints
from recollect.orchestrator.search.lexical.query import PHRASE_WORDS_MAX, TERMS_MAX, terms_of
from recollect.orchestrator.search.lexical.tokens import Tokens
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.inserting import Gathered
from recollect.orchestrator.storage.interface import Change, SequenceCounter, WriteTransaction
from recollect.orchestrator.storage.sqlite.schema import apply_migrations
from recollect.orchestrator.storage.sqlite.session import SqliteSession

EVERYTHING: Condition = ("deleted_us IS NULL", [])
TOKENS = Tokens()
INSERT = """
INSERT INTO memories (
    num, id, seq, namespace, version, collection, memory_type, tier, content, metadata, tags,
    importance, stability_s, access_count, last_access_us, fades_us, trust, created_us, updated_us,
    deleted_us, operation
) VALUES (?, ?, 1, ?, 1, 'memories', 'general', 'short', ?, '{}', '[]', ?, 1, 0, 1, 1, 1, 1, 1, ?,
    'add_memory')
ON CONFLICT (num) DO UPDATE SET
    namespace = excluded.namespace, content = excluded.content, deleted_us = excluded.deleted_us
"""


class Store:
    """A database with memories that are written and sealed as a batch of writes is."""

    def __init__(self, session: Any, index: LexicalIndex) -> None:
        self.session = session
        self.index = index
        self.texts: dict[int, str] = {}
        # Numbers are given out in ascending order: a lower one is changed, not created.
        self._seq = 0

    def clear(self) -> None:
        if self.texts:
            self.write(dict.fromkeys(self.texts))
        self.session.execute("DELETE FROM memories")

    def write(self, texts: dict[int, str | None], namespace: str = "user:a") -> None:
        session = self.session
        session.begin()
        transaction = WriteTransaction(session, SequenceCounter(0), Gathered(), None)
        for num, text in texts.items():
            row = (
                num,
                str(num),
                namespace,
                (text or "").replace("\0", " "),  # which no storage takes in a column
                (num % 10) / 10,
                1 if text is None else None,
            )
            session.execute(INSERT, row)
            transaction.texts[num] = text
            if num > self._seq:
                transaction.changes.append(change(num, None))
        self._seq = max(self._seq, *texts) + 1
        transaction.changes.append(change(self._seq, 1))
        session.execute("UPDATE ledger SET seq = ?", (self._seq,))
        self.index.seal(session, [transaction])
        session.commit()
        self.texts = {num: text for num, text in (self.texts | texts).items() if text is not None}

    def find(
        self,
        query: str,
        limit: int = 10,
        offset: int = 0,
        condition: Condition = EVERYTHING,
        **kw: Any,
    ) -> list[tuple[int, float]]:
        return self.index.match(self.session, query).best(condition, limit, offset, **kw)

    def nums(self, query: str, **kw: Any) -> list[int]:
        return [num for num, _ in self.find(query, **kw)]

    def found(self, text: str, query: str) -> bool:
        """Whether the only memory, with this text, is found by a query."""
        self.clear()
        self.write({1: lexical_text(text), 2: "something else entirely"})
        return 1 in self.nums(query)


def on_sqlite(path: Path) -> Store:
    session = SqliteSession(path, page_cache_mb=4, readonly=False)
    apply_migrations(session, migrations.FOLDER / "sqlite")
    session.connection.pragma("synchronous", "off")
    return Store(session, Fts5Index())


def change(seq: int, version_before: int | None) -> Change:
    return Change(
        seq=seq,
        at_us=1,
        identity="local",
        agent=None,
        operation="add_memory",
        subject=str(seq),
        namespace=None,
        version_before=version_before,
        version_after=1,
        session_id=None,
        trace=None,
        request_key=None,
    )


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = on_sqlite(tmp_path_factory.mktemp("lexical") / "recollect.db")
    yield store
    store.session.connection.close()


@pytest.fixture
def store(module_store: Store) -> Store:
    module_store.clear()
    return module_store


def bm25(texts: dict[int, str], query: str) -> dict[int, float]:
    """The scores of a plain query, by the formula, one memory after another."""
    words = {num: TOKENS.stems(text) for num, text in texts.items()}
    mean = sum(map(len, words.values())) / max(1, len(words))
    scores: dict[int, float] = {}
    for stem in {term.tokens[0] for term in terms_of(query, TOKENS)}:
        holding = {num: Counter(held)[stem] for num, held in words.items() if stem in held}
        for num, count in holding.items():
            odds = (len(texts) - len(holding) + 0.5) / (len(holding) + 0.5)
            rarity = max(math.log(odds), 0.1 * math.log(1 + odds))
            norm = 1.2 * (0.25 + 0.75 * len(words[num]) / mean)
            scores[num] = scores.get(num, 0) + rarity * count * 2.2 / (count + norm)
    return scores


words = st.sampled_from(["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"])
texts = st.lists(words, min_size=1, max_size=12).map(" ".join)
sets_of_words = st.lists(words, min_size=1, unique=True).map(" ".join)


def changes(
    written: st.SearchStrategy[str],
) -> st.SearchStrategy[list[dict[int, str | None]]]:
    """Batches of writes and deletions."""
    batch = st.dictionaries(st.integers(1, 30), st.none() | written, min_size=1, max_size=12)
    return st.lists(batch, max_size=5)


def apply(store: Store, changed: list[dict[int, str | None]]) -> None:
    """Write all batches, with a search after each."""
    store.clear()
    for batch in changed:
        if done := {n: t for n, t in batch.items() if t is not None or n in store.texts}:
            store.write(done)
            store.find("ant bee cat dog eel fox gnu hen")


@settings(max_examples=60, deadline=None)
@given(
    changes(texts),
    texts,
    st.integers(0, 9),
    st.integers(1, 8),
    st.none() | st.sets(st.integers(1, 30)),
)
def test_the_ranking_agrees_with_the_formula_after_any_changes(
    module_store: Store,
    changed: list[dict[int, str | None]],
    query: str,
    least: int,
    limit: int,
    allowed: set[int] | None,
) -> None:
    store = module_store
    apply(store, changed)
    scores = bm25(store.texts, query)
    fitting = [n for n in scores if n % 10 >= least and (allowed is None or n in allowed)]
    wanted = sorted(fitting, key=lambda num: (-round(scores[num], 9), -num))
    condition: Condition = ("deleted_us IS NULL AND importance >= ?", [least / 10])
    chosen = None if allowed is None else np.array(sorted(allowed), dtype=np.int64)
    for offset in (0, 2):
        found = store.find(query, limit, offset, condition, allowed=chosen)
        expected = wanted[offset : offset + limit]
        assert [score for _, score in found] == pytest.approx([scores[num] for num in expected])
        assert [num for num, _ in found] == expected
    assert store.index.score(store.session, query, range(40)) == pytest.approx(scores)


@settings(max_examples=100, deadline=None)
@given(changes(sets_of_words), texts, st.floats(0, 2), st.integers(1, 20))
def test_lists_of_common_words_that_are_kept_stay_right(
    module_store: Store,
    changed: list[dict[int, str | None]],
    query: str,
    looked_up_share: float,
    changes_kept_max: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "COMMON_MIN", 1)
        patch.setattr(common, "KEPT_MAX", 60)
        patch.setattr(common, "GUESSED_SHARE_MAX", 1.0)
        patch.setattr(common, "LOOKED_UP_SHARE_MAX", looked_up_share)
        patch.setattr(common, "CHANGES_KEPT_MAX", changes_kept_max)
        apply(module_store, changed)
        found = module_store.index.score(module_store.session, query, range(40))
    assert found == pytest.approx(bm25(module_store.texts, query))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=120), st.text(max_size=120))
def test_no_text_is_ever_an_error_and_each_is_found_by_itself(
    module_store: Store, text: str, other: str
) -> None:
    store = module_store
    store.clear()
    store.write({1: lexical_text(text), 2: lexical_text(other)})
    store.find(other + text)
    if any(len(term.tokens[0]) > 1 for term in terms_of(text, TOKENS)):
        assert 1 in store.nums(text)


@pytest.mark.parametrize(
    "query",
    [
        *('"', '""', '"""', "NEAR(a b)", "a AND OR NOT", "col:umn", "a*", "*", "^x", "a + b", "-a"),
        *("日本語", "🎈", "x" * 10_000, "a\0b", "'; DROP TABLE memories; --", "{a b}:c", "\ud800"),
        *("( ( (", "* * *", '"a" "b', "“a b” c", "ก็", "\u0301", "__init__", "C++ C# .NET"),
    ],
)
def test_operators_and_odd_text_are_words_or_nothing(store: Store, query: str) -> None:
    store.write({1: "plain words", 2: "and or not near"})
    assert isinstance(store.find(query), list)


def test_a_very_long_query_is_bounded_and_still_finds(store: Store) -> None:
    text = " ".join(f"word{n}x" for n in range(3000))
    assert len(terms_of(text, TOKENS)) == TERMS_MAX
    store.write({1: "nothing of it", 2: "here is word2999x"})
    assert store.nums(text + " word2999x" * 10) == [2] or store.nums("word2999x") == [2]
    assert store.nums("lorem ipsum " * 1000 + "nothing") == [1]


def test_common_words_count_only_if_nothing_else_is_asked(store: Store) -> None:
    store.write({1: "to be or not to be", 2: "the painting of a sunrise"})
    assert store.nums("what is the painting to you") == [2]
    assert store.nums("to be or not to be") == [1]
    assert store.nums("the") == [2]


def test_stems_accents_and_capitals_do_not_matter(store: Store) -> None:
    store.write({1: "She was painting CAFÉS at sunrise", 2: "a boat"})
    for query in ("paints", "cafe", "Café", "SUNRISES"):
        assert store.nums(query) == [1]


def test_a_quoted_phrase_asks_for_these_words_in_this_order(store: Store) -> None:
    store.write({1: "the red house near the sea", 2: "a house that is red", 3: "boats"})
    assert set(store.nums("red house")) == {1, 2}
    assert store.nums('"red house"') == [1]
    assert store.nums("“red house”") == [1]
    assert set(store.nums('"red house" boat')) == {1, 3}
    assert store.nums('"boat"') == [3]
    assert store.nums(f'"{"red " * PHRASE_WORDS_MAX}house"')[0] in (1, 2)


@pytest.mark.parametrize("query", ["conf*", "config*", "configurat*", "CONF*", "x conf*,"])
def test_a_star_asks_for_words_that_begin_so(store: Store, query: str) -> None:
    store.write({1: "the configuration", 2: "nothing of the kind"})
    assert store.nums(query) == [1]


def test_without_a_star_the_last_word_is_whole(store: Store) -> None:
    store.write({1: "the configuration"})
    assert store.nums("conf") == []


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("call parseHttpRequest()", ["parseHttpRequest", "parsehttprequest", "http request"]),
        ("call parseHttpRequest()", ["parse_http_request", "parse-http-request", "Http"]),
        ("def parse_http_request(a):", ["parseHttpRequest", "parse_http_request", "parse"]),
        ("import foo.bar as fb", ["foo.bar", "bar", "foo"]),
        ("error[E0502]: borrowed", ["E0502", "e0502", "0502"]),
        ("see src/app/main_loop.py:42", ["src/app/main_loop.py", "main_loop", "main_loop.py:42"]),
        ("at https://example.org/a/page?x=1", ["https://example.org/a/page", "example.org"]),
        ("needs sqlite 3.54.1 and python3", ["3.54.1", "python", "python3"]),
        ("an XMLHttpRequest failed", ["xml", "XMLHttpRequest", "http"]),
        ("set $HOME and user@example.org", ["$HOME", "user@example.org"]),
        ("on 2023-05-08 we met", ["2023-05-08", '"2023-05-08"']),
        ("don't mention Caroline's cat", ["Caroline", "caroline\u2019s", "Caroline's"]),
        ("lost my 🎈 at the fair", ["🎈", "balloon 🎈!"]),
        ("went to 🇩🇪 in May", ["🇩🇪", "May"]),
        (
            "今日は天気がいい",
            ["天気", "今日", "天", "い", "天気がいい", '"天気が"', "今日は天気がいい"],
        ),
        ("我喜欢Python编程", ["python", "编程", "喜欢", "Python编程"]),
        ("한국어를 공부합니다", ["한국어", "공부"]),
        ("ภาษาไทยไม่มีช่องว่าง", ["ไทย", "ช่องว่าง"]),
        ("Größe, naïve Ångström", ["grosse größe", "naive", "angstrom"]),
        ("Москва слезам не верит", ["москва", "СЛЕЗАМ"]),
    ],
)
def test_odd_words_are_found_whole_and_by_their_parts(
    module_store: Store, text: str, queries: list[str]
) -> None:
    for query in queries:
        assert module_store.found(text, query), query


@settings(max_examples=60, deadline=None)
@given(st.text("日本語天気猫犬あいうアイ한국", min_size=1, max_size=12), st.data())
def test_any_part_of_a_text_without_gaps_finds_it(
    module_store: Store, text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert module_store.found(f"x {text}。", text[start:end])
    assert module_store.found(f"x {text}。", f'"{text[start:end]}"')


def test_the_whole_name_counts_more_than_its_parts(store: Store) -> None:
    store.write(
        {
            1: lexical_text("bar and foo and bar"),
            2: lexical_text("the module foo.bar is here"),
            3: lexical_text("git and a hub"),
            4: lexical_text("on GitHub"),
        }
    )
    assert store.nums("foo.bar")[0] == 2
    assert store.nums("GitHub")[0] == 4


def test_what_surrounds_a_memory_is_found_too(store: Store) -> None:
    text = lexical_text(
        "We talked about the plan.",
        key="project-apollo",
        tags=["urgent", "budgetReview"],
        metadata={
            "speaker": "Caroline",
            "caption": "a dog on the beach",
            "deep": {"list": ["zebra", 4711, True, None, {"inner": "yak"}]},
        },
        author="melanie",
        moment_us=1_683_540_000_000_000,
    )
    store.write({1: text, 2: "another"})
    for query in (
        *("apollo", "urgent", "budget", "caroline", "beach", "zebra", "4711", "yak", "melanie"),
        *("8 May 2023", "Monday", '"May 2023"'),
    ):
        assert store.nums(query) == [1], query
    assert "True" not in text


def test_plain_text_is_indexed_as_it_is() -> None:
    assert lexical_text("Plain words, nothing else.") == "Plain words, nothing else."
    assert lexical_text("x", moment_us=10**30) == "x "


def test_what_is_added_to_a_text_is_bounded() -> None:
    huge = {"a": "x" * 100_000, "b": [str(n) for n in range(100_000)]}
    assert len(lexical_text("content", metadata=huge)) < 10_000
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"in": deep, "word": "w"}
    assert len(lexical_text("content", metadata=deep)) < 100
    assert len(lexical_text("aB" * 500_000)) < 1_000_100
    assert len(lexical_text("日" * 500_000)) < 800_000


@pytest.fixture
def spare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that a few memories exceed."""
    monkeypatch.setattr(matching, "MATCHES_MIN", 20)
    monkeypatch.setattr(matching, "MATCHES_SHARE", 0.0)
    monkeypatch.setattr(matching, "DRIVEN_MAX", 10)


@pytest.mark.usefixtures("spare")
@pytest.mark.parametrize("query", ["rare common", "common usual", "rare some common usual"])
def test_pages_neither_repeat_nor_lose_anything_when_the_budget_is_spent(
    store: Store, query: str
) -> None:
    store.write(
        {
            n: " ".join(
                ["common" if n % 2 else "usual", "filler " * (n % 7)]
                + ["rare"] * (n % 40 == 0)
                + ["some"] * (n % 9 == 0)
            )
            for n in range(1, 201)
        }
    )
    asked = set(query.split())
    matching_nums = {num for num, text in store.texts.items() if asked & set(text.split())}
    whole = store.find(query, 200)
    assert {num for num, _ in whole} == matching_nums
    assert [score for _, score in whole] == sorted((s for _, s in whole), reverse=True)
    pages = [hit for offset in range(0, 210, 7) for hit in store.find(query, 7, offset)]
    assert [num for num, _ in pages] == [num for num, _ in whole]


@pytest.mark.usefixtures("spare")
def test_common_words_still_order_what_the_rare_ones_found(store: Store) -> None:
    store.write({n: "common filler" for n in range(1, 101)})
    store.write({101: "rare common filler", 102: "rare thing filler"})
    assert store.nums("rare common")[:2] == [101, 102]


@pytest.mark.usefixtures("spare")
def test_memories_with_all_of_several_common_words_come_first(store: Store) -> None:
    store.write({n: "common filler" if n % 2 else "usual filler" for n in range(1, 101)})
    store.write({101: "common usual filler", 102: "common filler"})
    assert store.nums("common usual")[0] == 101


def test_a_caller_with_few_of_many_matches_gets_all_of_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survivors, "CHECKED_MIN", 100)
    store.write({n: f"shared words {'again ' * (n % 5)}" for n in range(1, 1001)})
    store.write({n: "shared words and others" for n in range(1001, 1013)}, "user:b:notes")
    store.write({2000: "shared"}, "user:bc")
    sql, params = namespace_condition("user:b")
    condition: Condition = (f"deleted_us IS NULL AND {sql}", params)
    found = store.nums("shared words", limit=20, condition=condition)
    assert found == list(range(1012, 1000, -1))
    # Without an index to find them by, they are checked one by one.
    assert (
        store.nums("shared words", limit=20, condition=("num > ? AND num < 1013", [1000])) == found
    )
    assert store.nums("shared", condition=("+num = ?", [3])) == [3]
    assert store.nums("shared", condition=("FALSE", [])) == []


def test_a_changed_text_is_weighed_by_its_new_length(store: Store) -> None:
    store.write({1: "fox", 2: "fox and some others", 3: "eel", 4: "eel", 5: "eel", 6: "eel"})
    assert store.nums("fox") == [1, 2]
    store.write({1: "fox " + "with very many other words " * 5})
    assert store.nums("fox") == [2, 1]
    store.write({2: None})
    assert store.nums("fox") == [1]


def test_memories_that_came_after_a_list_was_kept_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "COMMON_MIN", 1)
    monkeypatch.setattr(common, "GUESSED_SHARE_MAX", 0.5)
    monkeypatch.setattr(common, "LOOKED_UP_SHARE_MAX", 1.0)
    store = on_sqlite(tmp_path / "recollect.db")
    for start in range(1, 200, 20):
        store.write({num: "fox den" if num % 2 else "eel" for num in range(start, start + 10)})
        store.write({start: "eel", start + 1: "fox", start + 2: None})
        assert set(store.nums("fox", limit=200)) == {
            num for num, text in store.texts.items() if "fox" in text
        }


def test_searches_and_changes_at_once_harm_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "COMMON_MIN", 1)
    path = tmp_path / "recollect.db"
    store = on_sqlite(path)
    store.write({num: "fox den" for num in range(1, 50)})
    failures: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        session = SqliteSession(path, page_cache_mb=1, readonly=True)
        try:
            while not done.is_set():
                found = store.index.find(session, "fox eel", EVERYTHING, 500, 0)
                assert len(found) >= 49
        except BaseException as error:
            failures.append(error)
        finally:
            session.connection.close()

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(100, 400, 10):
        store.write({num: "fox or eel" for num in range(start, start + 5)})
        store.write({start % 49 + 1: "eel and fox", start: "fox again"})
    done.set()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert set(store.nums("fox", limit=500)) == set(store.texts)


def test_an_index_opened_on_a_full_store_ranks_alike(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "COMMON_MIN", 1)
    store.write({n: "fox " * (n % 3 + 1) + "filler " * (n % 200) for n in range(1, 300)})
    anew = Fts5Index()
    anew.warm(store.session)
    assert anew._common.knows(terms_of("fox", TOKENS)[0])
    assert anew.find(store.session, "fox", EVERYTHING, 300, 0) == store.find("fox", 300)


def test_an_index_can_be_made_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "COMMON_MIN", 1)
    store.write({1: "fox", 2: "fox den"})
    assert len(store.nums("fox")) == 2
    session = store.session
    session.begin()
    transaction = WriteTransaction(session, SequenceCounter(0), Gathered(), None)
    store.index.clear(transaction)
    transaction.keep()
    session.commit()
    for effect in transaction.after_commit:
        effect()
    assert store.nums("fox") == []
    for texts in ({1: "eel"}, {2: "eel fox"}):
        session.begin()
        transaction = WriteTransaction(session, SequenceCounter(0), Gathered(), None)
        transaction.texts.update(texts)
        store.index.seal(session, [transaction])
        session.commit()
        store.find("eel")
    assert set(store.nums("eel")) == {1, 2}
    assert store.nums("fox") == [2]


def test_matches_answer_several_questions(store: Store) -> None:
    store.write({1: "fox", 2: "fox den", 3: "eel"})
    matches = store.index.match(store.session, "fox")
    hits = matches.best(EVERYTHING, 10)
    assert matches.score([3, 2, 1, 99_999, -1]) == dict(hits)
    assert matches.best(EVERYTHING, 10, allowed=np.array([2, 3, 99_999])) == [
        hit for hit in hits if hit[0] == 2
    ]


def test_an_empty_store_has_no_matches(tmp_path: Path) -> None:
    store = on_sqlite(tmp_path / "recollect.db")
    assert store.find("anything") == []
    assert store.index.score(store.session, "anything", [1]) == {}


@given(st.lists(st.integers(0, 2**40), min_size=1))
def test_packed_numbers_are_read_back(numbers: list[int]) -> None:
    packed = bytearray()
    for number in numbers:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        packed += bytes(reversed(groups))
    assert read_varints(bytes(packed)) == numbers
    assert read_many_varints(bytes(packed)).tolist() == numbers


def test_changes_before_the_first_search_after_a_start_leave_the_ranking_as_it_is(
    tmp_path: Path,
) -> None:
    store = on_sqlite(tmp_path / "words.db")
    store.write({num: "lighthouse " + "padding " * (num % 7) for num in range(1, 30)})
    store.index = Fts5Index()  # as after a start
    store.write({29: "lighthouse on the cliff"})
    after_change = store.find("lighthouse", 50)
    store.index = Fts5Index()
    assert after_change == store.find("lighthouse", 50)
    assert len({score for _, score in after_change}) > 3


def test_within_a_scope_a_word_is_as_common_as_it_is_there(tmp_path: Path) -> None:
    mine = {1: "the amber lighthouse", 2: "the amber harbour", 3: "the amber mill and the copper"}
    store = on_sqlite(tmp_path / "mine.db")
    store.write(dict(mine))
    alone = store.index.find(store.session, "amber copper", EVERYTHING, 10, 0)
    # Elsewhere copper is everywhere, which must not matter here.
    store.write({num: f"copper copper copper {num}" for num in range(10, 60)}, "user:b")
    within = np.array([1, 2, 3], dtype=np.int64)
    scoped = store.index.find(store.session, "amber copper", EVERYTHING, 10, 0, within)
    assert [num for num, _ in scoped] == [num for num, _ in alone] == [3, 2, 1]
    assert [score for _, score in scoped] == pytest.approx([score for _, score in alone])
