"""Texts become vectors off the loop: together, once, fairly, within bounds."""

from __future__ import annotations

import asyncio
import queue
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Embedder, Kind, Vectors
from recollect.orchestrator.embedding.pipeline import Embedding
from recollect.protocol.errors import EmbedderUnavailable, Overloaded, ShuttingDown

T = TypeVar("T")
PATIENCE_S = 20


class OffLoop(HashedEmbedder):
    """The hashed embedder, treated like one that takes its time."""

    inline = False


class Gated:
    """An embedder that a test can hold: it says which batch it began, and waits to be let on."""

    inline = False
    dimensions = 3

    def __init__(self, *, holds: Sequence[Kind] = ("document", "query")) -> None:
        self.model = "gated"
        self.batches: list[tuple[Kind, list[str]]] = []
        self.closed = False
        self._holds = holds
        self._begun: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        self._open = threading.Event()

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        self.batches.append((kind, list(texts)))
        self._begun.put(list(texts))
        if kind in self._holds:
            self._open.wait(PATIENCE_S)
        if any("poison" in text for text in texts):
            raise RuntimeError("it does not agree with me")
        return np.array([[len(text), kind == "query", 1] for text in texts], np.float32)

    def close(self) -> None:
        self.closed = True

    def let_go(self) -> None:
        self._open.set()

    def hold(self) -> None:
        self._open.clear()

    async def begun(self) -> list[str]:
        """The texts of the next batch that it begins."""
        return await asyncio.to_thread(self._begun.get, timeout=PATIENCE_S)


def run(embedder: Embedder, scenario: Callable[[Embedding], Awaitable[T]], **options: Any) -> T:
    sizes: dict[str, Any] = {
        "threads": 1,
        "batch_texts_max": 8,
        "queue_texts_max": 100,
        "cache_texts_max": 100,
    }

    async def main() -> T:
        loop = asyncio.get_running_loop()
        embedding = Embedding(embedder, loop=loop, **(sizes | options))
        try:
            return await asyncio.wait_for(scenario(embedding), PATIENCE_S)
        finally:
            if isinstance(embedder, Gated):
                embedder.let_go()
            embedding.close()

    return asyncio.run(main())


async def soon(awaitable: Awaitable[T]) -> asyncio.Task[T]:
    """Begin it, and go on when it waits for something."""
    task = asyncio.ensure_future(awaitable)
    await asyncio.sleep(0)
    assert isinstance(task, asyncio.Task)
    return task


@pytest.mark.parametrize("threads", [1, 3])
def test_every_text_gets_the_row_that_the_embedder_gives_it(threads: int) -> None:
    texts = [f"text number {number % 70}" for number in range(200)]

    async def scenario(embedding: Embedding) -> Vectors:
        return await embedding.documents(texts)

    vectors = run(OffLoop(), scenario, threads=threads)
    assert np.array_equal(vectors, HashedEmbedder().embed_now(texts))
    assert not vectors.flags.writeable


def test_no_texts_are_no_rows() -> None:
    async def scenario(embedding: Embedding) -> Vectors:
        return await embedding.documents([])

    assert run(OffLoop(), scenario).shape == (0, HashedEmbedder().dimensions)


def test_an_embedder_of_the_loop_is_called_there_and_needs_no_cache() -> None:
    threads: list[threading.Thread] = []

    class Noting(HashedEmbedder):
        def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
            threads.append(threading.current_thread())
            return super().embed_now(texts, kind)

    async def scenario(embedding: Embedding) -> None:
        one = await embedding.query("hello")
        assert np.array_equal(one, HashedEmbedder().embed_now(["hello"])[0])
        assert not one.flags.writeable
        await embedding.documents(["hello"])
        assert (await embedding.documents(["a", "b"])).shape[0] == 2
        assert embedding.known("hello", "query") is None

    run(Noting(), scenario)
    here = threading.current_thread()
    assert [thread is here for thread in threads] == [True, True, False]


