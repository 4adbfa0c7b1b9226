"""From what a caller sent to what will be written: checked, encoded, not yet stored."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from recollect.orchestrator.clock import parse_moment
from recollect.orchestrator.memories.rows import MemoryRow, decode_json
from recollect.orchestrator.memories.strength import Fading
from recollect.orchestrator.validation import Validator
from recollect.protocol.collection_names import MEMORIES
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.explaining import explain, unknown_field
from recollect.protocol.operations import AddMemory, fields

S = TypeVar("S", bound=msgspec.Struct)

ADD = AddMemory.spec.name
NO_MOMENTS = (None, None, None)


class MemoryPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `update_payload` may hold."""

    content: fields.Content | UnsetType = UNSET
    memory_type: fields.MemoryType | UnsetType = UNSET
    memory_tier: fields.MemoryTier | UnsetType = UNSET
    importance: fields.Importance | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    metadata_patch: dict[str, Any] | UnsetType = UNSET
    tags: list[str] | UnsetType | None = UNSET
    value: Annotated[Any, msgspec.Meta(description="Any JSON value.")] = UNSET
    parent_id: str | UnsetType | None = UNSET
    source: str | UnsetType | None = UNSET
    trust: fields.Trust | UnsetType = UNSET
    expires_at: str | float | UnsetType | None = UNSET
    valid_from: str | float | UnsetType | None = UNSET
    valid_to: str | float | UnsetType | None = UNSET


