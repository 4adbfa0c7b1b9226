"""The knowledge graph of the MCP memory server: JSON lines of entities and relations.

An entity becomes a memory, and each of its observations one below it. An observation is brought
with the name of what it is of, for alone it says little.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from recollect.exchange.files import lines_of
from recollect.exchange.importers.looking import head_of
from recollect.exchange.items import Fact, Items, Link, key_of
from recollect.exchange.problems import BadFile

EXPECTED = (
    'A line is {"type": "entity", "name": …, "entityType": …, "observations": [text, …]} or '
    '{"type": "relation", "from": …, "to": …, "relationType": …}.'
)


def wrote(path: Path) -> bool:
    """Whether a file is such a graph."""
    first = head_of(path).partition(b"\n")[0]
    try:
        told = msgspec.json.decode(first)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # A long first line is cut by the look at it.
        return first.startswith(b'{"type":"entity"')
    return isinstance(told, dict) and told.get("type") in ("entity", "relation")


def read(path: str) -> Items:
    """Entities, then what was observed of them, then how they are related."""
    # One after the other, for each belongs to what came before; the file is small beside that.
    for number, told in _lines(path):
        if told["type"] == "entity":
            yield _entity(path, number, told)
    for number, told in _lines(path):
        if told["type"] == "entity":
            yield from _observations(path, number, told)
    for number, told in _lines(path):
        if told["type"] == "relation":
            ends = [told.get(name) for name in ("from", "to", "relationType")]
            if not all(isinstance(end, str) and end for end in ends):
                raise BadFile(path, "this relation lacks one of its parts.", EXPECTED, line=number)
            yield Link(
                source_key=key_of("mcp-entity", str(ends[0])),
                target_key=key_of("mcp-entity", str(ends[1])),
                relationship_type=str(ends[2]),
                where=f"{path}, line {number:,}",
            )


def _lines(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines_of(path):
        if not line.strip():
            continue
        try:
            told = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadFile(path, f"this line is no JSON ({error}).", EXPECTED, line=number) from None
        if not isinstance(told, dict) or told.get("type") not in ("entity", "relation"):
            raise BadFile(path, "this is neither an entity nor a relation.", EXPECTED, line=number)
        yield number, told


def _entity(path: str, number: int, told: dict[str, Any]) -> Fact:
    name, kind = told.get("name"), str(told.get("entityType") or "entity")
    observations = told.get("observations") or []
    if not isinstance(name, str) or not name.strip() or not isinstance(observations, list):
        raise BadFile(path, "this entity has no name.", EXPECTED, line=number)
    return Fact(
        key=key_of("mcp-entity", name),
        content=f"{name} ({kind})",
        where=f"{path}, line {number:,}",
        memory_type="entity",
        metadata={"entity": name, "entity_type": kind},
        tags=(kind[:128],),
    )


def _observations(path: str, number: int, told: dict[str, Any]) -> Items:
    name: str = told["name"]
    for observation in told.get("observations") or []:
        if not isinstance(observation, str) or not observation.strip():
            continue
        digest = hashlib.sha256(observation.encode("utf-8", "replace")).hexdigest()[:16]
        yield Fact(
            key=key_of("mcp-observation", name[:100], digest),
            content=f"{name}: {observation}",
            where=f"{path}, line {number:,}",
            memory_type="semantic",
            metadata={"entity": name, "observation": observation},
            parent_key=key_of("mcp-entity", name),
        )