def test_a_query_is_answered_while_bulk_work_holds_all_other_threads() -> None:
    embedder = Gated(holds=["document"])

    async def scenario(embedding: Embedding) -> None:
        bulk = await soon(embedding.documents([f"text {number}" for number in range(90)]))
        await embedder.begun()
        await embedder.begun()
        vector = await embedding.query("where?")
        assert vector.tolist() == [6, 1, 1]
        assert not bulk.done()
        embedder.let_go()
        assert (await bulk).shape == (90, 3)

    run(embedder, scenario, threads=2)


def test_what_comes_while_the_embedder_works_becomes_one_batch() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        callers = [await soon(embedding.documents(["first"]))]
        assert await embedder.begun() == ["first"]
        for name in "abcde":
            callers.append(await soon(embedding.documents([name])))
        embedder.let_go()
        await asyncio.gather(*callers)

    run(embedder, scenario)
    assert embedder.batches == [("document", ["first"]), ("document", list("abcde"))]


def test_concurrent_queries_become_one_batch_as_well() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        callers = [await soon(embedding.documents(["bulk"]))]
        await embedder.begun()
        callers.append(await soon(embedding.query("first")))
        assert await embedder.begun() == ["first"]
        for name in "abc":
            callers.append(await soon(embedding.query(name)))
        embedder.let_go()
        await asyncio.gather(*callers)

    run(embedder, scenario)
    queries = [texts for kind, texts in embedder.batches if kind == "query"]
    assert queries == [["first"], list("abc")]


def test_a_single_text_goes_with_the_next_batch_however_long_the_bulk() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        bulk = await soon(embedding.documents([f"text {number}" for number in range(10_000)]))
        await embedder.begun()
        single = await soon(embedding.documents(["single"]))
        embedder.let_go()
        await single
        assert not bulk.done()
        bulk.cancel()

    run(embedder, scenario, queue_texts_max=20_000)
    assert "single" in embedder.batches[1][1]


def test_a_text_deep_in_the_bulk_of_another_is_not_waited_for_there() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        texts = [f"text {number}" for number in range(60)]
        bulk = await soon(embedding.documents(texts))
        await embedder.begun()
        single = await soon(embedding.documents([texts[-1]]))
        embedder.let_go()
        await asyncio.gather(single, bulk)

    run(embedder, scenario)
    assert "text 59" in embedder.batches[1][1]
    assert sum(len(texts) for _, texts in embedder.batches) == 60


def test_batches_are_bounded() -> None:
    embedder = Gated(holds=[])

    async def scenario(embedding: Embedding) -> None:
        await embedding.documents([f"text {number}" for number in range(50)])

    run(embedder, scenario, threads=3)
    assert max(len(texts) for _, texts in embedder.batches) <= 8


def test_queries_can_go_one_at_a_time() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        callers = [await soon(embedding.query(name)) for name in "abcdef"]
        await embedder.begun()
        embedder.let_go()
        await asyncio.gather(*callers)

    run(embedder, scenario, query_batch_texts_max=1)
    assert [len(texts) for _, texts in embedder.batches] == [1] * 6


def test_beyond_the_bound_a_caller_is_told_to_come_again() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        running = await soon(embedding.documents(["running"]))
        await embedder.begun()
        waiting = await soon(embedding.documents([f"text {number}" for number in range(18)]))
        assert embedding.describe()["queue"] == {"query_texts": 0, "document_texts": 18}
        with pytest.raises(Overloaded) as refused:
            await embedding.documents(["one", "two", "three"])
        assert refused.value.details["limit"] == "embedding.queue_texts_max"
        assert refused.value.details["retry_after_ms"] > 0
        # What waits already costs nothing more, and queries have a queue of their own.
        same = await soon(embedding.documents(["text 3", "text 4", "text 5"]))
        query = await soon(embedding.query("where?"))
        embedder.let_go()
        await asyncio.gather(running, waiting, same, query)
        assert (await embedding.documents(["one", "two", "three"])).shape == (3, 3)

    run(embedder, scenario, queue_texts_max=20)