class Drafting:
    """Checks new memories and changes against types and limits."""

    def __init__(self, validator: Validator, fading: Fading) -> None:
        self._validator = validator
        self._fading = fading

    def memory(
        self, operation: AddMemory, now_us: int, author: str, session: str | None
    ) -> MemoryRow:
        """A row for a new memory; its number, id and sequence number come with the write."""
        check = self._validator
        if operation.key is not None:
            check.text("key", operation.key, "key_chars_max")
        stability_s = self._fading.initial_stability_s(operation.memory_tier, operation.importance)
        row = MemoryRow(
            num=0,
            id="",
            seq=0,
            namespace=check.namespace(operation.namespace),
            key=operation.key,
            version=1,
            collection=MEMORIES,
            memory_type=operation.memory_type,
            tier=operation.memory_tier,
            content=check.content(operation.content),
            value=None if operation.value is None else self.value(operation.value, operation.key),
            metadata=check.metadata(operation.metadata),
            tags=check.tags(operation.tags),
            importance=operation.importance,
            stability_s=stability_s,
            access_count=0,
            last_access_us=now_us,
            fades_us=self._fading.fades_us(now_us, stability_s),
            parent_id=operation.parent_id,
            session_id=session,
            created_by=author,
            updated_by=author,
            source=self._source(operation.source),
            trust=operation.trust,
            valid_from_us=None,
            valid_to_us=None,
            created_us=now_us,
            updated_us=now_us,
            expires_us=None,
            archived_us=None,
            deleted_us=None,
            operation=ADD,
        )
        if (operation.valid_from, operation.valid_to, operation.expires_at) != NO_MOMENTS:
            row.valid_from_us = parse_moment("valid_from", operation.valid_from)
            row.valid_to_us = parse_moment("valid_to", operation.valid_to)
            row.expires_us = parse_moment("expires_at", operation.expires_at)
            _check_validity(row.valid_from_us, row.valid_to_us)
        return row

    def batch_item(self, item: dict[str, Any], namespace: str | None) -> AddMemory:
        """One item of a batch as the operation it stands for."""
        if namespace is not None and "namespace" not in item:
            item = {**item, "namespace": namespace}
        if "timeout" in item or "idempotency_key" in item:
            raise InvalidArgument(
                "timeout and idempotency_key belong to the batch, not to an item."
            )
        return _convert(item, AddMemory, "add_memory")

    def patch(self, payload: dict[str, Any]) -> MemoryPatch:
        """The changes of an update, checked for type and shape."""
        if not payload:
            raise InvalidArgument("update_payload is empty; name what to change.", field="payload")
        patch = _convert(payload, MemoryPatch, "update_payload")
        return self.checked(patch)

    def checked(self, patch: MemoryPatch) -> MemoryPatch:
        """The changes, if they fit together and their text within its limits."""
        if patch.metadata is not UNSET and patch.metadata_patch is not UNSET:
            raise InvalidArgument(
                "Give metadata, which replaces, or metadata_patch, which merges; not both.",
                field="update_payload.metadata",
            )
        if patch.content is not UNSET:
            content = self._validator.content(patch.content)
            if content is not patch.content:
                return msgspec.structs.replace(patch, content=content)
        return patch

    def apply(self, row: MemoryRow, patch: MemoryPatch) -> MemoryRow:
        """The row with the changes made."""
        check = self._validator
        changes: dict[str, Any] = {}
        if patch.content is not UNSET:
            changes["content"] = patch.content
        for name, column in (
            ("memory_type", "memory_type"),
            ("memory_tier", "tier"),
            ("importance", "importance"),
            ("trust", "trust"),
        ):
            if getattr(patch, name) is not UNSET:
                changes[column] = getattr(patch, name)
        if patch.metadata is not UNSET:
            changes["metadata"] = check.metadata(patch.metadata)
        if patch.metadata_patch is not UNSET:
            changes["metadata"] = self._merged(row, patch.metadata_patch)
        if patch.tags is not UNSET:
            changes["tags"] = check.tags(patch.tags)
        if patch.value is not UNSET:
            # An explicit null is a value like any other, apart from there being none.
            changes["value"] = self.value(patch.value, row.key)
        if patch.parent_id is not UNSET:
            changes["parent_id"] = patch.parent_id
        if patch.source is not UNSET:
            changes["source"] = self._source(patch.source)
        for name in ("expires_at", "valid_from", "valid_to"):
            if getattr(patch, name) is not UNSET:
                column = name.replace("_at", "") + "_us"
                changes[column] = parse_moment(name, getattr(patch, name))
        changed = self.refaded(row, msgspec.structs.replace(row, **changes))
        _check_validity(changed.valid_from_us, changed.valid_to_us)
        return changed

    def refaded(self, old: MemoryRow, new: MemoryRow) -> MemoryRow:
        """Another tier or importance: what the memory has earned so far is kept in proportion."""
        if (old.tier, old.importance) == (new.tier, new.importance):
            return new
        earned = old.stability_s / self._fading.initial_stability_s(old.tier, old.importance)
        stability_s = self._fading.bounded(
            earned * self._fading.initial_stability_s(new.tier, new.importance)
        )
        fades_us = self._fading.fades_us(new.last_access_us, stability_s)
        return msgspec.structs.replace(new, stability_s=stability_s, fades_us=fades_us)

    def with_time_left(self, row: MemoryRow, now_us: int) -> MemoryRow:
        """The row of a memory that was put where it is now: if it has faded by the measure of its
        tier, it has all of the time there that a memory has which was just used."""
        if row.fades_us > now_us:
            return row
        fades_us = self._fading.fades_us(now_us, row.stability_s)
        return msgspec.structs.replace(row, fades_us=fades_us)

    def _merged(self, row: MemoryRow, patch: dict[str, Any]) -> str:
        merged = decode_json(row.metadata) | patch
        removed = {key for key, value in patch.items() if value is None}
        return self._validator.metadata({k: v for k, v in merged.items() if k not in removed})

    def value(self, value: Any, key: str | None) -> str:
        """A value as JSON text, null included; a key may call it a password."""
        return self._validator.json("value", value, "value_bytes_max", key)

    def _source(self, source: str | None) -> str | None:
        return None if source is None else self._validator.text("source", source, "key_chars_max")


def _check_validity(valid_from_us: int | None, valid_to_us: int | None) -> None:
    if valid_from_us is not None and valid_to_us is not None and valid_to_us < valid_from_us:
        raise InvalidArgument("valid_to is before valid_from.", field="valid_to")


def _convert(value: dict[str, Any], shape: type[S], what: str) -> S:
    for name in value:
        if name not in shape.__struct_fields__:
            raise unknown_field(str(name), shape, what)
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise explain(error, shape, what) from None
