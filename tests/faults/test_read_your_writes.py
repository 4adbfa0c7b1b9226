"""P4: you read what you wrote, also by search, whichever client wrote it and whichever reads."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from recollect import AsyncMemoryClient, MemoryClient, RecollectError
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.model import Memory, Model, Refused, Version
from tests.harness import histories
from tests.harness.histories import noted
from tests.harness.processes import OrchestratorProcess
from tests.harness.storages import SQLITE

STEPS = counts.pick(30, 50)
PAGE = 200
ANSWERED_WITHIN_S = 30.0
SCORE_ERROR_MAX = 1e-4
EMBEDDER = HashedEmbedder()
CONSONANTS = str.maketrans("01234567", "bdfgkmpt")
VOCABULARY = ("river", "stone", "Größe", "night train", "月", "it's 5 o'clock")

indexes = st.integers(0, 11)
texts = st.lists(st.sampled_from(VOCABULARY), max_size=4).map(" ".join)
keys = st.sampled_from([None, None, "first key", "second key"])


class AsyncSide:
    """An asyncio client with the methods of a blocking one."""

    def __init__(self, endpoint: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = AsyncMemoryClient(endpoint)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            coroutine = method(*args, **kwargs)
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(ANSWERED_WITHIN_S)

        return call

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result(10.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._loop.close()


class History(histories.History):
    """Operations of several clients in a namespace of their own, each compared with the model."""

    clients: ClassVar[list[Any]] = []
    numbers: ClassVar[Iterator[int]] = itertools.count()
    words: ClassVar[Iterator[int]] = itertools.count()
    tried: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.namespace = f"project:history{next(self.numbers)}"
        self._turn = 0
        # The last change that was acknowledged; whoever reads asks for it to be visible.
        self._seq = 0

    @property
    def client(self) -> Any:
        """Another client at every call, so that none reads only what it wrote itself."""
        self._turn += 1
        return self.clients[self._turn % len(self.clients)]

    @initialize(turn=indexes)
    @noted
    def begin(self, turn: int) -> None:
        """A tree of three levels and a memory beside it, because histories are short."""
        self._turn = turn
        parent = None
        for text in ("river", "stone", "night train"):
            version = Version(self._content(text), parent)
            added = self.client.add_memory(
                version.content, namespace=self.namespace, parent_id=parent
            )
            parent = added["memory_id"]
            self._seq = added["seq"]
            self.model.add(added["memory_id"], version)
        self.batch_add(["月"])

    def _content(self, text: str) -> str:
        """A text that begins with a word of its own."""
        # Of letters alone, since the parts of a name like word12 are found by others of its kind,
        # and without vowels, so that no two of them have the same stem.
        word = f"{next(self.words):o}".translate(CONSONANTS)
        return f"w{word}w {text}".strip()

    def _any(self, index: int) -> Memory:
        memories = list(self.model.memories.values())
        return memories[index % len(memories)]

    def _maybe(self, index: int) -> str | None:
        """Some memory, or none."""
        return self._any(index).id if self.model.memories and index % 2 else None

    def _expect(self, expected: Callable[[], Any], call: Callable[[], Any]) -> Any:
        """The answer, where model and orchestrator agree that there is one; else None."""
        try:
            expected()
            refusal = None
        except Refused as refused:
            refusal = refused.code
        try:
            answer = call()
            told = None
        except RecollectError as error:
            answer, told = None, error.code
        assert told == refusal, f"the model says {refusal}, the orchestrator {told}"
        if answer is not None:
            self._seq = max(self._seq, answer.get("seq", 0))
        return answer

    @rule(text=texts, key=keys, parent=indexes)
    @noted
    def add(self, text: str, key: str | None, parent: int) -> None:
        version = Version(self._content(text), self._maybe(parent))

        def allowed() -> None:
            self.model.check_parent(version.parent)
            self.model.check_key(key)

        answer = self._expect(
            allowed,
            lambda: self.client.add_memory(
                version.content, namespace=self.namespace, key=key, parent_id=version.parent
            ),
        )
        if answer is not None:
            assert answer["version"] == 1
            self.model.add(answer["memory_id"], version, key)
            self._check_found(self.model.memories[answer["memory_id"]])

    @rule(texts=st.lists(texts, min_size=1, max_size=4))
    @noted
    def batch_add(self, texts: list[str]) -> None:
        contents = [self._content(text) for text in texts]
        items = [{"content": content} for content in contents]
        answer = self.client.batch_add_memories(items, namespace=self.namespace)
        assert answer["stored"] == len(contents)
        self._seq = answer["seq"]
        for memory_id, content in zip(answer["memory_ids"], contents, strict=True):
            self.model.add(memory_id, Version(content))
        self._check_found(self.model.memories[answer["memory_ids"][-1]])

    @rule(index=indexes, text=texts, expected=st.sampled_from([None, None, 0, 1]))
    @noted
    def update_content(self, index: int, text: str, expected: int | None) -> None:
        memory = self._any(index)
        content, before = self._content(text), memory.now.content
        self._update(memory, expected, {"content": content}, content=content)
        if memory.now.content == content:
            self._check_found(memory)
            assert self._ids_by_word(before) == set(), "it is still found by what it was"
            self._check_current(self._by_text(self.client, before), before)

    @rule(index=indexes, importance=st.floats(0, 1), value=st.integers(-5, 5))
    @noted
    def update_fields(self, index: int, importance: float, value: int) -> None:
        memory = self._any(index)
        metadata = tuple(sorted({**dict(memory.now.metadata), "value": value}.items()))
        payload = {"importance": importance, "metadata_patch": {"value": value}}
        self._update(memory, None, payload, importance=importance, metadata=metadata)

    @rule(index=indexes, parent=indexes)
    @noted
    def move(self, index: int, parent: int) -> None:
        new = self._maybe(parent)
        self._update(self._any(index), None, {"parent_id": new}, parent=new)

    def _update(
        self, memory: Memory, stale: int | None, payload: dict[str, Any], **changes: Any
    ) -> None:
        expected = None if stale is None else memory.version + stale
        new: list[Version] = []
        answer = self._expect(
            lambda: new.append(self.model.update(memory.id, expected, **changes)),
            lambda: self.client.update_memory(memory.id, payload, expected_version=expected),
        )
        if answer is not None:
            memory.versions += new
            assert answer["version"] == memory.version

    @rule(index=indexes)
    @noted
    def update_together(self, index: int) -> None:
        """Of several clients that change the same version at once, one succeeds."""
        living = self.model.living()
        if not living:
            return
        memory = living[index % len(living)]
        contents = [self._content("together") for _ in self.clients]

        def update(turn: int) -> str:
            try:
                changed = self.clients[turn].update_memory(
                    memory.id, {"content": contents[turn]}, expected_version=memory.version
                )
                self._seq = changed["seq"]
                return "success"
            except RecollectError as error:
                return error.code

        with ThreadPoolExecutor(len(self.clients)) as pool:
            told = list(pool.map(update, range(len(self.clients))))
        assert sorted(told) == ["success", *["version_conflict"] * (len(told) - 1)], told
        new = self.model.update(memory.id, None, content=contents[told.index("success")])
        memory.versions.append(new)
        self._check_found(memory)

    @rule(index=indexes, cascade=st.booleans())
    @noted
    def delete(self, index: int, cascade: bool) -> None:
        memory_id = self._any(index).id
        gone: list[tuple[set[str], set[str]]] = []
        answer = self._expect(
            lambda: gone.append(self.model.delete(memory_id, cascade)),
            lambda: self.client.delete_memory(memory_id, cascade),
        )
        if answer is not None:
            assert (set(answer["deleted_ids"]), set(answer["detached_ids"])) == gone[0]
            for deleted in gone[0][0]:
                self._check_found(self.model.memories[deleted])

    @rule(index=indexes, version=st.none() | st.integers(1, 6))
    @noted
    def restore(self, index: int, version: int | None) -> None:
        memory = self._any(index)
        new: list[Version] = []
        answer = self._expect(
            lambda: new.append(self.model.restored(memory.id, version)),
            lambda: self.client.restore(memory.id, version),
        )
        if answer is not None:
            memory.versions += new
            assert answer["version"] == memory.version
            self._check_found(memory)

    @rule(index=indexes, factor=st.floats(0.5, 3))
    @noted
    def reinforce(self, index: int, factor: float) -> None:
        memory = self._any(index)
        answer = self._expect(
            lambda: self.model.require(memory.id),
            lambda: self.client.reinforce_memory(memory.id, factor),
        )
        if answer is not None:
            read = self.client.get_memory(memory.id, min_seq=answer["seq"])["memory"]
            assert read["version"] == memory.version
            assert read["access_count"] >= answer["access_count"]

    @rule(source=indexes, other=indexes, kind=st.sampled_from(["near", "after"]))
    @noted
    def relate(self, source: int, other: int, kind: str) -> None:
        one, two = self._any(source).id, self._any(other).id

        def allowed() -> None:
            if one == two:
                raise Refused("invalid_argument")
            self.model.require(one)
            self.model.require(two)

        answer = self._expect(allowed, lambda: self.client.add_relationship(one, two, kind, 0.5))
        if answer is not None:
            self.model.links[one, kind, two] = 0.5
            self.read_related(source, 1)

    @rule(index=indexes, depth=st.integers(1, 3))
    @noted
    def read_related(self, index: int, depth: int) -> None:
        memory_id = self._any(index).id
        related: list[set[str]] = []
        answer = self._expect(
            lambda: related.append(self.model.related(memory_id, depth)),
            lambda: self.client.get_related_memories(memory_id, depth=depth),
        )
        if answer is not None:
            assert {link["memory"]["id"] for link in answer["related"]} == related[0]

    @rule(index=indexes, group=indexes)
    @noted
    def join_group(self, index: int, group: int) -> None:
        groups = self.model.groups
        if not groups or group % 4 == 0:
            made = self.client.create_context_group("a group", namespace=self.namespace)
            groups[made["group_id"]] = []
        group_id = list(groups)[group % len(groups)]
        memory_id = self._any(index).id
        answer = self._expect(
            lambda: self.model.require(memory_id),
            lambda: self.client.add_to_group(memory_id, group_id),
        )
        if answer is not None and memory_id not in groups[group_id]:
            groups[group_id].append(memory_id)
        listed = self.client.get_memories_by_group(group_id, limit=PAGE)["memories"]
        assert [memory["id"] for memory in listed] == [
            member for member in groups[group_id] if self.model.memories[member].alive
        ]

    @rule(index=indexes)
    @noted
    def read(self, index: int) -> None:
        self._check_read(self._any(index))

    @rule(index=indexes)
    @noted
    def read_the_past(self, index: int) -> None:
        """Every version by its number, and as of the time at which it was made."""
        memory = self._any(index)
        versions = self.client.history(memory.id, limit=PAGE)["versions"]
        assert [v["version"] for v in versions] == list(range(memory.version, 0, -1))
        for told, known in zip(reversed(versions), memory.versions, strict=True):
            self._check_same(told["memory"], known)
            by_number = self.client.get_memory(memory.id, version=told["version"])["memory"]
            self._check_same(by_number, known)
            moment = told["changed_at"]
            if known.deleted:
                self._check_absent(lambda m=moment: self.client.get_memory(memory.id, as_of=m))  # type: ignore[misc]
            else:
                by_time = self.client.get_memory(memory.id, as_of=moment)["memory"]
                assert by_time["version"] == told["version"]
                self._check_same(by_time, known)
        self._check_absent(lambda: self.client.get_memory(memory.id, as_of="2001-01-01T00:00:00Z"))

    @rule(indices=st.lists(indexes, min_size=1, max_size=5))
    @noted
    def batch_read(self, indices: list[int]) -> None:
        memories = [self._any(index) for index in indices]
        answer = self.client.batch_get_memories([memory.id for memory in memories])
        for memory, item in zip(memories, answer["results"], strict=True):
            assert (item["status"] == "success") == memory.alive
            if memory.alive:
                self._check_same(item["memory"], memory.now)

    @rule(index=indexes)
    @noted
    def read_children(self, index: int) -> None:
        memory = self._any(index)
        answer = self._expect(
            lambda: self.model.require(memory.id), lambda: self.client.get_children(memory.id)
        )
        if answer is not None:
            told = {child["id"] for child in answer["memories"]}
            assert told == {child.id for child in self.model.children(memory.id)}

    @rule(text=st.sampled_from(VOCABULARY))
    @noted
    def search(self, text: str) -> None:
        """Whatever is found by a common word has it and is alive; all that has it is found."""
        answer = self.client.search_memory(text.split()[0], namespace=self.namespace, limit=PAGE)
        word = text.split()[0].split("'")[0].lower()
        wanted = {m.id for m in self.model.living() if word in m.now.content.lower().split()}
        found = {memory["id"] for memory in answer["results"]}
        assert wanted <= found <= {m.id for m in self.model.living()}

    def teardown(self) -> None:
        """All of it once more, by lists and counts, and some by searching."""
        super().teardown()
        memories = self.model.memories
        for include_deleted in (False, True):
            wanted = {m.id for m in memories.values() if m.alive or include_deleted}
            scope = {"namespace": self.namespace, "include_deleted": include_deleted}
            listed = self.client.list_memories(limit=PAGE, **scope)["memories"]
            assert {memory["id"] for memory in listed} == wanted
            assert self.client.count(**scope)["count"] == len(wanted)
            for told in listed:
                self._check_same(told, memories[told["id"]].now)
        for number, memory in enumerate(memories.values()):
            self._check_read(memory)
            if number % 3 == 0:
                self._check_found(memory)
        type(self).tried += 1

    def _ids_by_word(self, content: str) -> set[str]:
        word = content.split()[0]
        answer = self.client.search_memory(word, namespace=self.namespace, min_seq=self._seq)
        return {memory["id"] for memory in answer["results"]}

    def _check_read(self, memory: Memory) -> None:
        if memory.alive:
            self._check_same(self.client.get_memory(memory.id)["memory"], memory.now)
        else:
            self._check_absent(lambda: self.client.get_memory(memory.id))
        told = self.client.get_memory(memory.id, include_deleted=True)["memory"]
        assert told["version"] == memory.version
        self._check_same(told, memory.now)

    def _by_text(self, client: Any, content: str) -> list[dict[str, Any]]:
        answer = client.semantic_search(content, namespace=self.namespace, min_seq=self._seq)
        found: list[dict[str, Any]] = answer["results"]
        return found

    def _by_both(self, client: Any, content: str) -> list[dict[str, Any]]:
        answer = client.recall(content, namespace=self.namespace, collapse=False, min_seq=self._seq)
        found: list[dict[str, Any]] = answer["results"]
        return found

    def _check_found(self, memory: Memory) -> None:
        """A living memory is found by its own word, by its text and by both, a deleted one by none.

        Every client looks in one way, and each in another one the next time.
        """
        content = memory.now.content
        wanted = {memory.id} if memory.alive else set()
        assert self._ids_by_word(content) == wanted
        by_text, by_both = self._by_text(self.client, content), self._by_both(self.client, content)
        self._check_current(by_text, content)
        self._turn += 1
        for results in (by_text, by_both):
            assert {result["id"] for result in results} & {memory.id} == wanted
            for result in results:
                found = self.model.memories[result["id"]]
                assert found.alive
                assert result["content"] == found.now.content

    def _check_current(self, results: list[dict[str, Any]], query: str) -> None:
        """What is found by meaning is as near as its present text is, not an earlier one."""
        present = [self.model.memories[result["id"]].now.content for result in results]
        [asked, *vectors] = EMBEDDER.embed_now([query, *present])
        for result, vector in zip(results, vectors, strict=True):
            assert abs(float(vector @ asked) - result["score"]) < SCORE_ERROR_MAX

    def _check_same(self, told: dict[str, Any], known: Version) -> None:
        assert told["content"] == known.content
        assert told["parent_id"] == known.parent
        assert told["importance"] == known.importance
        assert told["metadata"] == dict(known.metadata)
        assert (told["deleted_at"] is not None) == known.deleted
        assert told["namespace"] == self.namespace

    def _check_absent(self, call: Callable[[], Any]) -> None:
        try:
            answer = call()
        except RecollectError as error:
            assert error.code == "not_found"
        else:
            raise AssertionError(f"it is there: {answer}")


@pytest.fixture
def orchestrator(storage: str, tmp_path: Path) -> Iterator[OrchestratorProcess]:
    """One with a small head, so that segments are sealed and merged all the time."""
    env = {"RECOLLECT_INDEX_HEAD_MAX": "16"}
    with OrchestratorProcess(tmp_path / "data", env=env) as process:
        yield process


@pytest.fixture
def other(
    storage: str, orchestrator: OrchestratorProcess, tmp_path: Path
) -> Iterator[OrchestratorProcess]:
    """Another one on the same store, where several may share it."""
    if storage == SQLITE:
        yield orchestrator
    else:
        with OrchestratorProcess(tmp_path / "other", env=orchestrator.env) as process:
            yield process


@pytest.fixture
def clients(orchestrator: OrchestratorProcess, other: OrchestratorProcess) -> Iterator[None]:
    """Two blocking clients and one for asyncio, for all histories of a test."""
    History.tried = 0
    History.clients = [
        orchestrator.client(agent_id="one"),
        AsyncSide(other.endpoint),
        MemoryClient(orchestrator.endpoint, agent_id="two"),
    ]
    yield
    for client in History.clients:
        client.close()


def run(machine: type[RuleBasedStateMachine], histories: int) -> None:
    run_state_machine_as_test(
        hypothesis.seed(counts.SEED)(machine),
        settings=hypothesis.settings(
            max_examples=histories,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            # Histories share one orchestrator, so a failure is replayed by its seed, not shrunk.
            phases=[Phase.generate],
        ),
    )


@pytest.mark.timeout(counts.timeout_s(240))
@pytest.mark.usefixtures("clients")
def test_every_history_reads_as_the_model_says(storage: str) -> None:
    wanted = counts.on(storage, counts.HISTORIES)
    with Trial("P4") as trial:
        try:
            run(History, wanted)
        finally:
            trial.case(History.tried)
        assert History.tried >= wanted
        index = History.clients[0].stats()["index"]
        if storage == SQLITE:
            assert len(index["segments"]) > 1, f"hardly anything was sealed: {index}"


class ForgetfulModel(Model):
    """A model by which children do not go with their parent."""

    def tree(self, memory_id: str) -> list[Memory]:
        return [self.require(memory_id)]


class ForgetfulHistory(History):
    def __init__(self) -> None:
        super().__init__()
        self.model = ForgetfulModel()


@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize("storage", [SQLITE], indirect=True)
def test_a_history_notices_where_model_and_orchestrator_differ() -> None:
    with pytest.raises(AssertionError):
        run(ForgetfulHistory, 200)