def test_all_texts_of_a_large_call_count_though_they_are_queued_in_slices() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        bulk = await soon(embedding.documents([f"text {number}" for number in range(500)]))
        await embedder.begun()
        with pytest.raises(Overloaded):
            await embedding.documents([f"other {number}" for number in range(20)])
        bulk.cancel()
        with pytest.raises(asyncio.CancelledError):
            await bulk
        assert embedding.describe()["queue"]["document_texts"] == 0

    run(embedder, scenario, queue_texts_max=500)


def test_a_call_larger_than_the_queue_is_served_when_nothing_waits() -> None:
    async def scenario(embedding: Embedding) -> None:
        vectors = await embedding.documents([f"text {number}" for number in range(300)])
        assert vectors.shape[0] == 300

    run(OffLoop(), scenario, queue_texts_max=10)


def test_a_text_is_embedded_once_however_often_it_is_wanted() -> None:
    embedder = Gated(holds=[])

    async def scenario(embedding: Embedding) -> None:
        first = await embedding.documents(["same", "same", "other"])
        assert first.tolist() == [[4, 0, 1], [4, 0, 1], [5, 0, 1]]
        again = await asyncio.gather(*(embedding.documents(["other", "same"]) for _ in range(5)))
        assert all(rows.tolist() == [[5, 0, 1], [4, 0, 1]] for rows in again)
        assert embedding.describe()["cache"]["hits"] == 10

    run(embedder, scenario)
    assert sum(len(texts) for _, texts in embedder.batches) == 2


def test_a_question_and_a_document_of_the_same_words_are_kept_apart() -> None:
    async def scenario(embedding: Embedding) -> None:
        await embedding.documents(["words"])
        assert embedding.known("words", "query") is None
        assert (await embedding.query("words")).tolist() == [5, 1, 1]
        known = embedding.known("words", "document")
        assert known is not None
        assert known.tolist() == [5, 0, 1]
        assert not known.flags.writeable

    run(Gated(holds=[]), scenario)


def test_the_cache_forgets_what_was_not_used_for_longest() -> None:
    async def scenario(embedding: Embedding) -> None:
        for text in ("a", "b", "a", "c"):
            await embedding.documents([text])
        kept = [text for text in "abc" if embedding.known(text, "document") is not None]
        assert kept == ["a", "c"]

    run(OffLoop(), scenario, cache_texts_max=2)


def test_a_cache_of_nothing_keeps_nothing() -> None:
    async def scenario(embedding: Embedding) -> None:
        await embedding.documents(["a"])
        assert embedding.known("a", "document") is None

    run(OffLoop(), scenario, cache_texts_max=0)


def test_a_caller_that_gives_up_harms_nobody_who_wants_the_same() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        running = await soon(embedding.documents(["running"]))
        await embedder.begun()
        gone = await soon(embedding.documents(["shared", "mine"]))
        stays = await soon(embedding.documents(["shared"]))
        also_gone = await soon(embedding.documents(["running"]))
        gone.cancel()
        also_gone.cancel()
        embedder.let_go()
        assert (await stays).tolist() == [[6, 0, 1]]
        assert (await running).tolist() == [[7, 0, 1]]
        assert gone.cancelled()
        assert also_gone.cancelled()

    run(embedder, scenario)


def test_what_nobody_wants_any_more_is_not_embedded() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        running = await soon(embedding.documents(["running"]))
        await embedder.begun()
        gone = await soon(embedding.documents([f"text {number}" for number in range(50)]))
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert embedding.describe()["queue"]["document_texts"] == 0
        embedder.let_go()
        await running
        await embedding.documents(["next"])

    run(embedder, scenario)
    assert [texts for _, texts in embedder.batches] == [["running"], ["next"]]


