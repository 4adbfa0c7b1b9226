"""Memories of mem0: what `get_all()` gives as JSON, or a list of such memories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from recollect.exchange.files import opened
from recollect.exchange.importers.looking import head_of
from recollect.exchange.items import Fact, Items, Link, key_of, moment_of
from recollect.exchange.problems import BadFile

EXPECTED = (
    'mem0 gives {"results": [{"id": …, "memory": …}, …]}, as json.dump(memory.get_all(…), file) '
    "writes it; a list of such memories is taken as well."
)
LISTS = ("results", "memories")
# Of whom and from where it is; the rest of a memory's own metadata is kept beside them.
SAID = ("user_id", "agent_id", "run_id", "app_id", "actor_id", "role", "attributed_to")


def wrote(path: Path) -> bool:
    """Whether a file is of mem0."""
    head = head_of(path).lstrip()
    return path.suffix == ".json" and head[:1] in (b"{", b"[") and b'"memory"' in head


def read(path: str) -> Items:
    """The memories of a file, and how its graph links them."""
    with opened(path) as file:
        try:
            told = msgspec.json.decode(file.read())
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadFile(path, f"it is no JSON ({error}).", EXPECTED) from None
    found = told
    if isinstance(told, dict):
        found = next((told[name] for name in LISTS if isinstance(told.get(name), list)), None)
    if not isinstance(found, list):
        raise BadFile(path, "there is no list of memories in it.", EXPECTED)
    for place, item in enumerate(found, 1):
        where = f"{path}, memory {place:,}"
        text = item.get("memory") if isinstance(item, dict) else None
        if not isinstance(text, str) or not item.get("id"):
            raise BadFile(where, "it has no id, or no memory.", EXPECTED)
        if text.strip():
            yield _fact(where, item, text)
    yield from _relations(path, told)


def _fact(where: str, item: dict[str, Any], text: str) -> Fact:
    own = item.get("metadata")
    said = {
        name: item[name] for name in (*SAID, "created_at", "updated_at", "hash") if item.get(name)
    }
    categories = item.get("categories")
    tags = (
        tuple(c for c in categories if isinstance(c, str)) if isinstance(categories, list) else ()
    )
    return Fact(
        key=key_of("mem0", str(item["id"])),
        content=text,
        where=where,
        memory_type="semantic",
        metadata={**(own if isinstance(own, dict) else {}), **said, "mem0_id": str(item["id"])},
        tags=tags,
        valid_from=moment_of(item.get("created_at")),
        expires_at=moment_of(item.get("expiration_date")),
    )


def _relations(path: str, told: Any) -> Items:
    """What mem0's graph says: each name once, and links between them."""
    relations = told.get("relations") if isinstance(told, dict) else None
    names: set[str] = set()
    for place, item in enumerate(relations if isinstance(relations, list) else [], 1):
        where = f"{path}, relation {place:,}"
        known = item if isinstance(item, dict) else {}
        ends = [known.get(name) for name in ("source", "relationship", "target", "destination")]
        source, kind, target = ends[0], ends[1], ends[2] or ends[3]
        if not all(isinstance(end, str) and end for end in (source, kind, target)):
            raise BadFile(where, "it has no source, relationship or target.", EXPECTED)
        assert isinstance(source, str) and isinstance(target, str) and isinstance(kind, str)
        for name in (source, target):
            if name not in names:
                names.add(name)
                yield Fact(
                    key=key_of("mem0-entity", name),
                    content=name,
                    where=where,
                    memory_type="entity",
                )
        yield Link(
            source_key=key_of("mem0-entity", source),
            target_key=key_of("mem0-entity", target),
            relationship_type=kind,
            where=where,
        )
