"""Records on their way in, checked as any write is: shape, limits, secrets. Nothing is stored yet.

What comes out is what may be stored: rows without a number, JSON as text, and where secrets are
masked, masked. Numbers that a column refers to are still ids; only the write knows the numbers.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from recollect.orchestrator.exchange import lines, tables
from recollect.orchestrator.memories import rows
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.sessions.homes import app_namespace, user_namespace
from recollect.orchestrator.sessions.state import SESSION, USER, States
from recollect.orchestrator.validation import Validator
from recollect.protocol.collection_names import COLLECTIONS
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.explaining import explain

S = TypeVar("S", bound=msgspec.Struct)

# Texts of typed columns by which something is found or told apart: no secret is masked in them.
NAMES = frozenset(
    {
        *("task_type", "status", "phase", "assigned_to", "tool_name", "category", "task_id"),
        *("receipt_id", "outcome_by", "severity", "component", "parameter", "pattern_type"),
    }
)
KINDS: dict[str, type[msgspec.Struct]] = {
    str(kind.__struct_config__.tag): kind for kind in lines.Lines.__args__
}


class Earlier(msgspec.Struct, frozen=True):
    """An earlier version, ready to be stored but for its numbers."""

    version: int
    updated_us: int
    superseded_us: int
    kept: dict[str, Any]
    """What its snapshot will hold, but for `seq` and the columns."""
    columns: tables.Stored | None


class Memory(msgspec.Struct, frozen=True):
    """A memory, ready to be stored but for its numbers."""

    row: MemoryRow
    columns: tables.Stored | None
    versions: list[Earlier]


class More(msgspec.Struct, frozen=True):
    """More of the history of a memory."""

    memory_id: str
    versions: list[Earlier]
    raw: list[lines.EarlierVersion]
    """Their columns can only be read when it is known what kind of record it is."""


class Sitting(msgspec.Struct, frozen=True):
    """A session: its columns, and its state as JSON texts."""

    line: lines.SessionLine
    namespace: str
    metadata: str
    state: dict[str, str]


class Happening(msgspec.Struct, frozen=True):
    """An event of a session, as JSON text."""

    line: lines.EventLine
    event: str


class Shared(msgspec.Struct, frozen=True):
    """Shared state: where it belongs, and its value as JSON text."""

    line: lines.StateLine
    namespace: str
    value: str


Plain = lines.RelationshipLine | lines.EvidenceLine | lines.GroupLine | lines.MembersLine
Checked = Memory | More | Plain | lines.DocumentLine | Sitting | Happening | Shared


class Checking:
    """Turns what was sent into what may be stored. Any thread may use it."""

    def __init__(self, validator: Validator, states: States) -> None:
        self._check = validator
        self._states = states

    def line(self, given: dict[str, Any]) -> tuple[lines.Lines, Checked]:
        """One record; refused with what is wrong with it."""
        line = self._shaped(given)
        if isinstance(line, lines.MemoryLine):
            return line, self._memory(line)
        if isinstance(line, lines.VersionsLine):
            return line, More(line.memory_id, [], line.versions)
        if isinstance(line, lines.SessionLine):
            return line, self._session(line)
        if isinstance(line, lines.EventLine):
            self._name("author", line.author)
            event = self._states.json("event", line.event, "event_bytes_max")
            return line, Happening(line, event)
        if isinstance(line, lines.StateLine):
            return line, self._shared(line)
        plain = self._plain(line)
        return plain, plain

    def earlier(self, collection: str, key: str | None, given: lines.EarlierVersion) -> Earlier:
        """An earlier version of a memory of some collection."""
        kept = self._versioned(given, key)
        columns = None
        if given.columns is not None:
            shape = tables.VERSION_SHAPES.get(collection)
            if shape is None:
                raise InvalidArgument(
                    f"A version of {collection} has no columns of its own.", field="versions"
                )
            columns = self._columns(collection, shape, given.columns)
        kept = {name: kept[name] for name in rows.VERSIONED if name != "seq"}
        return Earlier(given.version, given.updated_us, given.superseded_us, kept, columns)

    def _shaped(self, given: dict[str, Any]) -> lines.Lines:
        kind = given.get("kind")
        shape = KINDS.get(kind) if isinstance(kind, str) else None
        if shape is None:
            raise InvalidArgument(
                f"A record has one of these as its kind: {', '.join(KINDS)}.", field="kind"
            )
        return _convert(given, shape, str(kind))  # type: ignore[return-value]

    def _memory(self, line: lines.MemoryLine) -> Memory:
        check = self._check
        if line.collection not in COLLECTIONS:
            raise InvalidArgument(
                f"collection is none of {', '.join(COLLECTIONS)}.", field="collection"
            )
        if line.key is not None:
            check.text("key", line.key, "key_chars_max")
        for name in ("created_by", "session_id"):
            self._name(name, getattr(line, name))
        _check_numbers(line)
        row = MemoryRow(
            num=0,
            id=line.id,
            seq=0,
            namespace=check.namespace(line.namespace),
            key=line.key,
            collection=line.collection,
            stability_s=line.stability_s,
            access_count=line.access_count,
            last_access_us=line.last_access_us,
            fades_us=line.fades_us,
            session_id=line.session_id,
            created_by=line.created_by,
            created_us=line.created_us,
            **self._versioned(line, line.key),
        )
        columns = None
        shape = tables.SHAPES.get(line.collection)
        if (shape is None) != (line.columns is None):
            raise InvalidArgument(
                f"Of {line.collection}, columns are {'needed' if shape else 'not known'}.",
                field="columns",
            )
        if shape is not None and line.columns is not None:
            columns = self._columns(line.collection, shape, line.columns)
        earlier = [self.earlier(line.collection, line.key, given) for given in line.versions]
        return Memory(row, columns, earlier)

    def _versioned(self, given: lines.Versioned, key: str | None) -> dict[str, Any]:
        """What a version says, as it lies in a row."""
        check = self._check
        for name in ("updated_by", "source", "operation"):
            self._name(name, getattr(given, name))
        told = {
            name: getattr(given, name)
            for name in rows.VERSIONED
            if name not in ("seq", "value", "metadata", "tags", "content")
        }
        value = given.value
        told["content"] = check.prose("content", given.content, "content_chars_max")
        told["value"] = (
            None if value is UNSET else check.json("value", value, "value_bytes_max", key)
        )
        told["metadata"] = check.metadata(given.metadata)
        told["tags"] = check.tags(given.tags)
        return told

    def _columns(
        self, table: str, shape: type[msgspec.Struct], given: dict[str, Any]
    ) -> tables.Stored:
        """Typed columns under the names that they have in the table; references are still ids."""
        told = _convert(given, shape, f"{table}.columns")
        stored: tables.Stored = {}
        for name in tables.COLUMNS[table]:
            value = getattr(told, tables.shown_name(name), UNSET)
            if value is UNSET:
                continue
            if name in tables.JSON[table]:
                value = self._check.json(f"columns.{name}", value, "value_bytes_max", None)
            elif isinstance(value, str) and not name.endswith(tables.NUMBER):
                field = f"columns.{name}"
                value = (
                    self._check.text(field, value, "content_chars_max")
                    if name in NAMES
                    else self._check.prose(field, value, "content_chars_max")
                )
            stored[name] = value
        return stored

    def _session(self, line: lines.SessionLine) -> Sitting:
        for name in ("user_id", "app", "session_type", "created_by"):
            self._name(name, getattr(line, name))
        delta = self._states.delta("state", line.state)
        if delta.scopes.keys() - {SESSION}:
            raise InvalidArgument(
                "The state of a session has keys of its own only; what is shared are records of "
                "the kind state.",
                field="state",
            )
        own = delta.scopes.get(SESSION, {})
        state = {key: value for key, value in own.items() if value is not None}
        self._states.check_whole(state)
        metadata = self._check.metadata(line.metadata)
        namespace = self._check.namespace(user_namespace(line.user_id))
        return Sitting(line, namespace, metadata, state)

    def _shared(self, line: lines.StateLine) -> Shared:
        self._name("owner", line.owner)
        delta = self._states.delta("state", {f"{line.scope}:{line.key}": line.value})
        value = delta.scopes[line.scope][line.key]
        if value is None:
            raise InvalidArgument("State that is null is no state; leave it out.", field="value")
        home = user_namespace if line.scope == USER else app_namespace
        return Shared(line, self._check.namespace(home(line.owner)), value)

    def _plain(self, line: Plain | lines.DocumentLine) -> Any:
        check = self._check
        if isinstance(line, lines.RelationshipLine):
            self._name("relationship_type", line.relationship_type)
            self._name("created_by", line.created_by)
            if line.source_id == line.target_id:
                raise InvalidArgument("A memory cannot be related to itself.", field="target_id")
        elif isinstance(line, lines.GroupLine):
            check.namespace(line.namespace)
            self._name("name", line.name)
            self._name("created_by", line.created_by)
            if line.description is not None:
                told = check.prose("description", line.description, "content_chars_max")
                return msgspec.structs.replace(line, description=told)
        elif isinstance(line, lines.DocumentLine):
            check.namespace(line.namespace)
            for name in ("source", "root", "content_hash", "cut_by"):
                self._name(name, getattr(line, name), "content_chars_max")
            title = check.prose("title", line.title, "content_chars_max")
            error = line.error and check.prose("error", line.error, "content_chars_max")
            return msgspec.structs.replace(line, title=title, error=error)
        elif isinstance(line, lines.MembersLine):
            check.at_most("batch_items_max", "memory_ids", len(line.memory_ids), "items")
        return line

    def _name(self, field: str, name: str | None, limit: str = "key_chars_max") -> None:
        if name is not None:
            self._check.text(field, name, limit)


def _check_numbers(line: lines.MemoryLine) -> None:
    numbers = [version.version for version in line.versions]
    if numbers != sorted(set(numbers)) or (numbers and numbers[-1] >= line.version):
        raise InvalidArgument(
            "versions are not in order, or not before the present version.", field="versions"
        )


def _convert(given: dict[str, Any], shape: type[S], what: str) -> S:
    try:
        return msgspec.convert(given, shape)
    except msgspec.ValidationError as error:
        raise explain(error, shape, what) from None