def test_a_failure_reaches_the_callers_of_its_batch_and_no_others() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        before = await soon(embedding.documents(["before"]))
        await embedder.begun()
        together = [
            await soon(embedding.documents(["poison"])),
            await soon(embedding.documents(["beside it"])),
        ]
        embedder.let_go()
        assert (await before).tolist() == [[6, 0, 1]]
        failed = await asyncio.gather(*together, return_exceptions=True)
        assert [type(error) for error in failed] == [EmbedderUnavailable] * 2
        assert failed[0] is not failed[1]
        assert not embedding.available
        described = embedding.describe()
        assert (described["failures"], described["texts"]) == (1, 1)
        assert "does not agree with me" in described["last_error"]
        # It is not remembered: the next try is a try.
        assert (await embedding.documents(["beside it"])).tolist() == [[9, 0, 1]]
        assert embedding.available

    run(embedder, scenario)


def test_a_large_call_fails_as_soon_as_one_of_its_batches_does() -> None:
    embedder = Gated(holds=[])

    async def scenario(embedding: Embedding) -> None:
        texts = [f"text {number}" for number in range(400)]
        texts[20] = "poison"
        with pytest.raises(EmbedderUnavailable):
            await embedding.documents(texts)
        queue = embedding.describe()["queue"]
        assert queue == {"query_texts": 0, "document_texts": 0}
        assert (await embedding.documents(texts[21:])).shape == (379, 3)

    run(embedder, scenario, batch_texts_max=2, queue_texts_max=1000)


def test_an_embedder_that_gives_the_wrong_number_of_rows_is_refused() -> None:
    class Short(Gated):
        def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
            vectors: Vectors = super().embed_now(texts, kind)[:-1]
            return vectors

    async def scenario(embedding: Embedding) -> None:
        with pytest.raises(EmbedderUnavailable, match="2 texts"):
            await embedding.documents(["a", "b"])

    run(Short(holds=[]), scenario)


def test_a_caller_in_a_hurry_gets_the_rows_that_can_be_had_in_time() -> None:
    embedder = Gated(holds=["document"])

    async def scenario(embedding: Embedding) -> None:
        embedder.let_go()
        await embedding.documents(["known"])
        embedder.hold()
        texts = ["known", *(f"text {number}" for number in range(99))]
        rows = await embedding.pooled_within(texts, 0)
        assert rows[0] is not None
        assert rows[0].vector.tolist() == [5, 0, 1]
        assert rows[1:] == [None] * 99
        assert embedding.describe()["queue"]["document_texts"] == 0
        embedder.let_go()
        rows = await embedding.pooled_within(texts, PATIENCE_S)
        assert [row is None for row in rows] == [False] * 100

    run(embedder, scenario)


def test_a_caller_in_a_hurry_is_told_of_no_failure_and_no_queue() -> None:
    embedder = Gated(holds=["document"])

    async def scenario(embedding: Embedding) -> None:
        waiting = await soon(embedding.documents(["runs"]))
        await embedder.begun()
        also = await soon(embedding.documents(["waits"]))
        assert await embedding.pooled_within(["a", "b"], PATIENCE_S) == [None, None]
        embedder.let_go()
        await asyncio.gather(waiting, also)
        assert await embedding.pooled_within(["poison"], PATIENCE_S) == [None]
        assert await embedding.pooled_within([], PATIENCE_S) == []

    run(embedder, scenario, queue_texts_max=2)


def test_an_embedder_that_is_replaced_answers_those_who_wait_first() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        callers = [await soon(embedding.documents([f"text {number}"])) for number in range(20)]
        callers.append(await soon(embedding.documents([f"bulk {number}" for number in range(70)])))
        await embedder.begun()
        retiring = await soon(embedding.retire())
        assert not embedder.closed
        embedder.let_go()
        assert sum(len(rows) for rows in await asyncio.gather(*callers)) == 90
        await retiring
        assert embedder.closed

    run(embedder, scenario)


def test_an_embedder_that_is_replaced_does_not_stay_for_ever() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        hangs = await soon(embedding.documents(["hangs"]))
        await embedder.begun()
        await embedding.retire()
        with pytest.raises(ShuttingDown):
            await hangs
        embedder.let_go()

    run(embedder, scenario, retire_wait_s_max=0, close_wait_s_max=0)


