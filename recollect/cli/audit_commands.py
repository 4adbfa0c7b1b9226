"""The command over the audit log: who did what, and whether the log is as it was written."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from recollect.cli import options
from recollect.cli.audit_views import show_entries, show_verified
from recollect.cli.calling import calling
from recollect.cli.conditions import moment_from
from recollect.cli.failures import FAILED, USAGE, Failure
from recollect.cli.output import note, print_json
from recollect.client import MemoryClient
from recollect.protocol.records import AuditEntry, AuditListed

CALLS_MAX = 1_000
PAGE_ENTRIES = 500
VERIFY_TIMEOUT_S = 600.0
EXPECTED = re.compile(r"(\d{1,18}):([0-9a-fA-F]{64})")


def _only(what: str, metavar: str, *names: str) -> Any:
    return typer.Option(*names, help=f"Only {what}.", metavar=metavar, show_default=False)


def audit(
    namespace: options.Namespace = None,
    subject: Annotated[
        str | None, _only("of this memory, session, group, document or run", "ID")
    ] = None,
    identity: Annotated[str | None, _only("of this identity", "NAME")] = None,
    agent: Annotated[str | None, _only("of this agent", "NAME")] = None,
    operation: Annotated[
        str | None, _only("of this operation", "NAME", "--operation", "-o")
    ] = None,
    task: Annotated[str | None, _only("of this task", "ID")] = None,
    trace: Annotated[str | None, _only("of this request", "ID")] = None,
    denied: Annotated[
        bool, typer.Option("--denied", help="Only what was denied.", metavar="")
    ] = False,
    since: Annotated[
        str | None, _only("from this time on: 2026-01-31, or 2026-01-31T12:00Z", "TIME")
    ] = None,
    until: Annotated[str | None, _only("before this time", "TIME")] = None,
    limit: options.Limit = 50,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Instead, check that no entry was changed or removed.", metavar=""
        ),
    ] = False,
    expect: Annotated[
        str | None,
        typer.Option(
            help="With --verify: the end that an earlier check showed; it must still be there.",
            metavar="SEQ:HASH",
            show_default=False,
        ),
    ] = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show who did what, the latest first; or verify that nobody changed the log.

    For example: `recollect audit --task launch-7 --since 2026-01-31`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        if verify or expect is not None:
            return _verify(client, expect, as_json=as_json)
        answer = _listed(
            client,
            limit,
            namespace=namespace,
            subject=subject,
            identity=identity,
            agent=agent,
            operation=operation,
            task_id=task,
            trace=trace,
            outcome="denied" if denied else None,
            since=moment_from(since),
            until=moment_from(until),
        )
        if as_json:
            return print_json(answer)
        if not answer["entries"]:
            return note("No entry fits that you may see.", "")
        show_entries(answer["entries"])
        if answer["cursor"] is not None:
            note("There are older entries; --limit shows more.")


def _listed(client: MemoryClient, limit: int, **filters: Any) -> AuditListed:
    """So many entries, over as many calls as it takes to find them."""
    entries: list[AuditEntry] = []
    cursor = None
    for _ in range(CALLS_MAX):
        wanted = min(PAGE_ENTRIES, limit - len(entries))
        page = client.audit_log(limit=wanted, cursor=cursor, **filters)
        entries += page["entries"]
        cursor = page["cursor"]
        if cursor is None or len(entries) >= limit:
            break
    return {"status": "success", "entries": entries, "count": len(entries), "cursor": cursor}


def _verify(client: MemoryClient, expect: str | None, *, as_json: bool) -> None:
    seq, head = None, None
    if expect is not None:
        given = EXPECTED.fullmatch(expect.strip())
        if given is None:
            raise Failure(
                "invalid_argument",
                f"--expect {expect!r} is not the end of a log.",
                "Give it as an earlier `recollect audit --verify` showed it: SEQ:HASH.",
                exit_code=USAGE,
            )
        seq, head = int(given[1]), given[2].lower()
    answer = client.verify_audit(expected_seq=seq, expected_head=head, timeout=VERIFY_TIMEOUT_S)
    if as_json:
        print_json(answer)
    else:
        show_verified(answer, compared=expect is not None)
    if not answer["valid"]:
        raise typer.Exit(FAILED)
