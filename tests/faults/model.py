"""What a namespace should hold: memories with their histories, in plain Python.

It says what an operation does or why it is refused, and nothing of how. A refusal is the code of
the error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


class Refused(Exception):
    """The operation fails with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Version:
    """A memory as it was for a while."""

    content: str
    parent: str | None = None
    importance: float = 0.5
    metadata: tuple[tuple[str, int], ...] = ()
    deleted: bool = False


@dataclass
class Memory:
    """A memory with all its versions, the oldest first."""

    id: str
    key: str | None
    versions: list[Version]

    @property
    def now(self) -> Version:
        return self.versions[-1]

    @property
    def alive(self) -> bool:
        return not self.now.deleted

    @property
    def version(self) -> int:
        return len(self.versions)


@dataclass
class Model:
    """One namespace."""

    memories: dict[str, Memory] = field(default_factory=dict)
    links: dict[tuple[str, str, str], float] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)

    def living(self) -> list[Memory]:
        return [memory for memory in self.memories.values() if memory.alive]

    def require(self, memory_id: str) -> Memory:
        memory = self.memories.get(memory_id)
        if memory is None or not memory.alive:
            raise Refused("not_found")
        return memory

    def check_key(self, key: str | None, own_id: str | None = None) -> None:
        if key is not None and any(m.key == key and m.id != own_id for m in self.living()):
            raise Refused("already_exists")

    def check_parent(self, parent: str | None, child: str | None = None) -> None:
        if parent is None:
            return
        if parent == child:
            raise Refused("cycle_refused")
        ancestor: str | None = self.require(parent).id
        while ancestor is not None:
            if ancestor == child:
                raise Refused("cycle_refused")
            ancestor = self.memories[ancestor].now.parent

    def add(self, memory_id: str, version: Version, key: str | None = None) -> None:
        self.memories[memory_id] = Memory(memory_id, key, [version])

    def update(self, memory_id: str, expected_version: int | None, **changes: object) -> Version:
        """What the memory will be; nothing is changed yet."""
        memory = self.require(memory_id)
        if expected_version is not None and expected_version != memory.version:
            raise Refused("version_conflict")
        new = replace(memory.now, **changes)  # type: ignore[arg-type]
        if new.parent != memory.now.parent:
            self.check_parent(new.parent, memory_id)
        return new

    def children(self, memory_id: str) -> list[Memory]:
        return [memory for memory in self.living() if memory.now.parent == memory_id]

    def tree(self, memory_id: str) -> list[Memory]:
        """A living memory and the living ones below it."""
        memory = self.require(memory_id)
        return [memory, *(m for child in self.children(memory_id) for m in self.tree(child.id))]

    def delete(self, memory_id: str, cascade: bool) -> tuple[set[str], set[str]]:
        """Delete; the ids that went, and those that lost their parent."""
        root = self.require(memory_id)
        doomed = self.tree(memory_id) if cascade else [root]
        detached = [] if cascade else self.children(memory_id)
        for memory in detached:
            memory.versions.append(replace(memory.now, parent=None))
        for memory in doomed:
            memory.versions.append(replace(memory.now, deleted=True))
        return {m.id for m in doomed}, {m.id for m in detached}

    def restored(self, memory_id: str, version: int | None) -> Version:
        """What the memory will be; nothing is changed yet."""
        memory = self.memories[memory_id]
        if version is None:
            if memory.alive:
                raise Refused("invalid_argument")
            source = memory.now
        else:
            if version > memory.version:
                raise Refused("not_found")
            source = memory.versions[version - 1]
            if source.deleted:
                raise Refused("invalid_argument")
        parent = source.parent
        if parent is not None and not self.memories[parent].alive:
            parent = None
        new = replace(source, deleted=False, parent=parent)
        self.check_parent(new.parent, memory_id)
        self.check_key(memory.key, memory_id)
        return new

    def related(self, memory_id: str, depth: int) -> set[str]:
        """The living memories within so many links, over living ones."""
        self.require(memory_id)
        seen, frontier = {memory_id}, {memory_id}
        for _ in range(depth):
            near = {b for a, _, b in self.links if a in frontier}
            near |= {a for a, _, b in self.links if b in frontier}
            frontier = {i for i in near - seen if self.memories[i].alive}
            seen |= frontier
        return seen - {memory_id}
