"""The embedder behind an OpenAI-compatible endpoint, over real sockets, faults included."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from recollect.orchestrator.embedding.openai_compatible import (
    TEXT_CHARS_MAX,
    OpenAICompatibleEmbedder,
)
from recollect.orchestrator.embedding.pipeline import Embedding
from recollect.orchestrator.outside.breaker import Breaker
from recollect.orchestrator.outside.openai_endpoint import RETRY_AFTER_S_MAX
from recollect.protocol.errors import EmbedderUnavailable, InvalidArgument
from tests.harness import embedding_server as harness
from tests.harness.embedding_server import EmbeddingServer, Fault, unit_vectors

KEY = "sk-the-secret-one"
TEXTS = ["the first text", "the second one", "and a third"]


class Time:
    """A clock that moves when somebody sleeps by it."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept_s: list[float] = []

    def clock(self) -> float:
        return self.now_s

    def sleep(self, wait_s: float) -> None:
        self.slept_s.append(wait_s)
        self.now_s += wait_s


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(key=KEY) as running:
        yield running


@pytest.fixture
def time() -> Time:
    return Time()


Make = Callable[..., OpenAICompatibleEmbedder]


@pytest.fixture
def make(server: EmbeddingServer, time: Time) -> Iterator[Make]:
    made: list[OpenAICompatibleEmbedder] = []

    def one(**options: Any) -> OpenAICompatibleEmbedder:
        values: dict[str, Any] = {
            "url": server.url,
            "model": "some-model",
            "api_key": KEY,
            "dimensions_known": 8,
            "clock": time.clock,
            "sleep": time.sleep,
            "randomness": random.Random(1),
        }
        made.append(OpenAICompatibleEmbedder(**(values | options)))
        return made[-1]

    yield one
    for embedder in made:
        embedder.close()


def test_texts_become_unit_vectors_in_their_order(server: EmbeddingServer, make: Make) -> None:
    embedder = make()
    vectors = embedder.embed_now(TEXTS)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, unit_vectors(TEXTS, 8), atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    [request] = server.received
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "some-model", "input": TEXTS, "encoding_format": "float"}


@pytest.mark.parametrize("change", [harness.shuffled, harness.in_base64, harness.without_indices])
def test_other_ways_to_say_the_same_are_understood(
    server: EmbeddingServer, make: Make, change: Callable[[dict[str, Any]], object]
) -> None:
    server.fail(Fault(change=change))
    assert np.allclose(make().embed_now(TEXTS), unit_vectors(TEXTS, 8), atol=1e-6)


def test_an_address_with_a_slash_at_its_end_is_the_same(
    server: EmbeddingServer, make: Make
) -> None:
    make(url=server.url + "/").embed_now(TEXTS)
    assert server.received[0].path == "/v1/embeddings"


def test_without_a_key_none_is_sent() -> None:
    with EmbeddingServer() as server:
        embedder = OpenAICompatibleEmbedder(server.url, "m", None, dimensions_known=8)
        embedder.embed_now(TEXTS)
        embedder.close()
        assert "authorization" not in server.received[0].headers


def test_many_texts_go_in_several_requests(server: EmbeddingServer, make: Make) -> None:
    texts = [f"text number {number}" for number in range(25)]
    vectors = make(batch_texts_max=10).embed_now(texts)
    assert np.allclose(vectors, unit_vectors(texts, 8), atol=1e-6)
    assert [len(request.body["input"]) for request in server.received] == [10, 10, 5]


def test_long_texts_are_cut_and_do_not_make_a_request_too_large(
    server: EmbeddingServer, make: Make
) -> None:
    make().embed_now(["x" * 200_000] * 50)
    sent = [request.body["input"] for request in server.received]
    assert {len(text) for batch in sent for text in batch} == {TEXT_CHARS_MAX}
    assert max(sum(map(len, batch)) for batch in sent) <= 250_000


def test_blank_texts_are_zero_and_are_not_sent(server: EmbeddingServer, make: Make) -> None:
    vectors = make().embed_now(["", "words", " \n"])
    assert np.count_nonzero(vectors, axis=1).tolist() == [0, 8, 0]
    assert server.received[0].body["input"] == ["words"]


def test_text_of_any_kind_can_be_sent(server: EmbeddingServer, make: Make) -> None:
    make().embed_now(['"quoted" \\ and 漢字 and 🙂', "half a \ud83d sign", "\x00"])
    assert server.received[0].body["input"][:2] == ['"quoted" \\ and 漢字 and 🙂', "half a ? sign"]


