"""A store of LangGraph: the database of its SqliteStore, or its items as JSON.

An item has a namespace, which is a tuple of names, and a key in it. The namespace becomes one below
the one that everything is brought into; the value is kept as it is, and its text is what is found.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from recollect.exchange.files import lines_of
from recollect.exchange.importers.looking import head_of
from recollect.exchange.items import Fact, Items, key_of, moment_of, part_of, text_of
from recollect.exchange.json_items import items_in
from recollect.exchange.problems import BadFile

EXPECTED = (
    'Either the database of a SqliteStore, or its items as JSON: {"namespace": [name, …], "key": '
    '…, "value": {…}, "created_at": …}, in a list or a line each, as item.dict() gives them.'
)
SQLITE = b"SQLite format 3\x00"
TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'store'"
COLUMNS = "SELECT name FROM pragma_table_info('store')"
ITEMS = (
    "SELECT prefix, key, value, created_at, updated_at, {expires} FROM store ORDER BY prefix, key"
)


def wrote(path: Path) -> bool:
    """Whether a file is such a store."""
    head = head_of(path)
    if head.startswith(SQLITE):
        with _reading(str(path)) as database:
            return bool(database.execute(TABLES).fetchone())
    return head.lstrip()[:1] in (b"{", b"[") and all(
        word in head for word in (b'"namespace"', b'"key"', b'"value"')
    )


def read(path: str) -> Items:
    """The items of a store."""
    if head_of(Path(path)).startswith(SQLITE):
        yield from _of_database(path)
        return
    for place, item in _of_json(path):
        where = f"{path}, item {place:,}"
        namespace = item.get("namespace") if isinstance(item, dict) else None
        if isinstance(namespace, str):
            namespace = namespace.split(".")
        if not isinstance(namespace, list) or not isinstance(item.get("key"), str):
            raise BadFile(where, "it has no namespace, or no key.", EXPECTED)
        names = [str(name) for name in namespace]
        moments = (item.get("created_at"), item.get("updated_at"), item.get("expires_at"))
        yield _fact(where, names, item["key"], item.get("value"), *moments)


def _of_json(path: str) -> Iterator[tuple[int, Any]]:
    if head_of(Path(path)).lstrip()[:1] == b"[":
        yield from items_in(path, "", EXPECTED)
        return
    for number, line in lines_of(path):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise BadFile(path, f"it is no JSON ({error}).", EXPECTED, line=number) from None


def _of_database(path: str) -> Items:
    with _reading(path) as database:
        known = {name for (name,) in database.execute(COLUMNS)}
        if not known:
            raise BadFile(path, "it has no table `store`.", EXPECTED)
        expires = "expires_at" if "expires_at" in known else "NULL"
        found = database.execute(ITEMS.format(expires=expires))
        for prefix, key, value, created_at, updated_at, expires_at in found:
            where = f"{path}, {prefix}/{key}"
            try:
                told = msgspec.json.decode(value)
            except msgspec.MsgspecError as error:
                raise BadFile(where, f"its value is no JSON ({error}).", EXPECTED) from None
            names = prefix.split(".")
            yield _fact(where, names, key, told, created_at, updated_at, expires_at)


@contextmanager
def _reading(path: str) -> Iterator[sqlite3.Connection]:
    try:
        # Only read, and as it is: nothing is made beside it.
        place = f"{Path(path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(place, uri=True)) as database:
            yield database
    except sqlite3.DatabaseError as error:
        raise BadFile(path, f"SQLite cannot read it ({error}).", EXPECTED) from None


def _fact(
    where: str,
    names: list[str],
    key: str,
    value: Any,
    created_at: Any,
    updated_at: Any,
    expires: Any,
) -> Fact:
    told = {"created_at": created_at, "updated_at": updated_at}
    return Fact(
        key=key_of("langgraph", key),
        content=text_of(value) or key,
        where=where,
        value=value,
        metadata={
            "langgraph_namespace": names,
            "langgraph_key": key,
            **{name: moment for name, moment in told.items() if moment is not None},
        },
        valid_from=moment_of(created_at),
        expires_at=moment_of(expires),
        below=tuple(part_of(name) for name in names),
    )
