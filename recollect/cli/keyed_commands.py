"""Commands over memories by key: put, and the namespaces that hold them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.given import content_from, object_from
from recollect.cli.output import bare_table, clean, counted, note, out, print_json
from recollect.client import MemoryClient
from recollect.protocol.records import NamespaceFound, NamespacesListed

CALLS_MAX = 1_000
PAGE_ITEMS = 500


def put(
    namespace: Annotated[
        str,
        typer.Argument(help="Such as user:alice.", metavar="NAMESPACE", show_default=False),
    ],
    key: Annotated[
        str, typer.Argument(help="A name of yours in it.", metavar="KEY", show_default=False)
    ],
    value: Annotated[
        str,
        typer.Argument(
            help="JSON, or else text; - reads it from standard input.",
            metavar="VALUE",
            show_default=False,
        ),
    ],
    memory_type: Annotated[
        str,
        typer.Option(
            "--type", "-t", help="semantic, episodic, procedural, general, …", metavar="TYPE"
        ),
    ] = "semantic",
    metadata: Annotated[
        str | None, typer.Option(help="A JSON object to keep beside it.", metavar="JSON")
    ] = None,
    content: Annotated[
        str | None,
        typer.Option(
            help="The text to find it by; made from the value if not given.", metavar="TEXT"
        ),
    ] = None,
    text: Annotated[
        bool,
        typer.Option("--text", help="The value is text, even if it could be JSON.", metavar=""),
    ] = False,
    expected_version: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Refuse unless this is the present version; 0 if the key must be free.",
            metavar="N",
        ),
    ] = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Store a value under a key: new, or as the next version of what is there.

    For example: `recollect put user:alice editor vim`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        given = content_from(value)
        answer = client.put(
            namespace,
            key,
            given if text else _json_or_text(given),
            memory_type,
            object_from("--metadata", metadata),
            content=content,
            expected_version=expected_version,
        )
        if as_json:
            return print_json(answer)
        done = "Stored " if answer["created"] else f"Stored version {answer['version']} of "
        out.print(Text.assemble((done, "green"), (answer["memory_id"], "cyan")))


def _json_or_text(given: str) -> Any:
    try:
        return msgspec.json.decode(given)
    except msgspec.DecodeError:
        return given


def namespaces(
    prefix: Annotated[
        str | None,
        typer.Argument(
            help="Only this one and those below it: user, user:alice, …",
            metavar="PREFIX",
            show_default=False,
        ),
    ] = None,
    limit: options.Limit = 100,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """List the namespaces that hold memories.

    For example: `recollect namespaces user`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        answer = _listed(client, prefix, limit)
        if as_json:
            return print_json(answer)
        if not answer["namespaces"]:
            return note("No namespace holds a memory that you may see.", "")
        table = bare_table()
        table.add_column("namespace", style="cyan", overflow="fold")
        table.add_column("memories", justify="right", no_wrap=True)
        for found in answer["namespaces"]:
            table.add_row(Text(clean(found["namespace"])), f"{found['memories']:,}")
        out.print(table)
        more = "; --limit shows more" if answer["cursor"] is not None else ""
        note(f"{counted(answer['count'], 'namespace')}{more}")


def _listed(client: MemoryClient, prefix: str | None, limit: int) -> NamespacesListed:
    """So many namespaces, over as many calls as it takes: one may bring fewer than asked for."""
    found: list[NamespaceFound] = []
    cursor = None
    for _ in range(CALLS_MAX):
        page = client.list_namespaces(
            prefix, limit=min(PAGE_ITEMS, limit - len(found)), cursor=cursor
        )
        found += page["namespaces"]
        cursor = page["cursor"]
        if cursor is None or len(found) >= limit:
            break
    return {"status": "success", "namespaces": found, "count": len(found), "cursor": cursor}
