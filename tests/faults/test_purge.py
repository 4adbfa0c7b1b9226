"""P21: purge leaves nothing, in no file of the store and no line of the log."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import MemoryClient, RecollectError
from recollect.orchestrator.storage.copies import DATABASE_NAME
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.leftovers import (
    DIMENSIONS,
    Planting,
    Secret,
    contents_of_redis,
    files,
    found,
)
from tests.faults.polling import wait_for
from tests.faults.tools.database import problems, rows
from tests.harness.embedding_server import EmbeddingServer, unit_vectors
from tests.harness.processes import OrchestratorProcess
from tests.harness.redis import RedisServer

HEAD_MAX = 16
WITHIN_S = 60.0
ENVIRONMENT = {
    "RECOLLECT_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
    "RECOLLECT_INDEX_HEAD_MAX": str(HEAD_MAX),
    "RECOLLECT_LOGGING_LEVEL": "info",
}
CRASHES = counts.pick(3, 60)
REMAINING = "SELECT count(*) FROM memories WHERE namespace = 'app:ordinary'"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    with OrchestratorProcess(tmp_path / "data", env=ENVIRONMENT) as process:
        yield process


def settled(client: MemoryClient) -> None:
    """Wait until all that can be is sealed in segments."""

    def is_settled() -> bool:
        stats = client.stats()
        index = stats["index"]
        return (
            not index["building"]
            and index["head"] < HEAD_MAX
            and not stats["embedding"]["waiting"]
            and all(segment["saved"] for segment in index["segments"])
        )

    wait_for(is_settled, within_s=WITHIN_S, what="a settled index")


def wiped(client: MemoryClient) -> None:
    wait_for(lambda: client.stats()["purges"]["wiped"], within_s=WITHIN_S, what="that all is wiped")


def plant(client: MemoryClient, chance: random.Random) -> tuple[list[Secret], int]:
    """Secrets among many memories, sealed in segments with them; and how many stay."""
    planting = Planting(client, chance)
    planting.ordinary(60)
    secrets = planting.all()
    for _ in range(4):
        ids = planting.ordinary(60)
        # Rows that move from page to page leave something behind.
        for memory_id in chance.sample(ids, 20):
            client.update_memory(memory_id, {"content": "changed " * chance.randint(1, 200)})
    settled(client)
    return secrets, client.count(namespace="app:ordinary")["count"]


def purge(client: MemoryClient, secret: Secret) -> bool:
    """Purge what holds a secret; whether it was wiped when the answer came."""
    return all([client.purge(one, cascade=secret.cascade)["wiped"] for one in secret.memory_ids])


def check_gone(
    trial: Trial, process: OrchestratorProcess, secrets: list[Secret], when: str
) -> None:
    trial.case(len(secrets) * len(files(process.data, process.log_path)))
    for hit in found(secrets, process.data, process.log_path):
        trial.violated(f"{when}: {hit}")


def check_sound(trial: Trial, process: OrchestratorProcess, scratch: Path, stay: int) -> None:
    """The rest is as it was."""
    for problem in problems(process.data, scratch):
        trial.violated(problem)
    remaining = rows(process.data / DATABASE_NAME, REMAINING)
    trial.check(remaining == [(stay,)], f"of {stay} others there are {remaining}")


@pytest.mark.timeout(counts.timeout_s(180))
def test_nothing_is_left_once_a_purge_is_answered(
    process: OrchestratorProcess, tmp_path: Path
) -> None:
    with Trial("P21") as trial, process.client() as client:
        secrets, stay = plant(client, random.Random(counts.SEED))
        before = " ".join(found(secrets, process.data))
        for secret in secrets:
            assert secret.what in before, f"{secret.what} was never in a file"
        assert "vectors.f32" in before, "no vector was ever in a segment"
        for number, secret in enumerate(secrets):
            trial.check(purge(client, secret), f"{secret.what} was not wiped in time")
            check_gone(trial, process, secrets[: number + 1], f"after the purge of {secret.what}")
        # Whatever is written now does not bring it back from somebody's memory.
        Planting(client, random.Random(1)).ordinary(300)
        settled(client)
        check_gone(trial, process, secrets, "after more writes")
        assert process.stop() == 0
        check_gone(trial, process, secrets, "after a stop")
        check_sound(trial, process, tmp_path / "scratch", stay + 300)
        process.start()
        settled(client)
        check_gone(trial, process, secrets, "after a restart")
        answer = client.recall("river stone", namespace="app:ordinary", k=5)
        trial.check(len(answer["results"]) == 5, "the others are not found")


@pytest.mark.timeout(counts.timeout_s(180))
def test_nothing_is_left_after_purges_beside_readers_and_writers(
    process: OrchestratorProcess, tmp_path: Path
) -> None:
    """Several at once are wiped together, while others write and search."""
    done = threading.Event()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        chance = random.Random(number)
        try:
            with process.client() as client:
                while not done.is_set():
                    client.add_memory("river " * chance.randint(1, 300), namespace="app:other")
                    client.recall("stone river", k=5)
                    client.search_memory("copper", limit=50)
        except BaseException as error:
            failures.append(error)

    with Trial("P21") as trial, process.client() as client:
        secrets, stay = plant(client, random.Random(counts.SEED + 1))
        workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        purges = [threading.Thread(target=purge_by_another, args=(process, s)) for s in secrets]
        for thread in (*workers, *purges):
            thread.start()
        try:
            for thread in purges:
                thread.join(WITHIN_S)
            wiped(client)
        finally:
            done.set()
            for thread in workers:
                thread.join(WITHIN_S)
        assert not failures, failures
        check_gone(trial, process, secrets, "beside others")
        assert process.stop() == 0
        check_gone(trial, process, secrets, "after a stop")
        check_sound(trial, process, tmp_path / "scratch", stay)


def purge_by_another(process: OrchestratorProcess, secret: Secret) -> None:
    with process.client() as client:
        purge(client, secret)


@pytest.mark.timeout(counts.timeout_s(240))
def test_a_crash_while_wiping_is_made_up_for_at_the_start(
    process: OrchestratorProcess, tmp_path: Path
) -> None:
    chance = random.Random(counts.SEED + 2)
    died = 0
    with Trial("P21") as trial:
        for number in range(CRASHES):
            with process.client() as client:
                secrets, stay = plant(client, chance)
            assert process.stop() == 0
            passes = chance.choice([1, 2, 3, chance.randint(4, 40)])
            process.start(RECOLLECT_FAILPOINTS=f"while_scrubbing:{passes}")
            with process.client(timeout=2.0) as client:
                purged = purge_until_it_dies(client, secrets)
                if process.running():
                    wiped(client)
                    process.kill()
                else:
                    died += 1
            check_sound(trial, process, tmp_path / "scratch", stay)
            process.start()
            when = f"after crash {number} at {passes}"
            with process.client() as client:
                gone = [secret for secret in secrets if is_gone(client, secret)]
                trial.check(set(purged) <= set(gone), f"{when}: a purge was undone")
                wiped(client)
                check_gone(trial, process, gone, when)
                for secret in secrets:
                    if secret not in gone:
                        purge(client, secret)
                wiped(client)
            check_gone(trial, process, secrets, f"{when} and the rest")
        assert died, "it never died"


def purge_until_it_dies(client: MemoryClient, secrets: list[Secret]) -> list[Secret]:
    """Those whose purge was answered before the process died."""
    purged = []
    for secret in secrets:
        try:
            purge(client, secret)
        except RecollectError:
            break
        purged.append(secret)
    return purged


def is_gone(client: MemoryClient, secret: Secret) -> bool:
    """It may have been purged although the answer was lost."""
    try:
        client.get_memory(secret.memory_ids[0], include_deleted=True)
    except RecollectError as error:
        assert error.code == "not_found"
        return True
    return False


def test_a_purge_while_the_model_is_exchanged_leaves_no_vector(
    process: OrchestratorProcess,
) -> None:
    with Trial("P21") as trial, process.client() as client:
        secrets, _ = plant(client, random.Random(counts.SEED + 3))
        client.reembed("hashed", "hashed", 48)
        for secret in secrets:
            purge(client, secret)
        wiped(client)
        check_gone(trial, process, secrets, "after an exchange")

        def exchanged() -> bool:
            state: str = client.stats()["embedding"]["reembedding"]["state"]
            return state == "done"

        wait_for(exchanged, within_s=WITHIN_S, what="the new model")
        check_gone(trial, process, secrets, "when it is done")


@pytest.mark.parametrize("away", [False, True], ids=["with Redis at hand", "while it is away"])
def test_a_purge_leaves_no_word_and_no_vector_in_redis(tmp_path: Path, away: bool) -> None:
    """Texts are known there by a hash alone, but their vectors and critical events are there."""
    word = Planting(None, random.Random(counts.SEED + 4)).word()  # type: ignore[arg-type]
    texts = [f"the code is {word}", f"it was {word} before"]
    with RedisServer() as redis, EmbeddingServer() as embedder:
        vectors = [vector.tobytes() for vector in unit_vectors(texts, embedder.dimensions)]

        def left() -> list[bytes]:
            held = contents_of_redis(redis.url)
            return [trace for trace in (word.encode(), *vectors) if trace in held]

        env = {
            "RECOLLECT_EMBEDDING_PROVIDER": "openai",
            "RECOLLECT_EMBEDDING_MODEL": "tiny",
            "RECOLLECT_EMBEDDING_OPENAI_URL": embedder.url,
            "RECOLLECT_REDIS_URL": redis.url,
            "RECOLLECT_CIRCUIT_BREAKER_RESET_TIMEOUT_S": "0.1",
        }
        process = OrchestratorProcess(tmp_path / "data", env=env)
        with process, process.client() as client, Trial("P21") as trial:
            memory_id = client.add_memory(texts[1])["memory_id"]
            client.update_memory(memory_id, {"content": texts[0]})
            client.semantic_search(texts[0])
            event_id = client.push_event("outage", texts[0], True)["memory_id"]
            wait_for(lambda: len(left()) == 3, within_s=WITHIN_S, what="all of it in Redis")
            if away:
                redis.freeze()
            for one in (memory_id, event_id):
                trial.check(client.purge(one)["wiped"], "the files were not wiped in time")
                trial.case()
            if away:
                redis.thaw()
            wait_for(lambda: not left(), within_s=WITHIN_S, what="that nothing is left")