def test_an_embedder_that_is_put_away_does_not_hold_up_the_others() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        hangs = await soon(embedding.documents(["hangs"]))
        await embedder.begun()
        waits = await soon(embedding.documents(["waits"]))
        retiring = await soon(embedding.retire())
        with pytest.raises(ShuttingDown):
            await waits
        # Only a loop that goes on while the threads are waited for comes to let it go.
        embedder.let_go()
        assert len(await hangs) == 1
        await retiring
        assert embedder.closed

    run(embedder, scenario, retire_wait_s_max=0, close_wait_s_max=3)


def test_the_writer_may_embed_in_its_own_thread() -> None:
    async def scenario(embedding: Embedding) -> None:
        rows = await asyncio.to_thread(embedding.embed_now, ["some", "texts"])
        assert rows.tolist() == [[4, 0, 1], [5, 0, 1]]
        with pytest.raises(EmbedderUnavailable, match="gated failed: RuntimeError"):
            await asyncio.to_thread(embedding.embed_now, ["poison"])
        assert embedding.describe()["texts"] == 2

    run(Gated(holds=[]), scenario)


def test_closing_refuses_what_waits_and_answers_what_runs() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        runs = await soon(embedding.documents(["runs"]))
        await embedder.begun()
        waits = await soon(embedding.documents(["waits"]))
        embedder.let_go()
        embedding.close()
        assert embedder.closed
        outcome = await asyncio.gather(runs, waits, return_exceptions=True)
        assert isinstance(outcome[0], np.ndarray)
        assert isinstance(outcome[1], ShuttingDown)
        with pytest.raises(ShuttingDown):
            await embedding.documents(["after"])
        embedding.close()

    run(embedder, scenario)


def test_closing_does_not_wait_for_ever_for_an_embedder_that_hangs() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        hangs = await soon(embedding.documents(["hangs"]))
        await embedder.begun()
        embedding.close()
        with pytest.raises(ShuttingDown):
            await hangs
        embedder.let_go()

    run(embedder, scenario, close_wait_s_max=0)


def test_closing_in_the_middle_of_a_large_call_ends_it() -> None:
    embedder = Gated()

    async def scenario(embedding: Embedding) -> None:
        bulk = await soon(embedding.documents([f"text {number}" for number in range(1000)]))
        await embedder.begun()
        embedder.let_go()
        embedding.close()
        with pytest.raises(ShuttingDown):
            await bulk

    run(embedder, scenario, batch_texts_max=1, queue_texts_max=2000)


def test_what_the_provider_counts_is_shown() -> None:
    class Counting(Gated):
        def usage(self) -> dict[str, Any]:
            return {"tokens": 7}

    async def scenario(embedding: Embedding) -> None:
        assert embedding.describe()["provider"] == {"tokens": 7}

    run(Counting(), scenario)


@pytest.mark.parametrize("seed", range(5))
def test_many_callers_at_once_each_get_their_own_rows(seed: int) -> None:
    chance = random.Random(seed)
    vocabulary = [f"text number {number}" for number in range(60)]
    truth = dict(zip(vocabulary, HashedEmbedder().embed_now(vocabulary), strict=True))

    async def caller(embedding: Embedding) -> None:
        texts = chance.choices(vocabulary, k=chance.randint(1, 40))
        if chance.random() < 0.3:
            assert np.array_equal(await embedding.query(texts[0]), truth[texts[0]])
        else:
            rows = await embedding.documents(texts)
            assert np.array_equal(rows, np.stack([truth[text] for text in texts]))

    async def scenario(embedding: Embedding) -> None:
        tasks = []
        for _ in range(150):
            tasks.append(await soon(caller(embedding)))
            if chance.random() < 0.3:
                chance.choice(tasks).cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        ended = {type(outcome) for outcome in outcomes}
        assert ended <= {type(None), asyncio.CancelledError}
        assert embedding.describe()["queue"] == {"query_texts": 0, "document_texts": 0}

    sizes = {"batch_texts_max": 3, "queue_texts_max": 10_000, "cache_texts_max": 20}
    run(OffLoop(), scenario, threads=2, **sizes)