def test_the_length_of_vectors_is_learnt_by_a_probe(server: EmbeddingServer, make: Make) -> None:
    embedder = make(dimensions_known=None)
    assert (embedder.dimensions, server.received) == (0, [])
    assert embedder.probe() == 8
    assert embedder.model == "openai/some-model/8" == make().model


def test_blank_texts_alone_have_the_right_length_too(make: Make) -> None:
    assert make(dimensions_known=None).embed_now([" "]).shape == (1, 8)


def test_a_length_that_is_asked_for_is_sent(server: EmbeddingServer, make: Make) -> None:
    embedder = make(dimensions=5, dimensions_known=None)
    assert embedder.embed_now(TEXTS).shape == (3, 5)
    assert server.received[0].body["dimensions"] == 5
    assert embedder.model == "openai/some-model/5"


def test_prefixes_are_put_before_and_make_another_model(
    server: EmbeddingServer, make: Make
) -> None:
    embedder = make(query_prefix="query: ", document_prefix="passage: ")
    embedder.embed_now(["words"], "query")
    embedder.embed_now(["words"])
    assert [request.body["input"] for request in server.received] == [
        ["query: words"],
        ["passage: words"],
    ]
    assert embedder.model != make().model
    assert embedder.model.startswith("openai/some-model/8/")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500),
        Fault(status=503, body=b"<html>bad gateway</html>"),
        Fault(status=429),
        Fault(cut=True),
        Fault(change=lambda reply: reply.pop("data")),
        Fault(status=200, body=b"<html>welcome to the hotel's network</html>"),
        Fault(status=200, body=b'{"data": [{"embedding": [0.1, '),
        Fault(status=200, body=b"\xff\xfe"),
    ],
)
def test_what_may_pass_is_tried_again(
    server: EmbeddingServer, make: Make, time: Time, fault: Fault
) -> None:
    server.fail(fault, fault)
    embedder = make(backoff_ms=100)
    assert np.allclose(embedder.embed_now(TEXTS), unit_vectors(TEXTS, 8), atol=1e-6)
    assert len(server.received) == 3
    first_s, second_s = time.slept_s
    assert 0.05 <= first_s <= 0.1
    assert 0.1 <= second_s <= 0.2
    usage = embedder.usage()
    assert (usage["requests"], usage["retries"], usage["failures"]) == (3, 2, 2)


def test_a_slow_server_is_given_up_and_tried_again(server: EmbeddingServer, make: Make) -> None:
    server.fail(Fault(hang=True))
    assert make(timeout_s=0.05).embed_now(TEXTS).shape == (3, 8)
    assert len(server.received) == 2


def test_an_answer_that_drips_is_bounded_as_a_whole(server: EmbeddingServer, make: Make) -> None:
    server.fail(Fault(drip=True))
    # By this clock the first bytes of the answer come a minute after the question.
    moments_s = iter([0.0, 60.0])
    embedder = make(attempts_max=1, timeout_s=20, clock=lambda: next(moments_s))
    with pytest.raises(EmbedderUnavailable, match="took more than 20 s"):
        embedder.embed_now(TEXTS)


def test_attempts_are_bounded_and_the_error_says_what_happened(
    server: EmbeddingServer, make: Make, time: Time
) -> None:
    server.fail(*[Fault(status=500)] * 10)
    with pytest.raises(EmbedderUnavailable, match="asked 3 times: it answered 500: told") as failed:
        make(attempts_max=3).embed_now(TEXTS)
    assert failed.value.retryable
    assert len(server.received) == 3
    assert len(time.slept_s) == 2


def test_the_wait_that_the_server_asks_for_is_kept(
    server: EmbeddingServer, make: Make, time: Time
) -> None:
    server.fail(
        Fault(status=429, headers={"retry-after": "7"}),
        Fault(status=429, headers={"retry-after-ms": "1500"}),
        Fault(status=503, headers={"retry-after": "soon"}),
    )
    make(backoff_ms=100).embed_now(TEXTS)
    assert time.slept_s[:2] == [7, 1.5]
    assert 0.2 <= time.slept_s[2] <= 0.4


def test_a_wait_until_a_date_is_read_by_the_servers_clock() -> None:
    from recollect.orchestrator.outside.openai_endpoint import retry_after_s

    headers = {
        "date": "Tue, 17 Nov 2026 10:00:00 GMT",
        "retry-after": "Tue, 17 Nov 2026 10:00:09 GMT",
    }
    assert retry_after_s(headers) == 9
    assert retry_after_s({"retry-after": headers["date"]}) is None


