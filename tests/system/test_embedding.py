"""Vectors through a real orchestrator: the local model, a remote one, and moving between them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect import MemoryClient
from recollect.models.locating import find
from tests.faults.polling import wait_for
from tests.harness.embedding_server import EmbeddingServer, Fault
from tests.harness.processes import OrchestratorProcess

LOCAL = {"RECOLLECT_EMBEDDING_PROVIDER": "local"}
MODEL = "all-MiniLM-L6-v2"
EMBEDDED_WITHIN_S = 60.0


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    """`make install` brings the model; without it these tests skip on a laptop, and fail in CI."""
    if find(MODEL) is None:
        if os.environ.get("CI"):
            pytest.fail("the model is not installed: recollect models install")
        pytest.skip("the model is not installed: recollect models install")


def settled(client: MemoryClient) -> bool:
    embedding = client.stats()["embedding"]
    return not embedding["waiting"] and embedding["reembedding"]["state"] in ("idle", "done")


def test_the_local_model_finds_what_shares_no_word_with_the_question(tmp_path: Path) -> None:
    with OrchestratorProcess(tmp_path / "data", env=LOCAL) as process, process.client() as client:
        wanted = client.add_memory("The physician told him to rest for a week.")["memory_id"]
        client.add_memory("The invoice was paid late because of the holidays.")
        client.add_memory("Our web server answers on port 8443.")
        for found in (
            client.semantic_search("What did the doctor say?", 1),
            client.recall("What did the doctor say?", 1),
        ):
            assert [result["id"] for result in found["results"]] == [wanted]
        stats = client.stats()
        assert stats["index"]["model"].startswith(MODEL)
        assert stats["embedding"]["dimensions"] == 384


def test_the_local_model_finds_the_one_sentence_of_a_text_about_many_things(
    tmp_path: Path,
) -> None:
    with OrchestratorProcess(tmp_path / "data", env=LOCAL) as process, process.client() as client:
        wanted = client.add_memory(
            "The parcel from the tailor came this morning and is in the hall. The physician told "
            "him to rest for a week. Our web server is quicker since the move. Ships pass the "
            "lighthouse at night. The invoice was paid late because of the holidays."
        )["memory_id"]
        client.add_memory("She asked her teacher about the exam, and he said that it went well.")
        client.add_memory("What the plumber said about the pipes was not good news at all.")
        client.add_memory("The dentist has moved to another street.")
        found = client.recall("What did the doctor say?", 1)
        assert [result["id"] for result in found["results"]] == [wanted]


def test_a_store_moves_to_another_model_while_it_is_searched_and_written(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    with process, process.client() as client:
        items = [{"content": f"note {n} about the harbour"} for n in range(400)]
        client.batch_add_memories(items)
        wanted = client.add_memory("The physician told him to rest for a week.")["memory_id"]
        assert client.stats()["index"]["model"].startswith("hashed")
        process.stop()
    process.env = dict(LOCAL)
    with process, process.client() as client:
        added: list[str] = []
        while client.stats()["embedding"]["reembedding"]["state"] == "running":
            # Searches work at every moment, by the old model or by the new one.
            assert client.semantic_search("harbour note", 3)["count"] == 3
            added.append(client.add_memory(f"written meanwhile {len(added)}")["memory_id"])
        wait_for(lambda: settled(client), within_s=EMBEDDED_WITHIN_S, what="the new model")
        stats = client.stats()
        assert stats["index"]["model"].startswith(MODEL)
        assert stats["index"]["vectors"] == 401 + len(added)
        assert client.semantic_search("What did the doctor say?", 1)["results"][0]["id"] == wanted


def test_a_move_that_was_killed_goes_on_after_a_restart(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    with process, process.client() as client:
        client.batch_add_memories([{"content": f"note {n} of the harbour"} for n in range(1500)])
        client.reembed(MODEL)
        wait_for(
            lambda: client.stats()["embedding"]["reembedding"].get("done", 0) >= 256,
            within_s=EMBEDDED_WITHIN_S,
            what="some of it",
        )
        process.kill()
        process.start()
        again = client.stats()["embedding"]
        assert again["reembedding"]["state"] != "idle" or again["model"].startswith(MODEL)
        wait_for(lambda: settled(client), within_s=EMBEDDED_WITHIN_S, what="all of it")
        stats = client.stats()
        assert stats["index"]["model"].startswith(MODEL)
        assert stats["index"]["vectors"] == 1500
        # What was chosen by a call stands: another restart does not move back.
        process.kill()
        process.start()
        assert client.stats()["index"]["model"].startswith(MODEL)
        assert client.stats()["embedding"]["reembedding"]["state"] == "idle"


def test_while_the_embedder_is_away_memories_are_stored_and_found_by_words(
    tmp_path: Path,
) -> None:
    with EmbeddingServer(8, key="secret") as server:
        env = {
            "RECOLLECT_EMBEDDING_PROVIDER": "openai",
            "RECOLLECT_EMBEDDING_MODEL": "tiny",
            "RECOLLECT_EMBEDDING_OPENAI_URL": server.url,
            "RECOLLECT_EMBEDDING_OPENAI_ATTEMPTS_MAX": "1",
            "OPENAI_API_KEY": "secret",
        }
        process = OrchestratorProcess(tmp_path / "data", env=env)
        with process, process.client() as client:
            client.add_memory("before the outage")
            assert client.stats()["embedding"]["waiting"] == 0
            server.fail(*[Fault(status=500)] * 4)
            lost = client.add_memory("written during the outage")["memory_id"]
            assert client.stats()["embedding"]["waiting"] == 1
            assert client.search_memory("outage written")["results"][0]["id"] == lost
            recalled = client.recall("written during")
            assert recalled["results"][0]["id"] == lost
            wait_for(lambda: settled(client), within_s=EMBEDDED_WITHIN_S, what="its vector")
            assert (
                client.semantic_search("written during the outage", 1)["results"][0]["id"] == lost
            )
            usage = client.stats()["embedding"]["provider"]
            assert usage["tokens"] > 0
        assert "secret" not in process.log()


def test_without_a_model_the_service_starts_on_the_light_embedder_and_says_so(
    tmp_path: Path,
) -> None:
    env = {**LOCAL, "RECOLLECT_MODELS": str(tmp_path / "none")}
    process = OrchestratorProcess(tmp_path / "data", env=env)
    with process, process.client() as client:
        memory_id = client.add_memory("lighthouse on the cliff")["memory_id"]
        assert client.recall("lighthouse")["results"][0]["id"] == memory_id
        assert client.stats()["index"]["model"].startswith("hashed")
        [error] = client.recent_errors(code="embedder_unavailable")["errors"]
        assert "recollect models install" in error["message"]
        process.stop()
    assert "recollect models install" in process.log()
    # Once the model is there, the next start moves to it.
    process.env = dict(LOCAL)
    with process, process.client() as client:
        wait_for(lambda: settled(client), within_s=EMBEDDED_WITHIN_S, what="the new model")
        assert client.stats()["index"]["model"].startswith(MODEL)


def test_a_store_whose_model_is_gone_is_searched_by_words_and_keeps_its_vectors(
    tmp_path: Path,
) -> None:
    process = OrchestratorProcess(tmp_path / "data", env=LOCAL)
    with process, process.client() as client:
        memory_id = client.add_memory("lighthouse on the cliff")["memory_id"]
        process.stop()
    process.env = {**LOCAL, "RECOLLECT_MODELS": str(tmp_path / "none")}
    with process, process.client() as client:
        found = client.recall("lighthouse")
        assert [result["id"] for result in found["results"]] == [memory_id]
        assert "recollect models install" in found["degraded"]
        later = client.add_memory("a harbour in the north")["memory_id"]
        assert client.search_memory("harbour")["results"][0]["id"] == later
        process.stop()
    process.env = dict(LOCAL)
    with process, process.client() as client:
        wait_for(lambda: settled(client), within_s=EMBEDDED_WITHIN_S, what="its vector")
        assert client.stats()["index"]["vectors"] == 2
        assert "degraded" not in client.recall("lighthouse")
