"""Memories that hold words found nowhere else, and a search for those words in every file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from redis import Redis

from recollect import MemoryClient
from recollect.orchestrator.embedding.hashed import HashedEmbedder

DIMENSIONS = 64
EMBEDDER = HashedEmbedder(DIMENSIONS)
# The full text keeps of each word only what is not the beginning of the word before it.
TAIL_CHARS = 8
READ_TRIES = 100


class Secret(msgspec.Struct, frozen=True):
    """What must not be found any more once some memories are purged."""

    what: str
    memory_ids: tuple[str, ...]
    words: tuple[str, ...]
    texts: tuple[str, ...] = ()
    """Embedded ones, whose vectors must not be found either."""
    cascade: bool = False

    def traces(self) -> Iterator[tuple[str, bytes]]:
        """Bytes that would tell, by what they are."""
        for word in self.words:
            yield f"{word!r}", word.encode()
            yield f"{word.lower()!r}", word.lower().encode()
            yield f"the end of {word!r}", word.lower().encode()[-TAIL_CHARS:]
        for text in self.texts:
            yield f"the vector of {text[:40]!r}", EMBEDDER.embed_now([text])[0].tobytes()


def found(secrets: list[Secret], *places: Path) -> list[str]:
    """Which traces are in which files."""
    hits = []
    for path, content in contents(*places).items():
        hits += [
            f"{what} of {secret.what} in {path.name}"
            for secret in secrets
            for what, trace in secret.traces()
            if trace in content
        ]
    return hits


def contents(*places: Path) -> dict[Path, bytes]:
    """What all files at or below some places hold.

    If one is gone when it is its turn, what it held may be somewhere else by then: all are read
    again.
    """
    for _ in range(READ_TRIES):
        try:
            return {path: path.read_bytes() for path in files(*places)}
        except FileNotFoundError:
            continue
    raise AssertionError("the files do not stay long enough to be read")


def files(*places: Path) -> list[Path]:
    """All files at or below some places."""
    return [
        path
        for place in places
        for path in ([place] if place.is_file() else sorted(place.rglob("*")))
        if path.is_file()
    ]


def contents_of_redis(url: str) -> bytes:
    """All keys of a Redis and all that they hold."""
    held = []
    with Redis.from_url(url) as client:
        for key in client.scan_iter():
            kind = client.type(key).decode()
            value: object = {
                "string": client.get,
                "hash": client.hgetall,
                "zset": lambda name: client.zrange(name, 0, -1),
                "stream": client.xrange,
                "none": lambda name: None,  # it is gone by now
            }[kind](key)
            held += [key, *_bytes_in(value)]
    return b"\0".join(held)


def _bytes_in(value: object) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _bytes_in(pair)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _bytes_in(one)


class Planting:
    """Writes secrets in every place where a memory holds text."""

    def __init__(self, client: MemoryClient, chance: random.Random) -> None:
        self._client = client
        self._chance = chance
        self._used: list[str] = []

    def word(self) -> str:
        """A word like no other, of which stemming takes nothing away."""
        self._used.append("".join(self._chance.choices("bdfgjkmnpqvwxz", k=15)) + "k")
        return self._used[-1]

    def ordinary(self, count: int) -> list[str]:
        """Memories that stay, with words in common."""
        words = ["river", "stone", "train", "night", "copper", "meadow", "signal", "violin"]
        items = [
            {"content": " ".join(self._chance.choices(words, k=self._chance.randint(3, 60)))}
            for _ in range(count)
        ]
        added = self._client.batch_add_memories(items, namespace="app:ordinary")
        return [memory_id for memory_id in added["memory_ids"] if memory_id is not None]

    def all(self) -> list[Secret]:
        """One secret of each kind, among memories that stay."""
        kinds = (
            self._content,
            self._long,
            self._capitals,
            self._value,
            self._key,
            self._metadata,
            self._tags,
            self._versions,
            self._deleted,
            self._child,
            self._linked,
            self._tree,
            self._task,
            self._names,
            self._decision,
            self._learned,
            self._longterm,
            self._many,
        )
        secrets = []
        for plant in kinds:
            secrets.append(plant())
            self.ordinary(self._chance.randint(1, 6))
        return secrets

    def _add(self, content: str, **fields: object) -> str:
        added = self._client.add_memory(content, namespace="app:secrets", **fields)  # type: ignore[arg-type]
        memory_id: str = added["memory_id"]
        return memory_id

    def _content(self) -> Secret:
        word = self.word()
        text = f"the code is {word} and nobody knows"
        return Secret("a content", (self._add(text),), (word,), (text,))

    def _long(self) -> Secret:
        words = [self.word() for _ in range(3)]
        text = " ".join([words[0], *["filling"] * 3_000, words[1], *["more"] * 3_000, words[2]])
        return Secret("a long content", (self._add(text),), tuple(words), (text,))

    def _capitals(self) -> Secret:
        word = self.word().upper()
        text = f"Straße {word}, 月 {word}!"
        return Secret("a content in capitals", (self._add(text),), (word,), (text,))

    def _value(self) -> Secret:
        word, other = self.word(), self.word()
        put = self._client.put("app:secrets", "plain", {"a": [word, {other: 1}]})
        return Secret("a value", (put["memory_id"],), (word, other))

    def _key(self) -> Secret:
        word = self.word()
        put = self._client.put("app:secrets", f"key {word}", "something")
        self._client.update("app:secrets", f"key {word}", {"content": "something else"})
        return Secret("a key", (put["memory_id"],), (word,))

    def _metadata(self) -> Secret:
        word, other = self.word(), self.word()
        memory_id = self._add("with metadata", metadata={"who": word, other: {"deep": [other]}})
        return Secret("metadata", (memory_id,), (word, other))

    def _tags(self) -> Secret:
        word = self.word()
        return Secret("tags", (self._add("with tags", tags=[word]),), (word,))

    def _versions(self) -> Secret:
        words = [self.word() for _ in range(6)]
        texts = [f"at first {word} was it" for word in words]
        memory_id = self._add(texts[0])
        for text in texts[1:]:
            self._client.update_memory(memory_id, {"content": text})
        self._client.update_memory(memory_id, {"content": "nothing of that"})
        return Secret("versions", (memory_id,), tuple(words), tuple(texts))

    def _deleted(self) -> Secret:
        word = self.word()
        text = f"deleted and {word}"
        memory_id = self._add(text)
        self._client.delete_memory(memory_id)
        return Secret("a deleted memory", (memory_id,), (word,), (text,))

    def _child(self) -> Secret:
        parent, word = self._add("a parent that stays"), self.word()
        text = f"the child says {word}"
        return Secret("a child", (self._add(text, parent_id=parent),), (word,), (text,))

    def _linked(self) -> Secret:
        word = self.word()
        text = f"linked with others is {word}"
        memory_id, other = self._add(text), self._add("one that is linked")
        self._client.add_relationship(memory_id, other, "near", 0.5)
        group = self._client.create_context_group("a group", namespace="app:secrets")
        self._client.add_to_group(memory_id, group["group_id"])
        return Secret("a linked memory", (memory_id,), (word,), (text,))

    def _tree(self) -> Secret:
        words = [self.word() for _ in range(3)]
        texts = [f"below it is {word}" for word in words]
        root = parent = self._add(texts[0])
        for text in texts[1:]:
            parent = self._add(text, parent_id=parent)
        return Secret("a tree", (root,), tuple(words), tuple(texts), cascade=True)

    def _task(self) -> Secret:
        """A task with its steps, a goal; also what was written over of them, and what it was asked
        context for."""
        home = "app:secrets"
        words = [self.word() for _ in range(10)]
        name, goal, what, then, tool, given, came, first, second, reason = words
        goal_id = self._client.store_goal(goal, namespace=home)["goal_id"]
        self._client.save_task(what, name, goal_id, namespace=home)
        self._client.save_step(name, 1, tool, {"with": given}, came, namespace=home)
        self._client.update_task_status(name, "failed", first, namespace=home)
        self._client.update_task_status(name, "completed", second, namespace=home)
        self._client.set_task_phase(name, "blocked", reason, namespace=home)
        task_id = self._client.save_task(then, name, namespace=home)["memory_id"]
        given_for = self._client.assemble_context(then, 2_000, task_id=name, namespace=home)
        assert task_id in [chunk["memory_id"] for chunk in given_for["chunks"]]
        return Secret("a task", (task_id, goal_id), tuple(words), cascade=True)

    def _names(self) -> Secret:
        """Values under names."""
        home = "app:secrets"
        words = [self.word() for _ in range(6)]
        key, value, agent, state, persona, mood = words
        saved = [
            self._client.save_preference(key, value, namespace=home),
            self._client.save_agent_state(agent, {"at": state}, namespace=home),
            self._client.save_persona(persona, {"mood": mood}, namespace=home),
        ]
        return Secret("names", tuple(one["memory_id"] for one in saved), tuple(words))

    def _learned(self) -> Secret:
        """Executions, and the pattern that repeats them."""
        words = [self.word() for _ in range(4)]
        name, what, how, error = words
        ids = []
        for number in range(2):
            stored = self._client.store_execution(
                name,
                f"it was {how} again",
                False,
                [f"{error} {number}"],
                task_description=f"do what {what} says",
                namespace="app:secrets",
            )
            ids.append(stored["execution_id"])
        [pattern_id] = stored["patterns"]
        self._client.pattern_feedback(pattern_id, False)
        learned = self._client.extract_pattern(namespace="app:secrets")["patterns"]
        assert error in learned[0]["summary"]
        texts = (f"do what {what} says",)
        return Secret("what was learned", (*ids, pattern_id), tuple(words), texts)

    def _decision(self) -> Secret:
        words = [self.word() for _ in range(7)]
        context, option, choice, reason, task, first, second = words
        decision_id = self._client.log_decision(
            context, [option], choice, reason, task_id=task, namespace="app:secrets"
        )["decision_id"]
        self._client.record_outcome(decision_id, first)
        self._client.record_outcome(decision_id, second, True)
        return Secret("a decision", (decision_id,), tuple(words))

    def _longterm(self) -> Secret:
        """Typed columns, also those that were written over."""
        home: dict[str, Any] = {"namespace": "app:secrets"}
        words = [self.word() for _ in range(9)]
        name, step, next_step, title, cause, mended, component, value, known = words
        self._client.store_procedure(name, [step], **home)
        stored = [
            self._client.store_procedure(name, [next_step], **home),
            self._client.store_incident(title, cause=cause, **home),
            self._client.record_config_change(component, "size", value, 2, **home),
            self._client.store_knowledge("A title", known, **home),
        ]
        incident_id = stored[1]["memory_id"]
        self._client.resolve_incident(incident_id, mended)
        self._client.resolve_incident(incident_id, "nothing", "nobody")
        return Secret("long-term memory", tuple(one["memory_id"] for one in stored), tuple(words))

    def _many(self) -> Secret:
        """So many, and changed so often, that rows with the word are moved from page to page."""
        word = self.word()
        root = self._add(f"above many with {word}")
        about: dict[str, str] = {}
        for number in range(300):
            # One in four is to be purged; those around it, in every table and index, stay.
            said = word if number % 4 == 0 else "others"
            key = f"{self._chance.randrange(10**9)} {said} {number}"
            parent = {"parent_id": root} if said == word else {}
            about[self._add(self._about(said), key=key, **parent)] = said
        for memory_id in self._chance.choices(list(about), k=600):
            self._client.update_memory(memory_id, {"content": self._about(about[memory_id])})
        return Secret("many", (root,), (word,), cascade=True)

    def _about(self, word: str) -> str:
        return f"{word} " + "x" * self._chance.randrange(600)
