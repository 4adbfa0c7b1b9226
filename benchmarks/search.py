"""Search through the service, beside the raw parts that it is made of.

`python -m benchmarks.search --sizes 100000,1000000` fills a service with generated memories, whose
vectors are of the light embedder with 384 dimensions, and measures search by vector and by words,
start-up and memory; then, with the local model, recall and ingest beside the bare model.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from benchmarks.ann import bare_search, clustered, rate, slices
from benchmarks.lexical import Language, Memory
from benchmarks.load import ignore, latencies_us, throughput
from benchmarks.raw import EchoClient, echo_server
from benchmarks.service import (
    Service,
    anonymous_bytes,
    folder,
    replace_vectors,
    settle,
    store,
)
from benchmarks.table import Row, at_least, at_most, p50, p99, show
from recollect import MemoryClient
from recollect.models.locating import find
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.onnx import OnnxEmbedder
from recollect.orchestrator.search.vectors import FaissIndex
from recollect.orchestrator.search.vectors.ivf import coded_query
from recollect.orchestrator.storage.listed import numbers
from recollect.orchestrator.vectors.faiss_indexes import PAIRS

DIMENSIONS = 384
QUESTIONS = 400
CALLS = 1_000
CLIENTS = 8
SECONDS = 3.0
K = 10
DEPTH = 100
WORDS_MS_MAX = {100_000: 10.0, 1_000_000: 40.0}
MODEL = "all-MiniLM-L6-v2"
MODEL_MEMORIES = 3_000


def fill(endpoint: str, memories: Iterator[Memory]) -> None:
    """Store memories, and wait until they are indexed."""
    with MemoryClient(endpoint, timeout=120.0) as client:
        store(client, map(item, memories))
        settle(client)


def item(memory: Memory) -> dict[str, Any]:
    """A generated memory as it is sent."""
    return {
        "content": memory.content,
        "namespace": memory.namespace,
        "metadata": {"speaker": memory.author},
    }


def asking(endpoint: str, call: Callable[[MemoryClient, Any], object], asked: list[Any]) -> Any:
    """A call that asks one thing after another."""
    client, turns = MemoryClient(endpoint, timeout=60.0), itertools.cycle(asked)
    return lambda: ignore(call(client, next(turns)))


def by_vector(client: MemoryClient, vector: bytes) -> object:
    return client.semantic_search("-", K, vector=vector)


def by_words(client: MemoryClient, question: str) -> object:
    return client.search_memory(question, limit=K)


def opened_index(data: Path) -> FaissIndex:
    """The index of a service that is stopped, opened here."""
    model = HashedEmbedder(DIMENSIONS).model
    folder = next((data / "index").iterdir())
    index = FaissIndex(DIMENSIONS, folder=folder, model=model)
    index.open()
    connection = apsw.Connection(str(data / "recollect.db"), flags=apsw.SQLITE_OPEN_READONLY)
    [(nums, seqs)] = connection.execute(PAIRS.format(table="vectors")).fetchall()
    connection.close()
    index.reconcile(numbers(str(nums)), numbers(str(seqs)))
    return index


def large(size: int, place: Path) -> list[Row]:
    """Vectors, words, start-up and memory at one size."""
    language = Language(size)
    service = Service(place / "data")
    service.environment["RECOLLECT_EMBEDDING_DIMENSIONS"] = str(DIMENSIONS)
    service.start()
    empty = anonymous_bytes(service.pid)
    sample: list[Memory] = []

    def kept() -> Iterator[Memory]:
        for memory in language.memories(size):
            if memory.num % max(1, size // QUESTIONS) == 0:
                sample.append(memory)
            yield memory

    started = time.perf_counter()
    fill(service.endpoint, kept())
    filled_s = time.perf_counter() - started
    questions = [language.question(memory) for memory in sample]
    service.stop()
    # Vectors of a light embedder lie unlike those of a model, so others take their place.
    replace_vectors(place / "data", itertools.chain.from_iterable(v for _, v in slices(size)))
    vectors = clustered(QUESTIONS, 2)
    asked = [vector.tobytes() for vector in vectors]
    service.start()
    with MemoryClient(service.endpoint, timeout=60.0) as client:
        settle(client)
    service.stop()

    index = opened_index(place / "data")
    coded = [coded_query(vector) for vector in vectors]
    raw = bare_search(index, None)
    turns = itertools.cycle(coded)
    raw_us = p50(latencies_us(lambda: ignore(raw(next(turns))), CALLS))
    raw_rate = rate(raw, coded)
    index.close()
    del index

    ready_s = service.start()
    with MemoryClient(service.endpoint, timeout=60.0) as client:
        answer: Any = by_vector(client, asked[0])
    with echo_server(answer) as endpoint:
        request = {"query": "-", "k": K, "vector": asked[0]}
        echo_us = p50(latencies_us(EchoClient(endpoint, request).call, CALLS))
    near_us = latencies_us(asking(service.endpoint, by_vector, asked), CALLS)
    near_rate = throughput(
        lambda number: asking(service.endpoint, by_vector, asked[number:]), CLIENTS, SECONDS
    )
    words_us = latencies_us(asking(service.endpoint, by_words, questions), CALLS)
    resident = (anonymous_bytes(service.pid) - empty) / size
    service.stop()
    bound = echo_us + (1.3 * raw_us if size <= 100_000 else 2_000)
    beside = f"echo {echo_us:,.0f} + " + (
        f"1.3 x raw FAISS {raw_us:,.0f}" if size <= 100_000 else "2,000"
    )
    return [
        Row(f"{size:,}: stored and indexed", f"{filled_s:,.0f} s", "", 1.0, "shown", True),
        at_most(f"{size:,}: semantic_search, p50", p50(near_us), bound, 1.0, "µs", beside),
        at_least(
            f"{size:,}: semantic_search, {CLIENTS} clients",
            near_rate, raw_rate, 0.6, "/s", "raw FAISS, 8 threads",
        ),
        at_most(
            f"{size:,}: search_memory, p99", p99(words_us) / 1000,
            WORDS_MS_MAX.get(size, 40.0), 1.0, "ms", f"p50 {p50(words_us) / 1000:.1f}; bound",
        ),
        at_most(f"{size:,}: ready after start", ready_s, 5.0, 1.0, "s", "bound"),
        at_most(f"{size:,}: resident a memory", resident, 1_200, 1.0, "bytes", "bound"),
    ]  # fmt: skip


def with_model(place: Path) -> list[Row]:
    """Recall and ingest with the local model, beside its parts run alone."""
    installed = find(MODEL)
    if installed is None:
        raise SystemExit("The model is not installed: recollect models install")
    embedder = OnnxEmbedder(installed.folder, name=installed.name)
    language = Language(5)
    memories = list(language.memories(2 * MODEL_MEMORIES))
    first, second = memories[:MODEL_MEMORIES], memories[MODEL_MEMORIES:]
    questions = [language.question(memory) for memory in first[:: MODEL_MEMORIES // QUESTIONS]]
    service = Service(place / "model", "local")
    service.start()
    fill(service.endpoint, iter(first))

    turns = itertools.cycle(questions)
    model_us = p50(latencies_us(lambda: ignore(embedder.embed_now([next(turns)])), CALLS // 2, 20))
    vectors = [embedder.embed_now([question])[0].tobytes() for question in questions]
    # As deep as recall asks.
    near_us = p50(
        latencies_us(
            asking(service.endpoint, lambda c, v: c.semantic_search("-", DEPTH, vector=v), vectors),
            CALLS // 2,
        )
    )
    words_us = p50(
        latencies_us(
            asking(service.endpoint, lambda c, q: c.search_memory(q, limit=DEPTH), questions),
            CALLS // 2,
        )
    )
    # Questions that were not asked before, or their vectors would come from the cache.
    fresh = itertools.count()
    with MemoryClient(service.endpoint, timeout=60.0) as client:
        recall_us = p50(
            latencies_us(
                lambda: ignore(client.recall(f"{next(turns)} {next(fresh)}")), CALLS // 2, 20
            )
        )
    texts = [memory.content for memory in second]
    raw_rate = _model_rate(embedder, texts)
    ingest_rate, search_us = _ingest(service, second, questions)
    service.stop()
    parts = model_us + near_us + words_us
    return [
        at_most(
            "recall, p50", recall_us, parts, 1.2, "µs",
            f"model {model_us:,.0f} + semantic {near_us:,.0f} + words {words_us:,.0f} =",
        ),
        at_least(
            "ingest with the local model", ingest_rate, raw_rate, 0.9, "/s",
            "bare model, both cores",
        ),
        at_most("recall while ingesting, p99", p99(search_us) / 1000, 50.0, 1.0, "ms", "bound"),
    ]  # fmt: skip


def _model_rate(embedder: OnnxEmbedder, texts: list[str]) -> float:
    """Texts per second of the bare model, one thread a core."""
    threads = os.cpu_count() or 1
    parts = [texts[at::threads] for at in range(threads)]
    work = [threading.Thread(target=embedder.embed_now, args=(part,)) for part in parts]
    started = time.perf_counter()
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    return len(texts) / (time.perf_counter() - started)


def _ingest(
    service: Service, memories: list[Memory], questions: list[str]
) -> tuple[float, list[float]]:
    """Memories embedded per second, and how long questions took meanwhile."""
    done = threading.Event()
    samples: list[float] = []

    def ask() -> None:
        with MemoryClient(service.endpoint, timeout=60.0) as client:
            for number in itertools.count():
                if done.is_set():
                    return
                began = time.perf_counter_ns()
                client.recall(f"{questions[number % len(questions)]} {number}")
                samples.append((time.perf_counter_ns() - began) / 1000)
                done.wait(0.1)

    asker = threading.Thread(target=ask)
    asker.start()
    started = time.perf_counter()
    fill(service.endpoint, iter(memories))
    elapsed_s = time.perf_counter() - started
    done.set()
    asker.join()
    return len(memories) / elapsed_s, samples


def main(arguments: list[str]) -> bool:
    """Measure everything and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--sizes", default="100000", help="how many memories, with commas")
    parser.add_argument("--no-model", action="store_true", help="leave out the local model")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for size in (int(size) for size in options.sizes.split(",") if size):
        with folder() as place:
            rows += large(size, place)
    if not options.no_model:
        with folder() as place:
            rows += with_model(place)
    return show("Search through the service, beside its raw parts", rows)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