def test_a_server_that_asks_for_a_long_wait_is_taken_to_be_away(
    server: EmbeddingServer, make: Make, time: Time
) -> None:
    asked_s = int(RETRY_AFTER_S_MAX) + 1
    server.fail(Fault(status=429, headers={"retry-after": str(asked_s)}))
    with pytest.raises(EmbedderUnavailable) as failed:
        make().embed_now(TEXTS)
    assert failed.value.details["retry_after_ms"] == asked_s * 1000
    assert time.slept_s == []


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "embedding.model"),
        (401, "openai_key_variable"),
        (403, "may use the model"),
        (404, "embedding.openai_url"),
        (418, "embedding.openai_url"),
    ],
)
def test_a_refusal_is_not_tried_again_and_says_what_to_do(
    server: EmbeddingServer, make: Make, status: int, advice: str
) -> None:
    server.fail(Fault(status=status))
    embedder = make(breaker_fail_max=1)
    with pytest.raises(EmbedderUnavailable, match=advice) as refused:
        embedder.embed_now(TEXTS)
    assert refused.value.details["http_status"] == status
    assert "told to fail" in refused.value.message
    assert len(server.received) == 1
    # The server is there, so the breaker stays closed.
    embedder.embed_now(TEXTS)


def test_an_empty_account_is_not_asked_again(server: EmbeddingServer, make: Make) -> None:
    body = b'{"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}'
    server.fail(Fault(status=429, body=body))
    with pytest.raises(EmbedderUnavailable, match="balance"):
        make().embed_now(TEXTS)
    assert len(server.received) == 1


def test_a_server_that_moved_is_not_followed(server: EmbeddingServer, make: Make) -> None:
    server.fail(Fault(status=308, headers={"location": "https://elsewhere.example/v1"}))
    with pytest.raises(EmbedderUnavailable, match=r"moved to https://elsewhere\.example/v1"):
        make().embed_now(TEXTS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (harness.one_short, "2 vectors for 3 texts"),
        (harness.same_index_twice, "indices"),
        (harness.shorter_vectors, "7 numbers, not of 8"),
        (harness.uneven_vectors, "different lengths"),
        (harness.empty_vectors, "empty vectors"),
        (harness.huge_numbers, "not finite"),
        (harness.broken_base64, "base64"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(
    server: EmbeddingServer,
    make: Make,
    change: Callable[[dict[str, Any]], object],
    words: str,
) -> None:
    server.fail(Fault(change=change))
    with pytest.raises(EmbedderUnavailable, match=words):
        make().embed_now(TEXTS)
    assert len(server.received) == 1


def test_the_key_is_shown_nowhere(server: EmbeddingServer, make: Make) -> None:
    wrong = "sk-some-wrong-key"
    embedder = make(api_key=wrong)
    with pytest.raises(EmbedderUnavailable) as refused:
        embedder.embed_now(TEXTS)
    server.fail(Fault(status=500, body=f'{{"error": "who is {wrong}?"}}'.encode()))
    with pytest.raises(EmbedderUnavailable) as failed:
        make(api_key=wrong, attempts_max=1).embed_now(TEXTS)
    for error in (refused.value, failed.value):
        assert "[key]" in error.message
        assert wrong not in "".join(traceback.format_exception(error))
    assert wrong not in repr(embedder) + str(embedder.usage())


@pytest.mark.parametrize("key", ["sk-with\na-line", "sk-ключ"])
def test_a_key_that_cannot_be_one_is_refused_unseen(make: Make, key: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make(api_key=key)
    assert key not in str(refused.value)


def test_the_line_end_that_a_file_puts_after_a_key_does_no_harm(make: Make) -> None:
    make(api_key=KEY + "\n").embed_now(TEXTS)


@pytest.mark.parametrize(
    "url", ["", "localhost:80", "ftp://host/v1", "https://user:word@host/v1", "http://h/?key=1"]
)
def test_what_is_no_plain_address_is_refused(make: Make, url: str) -> None:
    with pytest.raises(InvalidArgument, match="openai_url"):
        make(url=url)


def test_nobody_at_the_address_is_an_error_that_names_it(make: Make) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening, and nobody else can
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(EmbedderUnavailable, match=url):
            make(url=url).embed_now(TEXTS)


def test_after_failures_in_a_row_the_server_is_left_alone_for_a_while(
    server: EmbeddingServer, make: Make, time: Time
) -> None:
    server.fail(*[Fault(status=500)] * 4)
    embedder = make(attempts_max=2, breaker_fail_max=3, breaker_reset_s=60)
    for _ in range(2):
        with pytest.raises(EmbedderUnavailable, match="it answered 500"):
            embedder.embed_now(TEXTS)
    assert len(server.received) == 3
    with pytest.raises(EmbedderUnavailable, match=r"was not asked.*it answered 500") as spared:
        embedder.embed_now(TEXTS)
    assert 0 < spared.value.details["retry_after_ms"] <= 60_000
    assert embedder.usage()["breaker"]["state"] == "open"
    # One probe after the wait; it fails, and the wait begins anew.
    time.now_s += 60
    with pytest.raises(EmbedderUnavailable, match="asked once"):
        embedder.embed_now(TEXTS)
    assert len(server.received) == 4
    time.now_s += 60
    assert embedder.embed_now(TEXTS).shape == (3, 8)
    assert embedder.usage()["breaker"] == {
        "state": "closed",
        "failures": 0,
        "opened_count": 1,
        "retry_in_s": 0.0,
    }


def test_a_breaker_lets_one_probe_through_at_a_time() -> None:
    time = Time()
    breaker = Breaker(fail_max=1, reset_s=10, clock=time.clock)
    breaker.failed()
    assert breaker.wait_s() == 10
    time.now_s += 10
    assert breaker.wait_s() == 0
    assert breaker.wait_s() == 10
    breaker.succeeded()
    assert [breaker.wait_s(), breaker.wait_s()] == [0, 0]


def test_tokens_and_their_cost_are_counted(make: Make) -> None:
    embedder = make(price_per_million_tokens=20.0)
    embedder.embed_now(TEXTS)
    embedder.embed_now(["one more"], "query")
    usage = embedder.usage()
    assert (usage["texts"], usage["tokens"]) == (4, 11)
    assert usage["cost"] == pytest.approx(11 * 20 / 1_000_000)


def test_an_answer_without_counts_is_an_answer(server: EmbeddingServer, make: Make) -> None:
    server.fail(Fault(change=lambda reply: reply.pop("usage")))
    embedder = make()
    embedder.embed_now(TEXTS)
    assert embedder.usage()["tokens"] == 0


def test_several_threads_may_ask_at_once(make: Make) -> None:
    embedder = make(dimensions_known=None)
    texts = [[f"text {caller} {number}" for number in range(4)] for caller in range(12)]
    with ThreadPoolExecutor(6) as pool:
        for own, vectors in zip(texts, pool.map(embedder.embed_now, texts), strict=True):
            assert np.allclose(vectors, unit_vectors(own, 8), atol=1e-6)
    assert embedder.usage()["texts"] == 48


def test_closing_ends_the_waits_between_attempts(server: EmbeddingServer, make: Make) -> None:
    waits = threading.Event()

    class Telling(random.Random):
        """Asked for the length of a wait, it tells that one begins."""

        def uniform(self, a: float, b: float) -> float:
            waits.set()
            return super().uniform(a, b)

    server.fail(*[Fault(status=500)] * 3)
    embedder = make(sleep=None, backoff_ms=600_000, randomness=Telling(1))
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(embedder.embed_now, TEXTS)
        assert waits.wait(20)
        embedder.close()
        with pytest.raises(EmbedderUnavailable):
            asking.result(20)


def test_it_serves_the_pipeline_which_shows_its_counts(server: EmbeddingServer, make: Make) -> None:
    async def scenario() -> None:
        embedding = Embedding(
            make(),
            loop=asyncio.get_running_loop(),
            threads=2,
            batch_texts_max=4,
            queue_texts_max=100,
            cache_texts_max=100,
        )
        try:
            texts = [f"text number {number}" for number in range(20)]
            vectors = await embedding.documents(texts)
            assert np.allclose(vectors, unit_vectors(texts, 8), atol=1e-6)
            server.fail(Fault(status=401))
            with pytest.raises(EmbedderUnavailable, match="openai_key_variable"):
                await embedding.query("where?")
            described = embedding.describe()
            assert described["available"] is False
            assert described["provider"]["texts"] == 20
            assert (await embedding.query("where?")).shape == (8,)
        finally:
            embedding.close()

    asyncio.run(scenario())


def test_without_httpx_it_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['httpx'] = None\n"
        "from recollect.orchestrator.embedding.openai_compatible import *\n"
        "OpenAICompatibleEmbedder('http://h/v1', 'm', None)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'recollect[openai]'" in run.stderr
