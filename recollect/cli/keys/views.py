"""Identities, their keys and their grants as people read them."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from recollect.cli.keys.bearer_keys import living_keys
from recollect.cli.output import ago, clean, note, out

COLUMNS = ("identity", "may", "known by", "requests/s", "memories", "made", "")


def show_list(answer: dict[str, Any]) -> None:
    """All identities, and the key of the orchestrator."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in COLUMNS:
        table.add_column(title, overflow="fold")
    for identity in answer["identities"]:
        table.add_row(
            clean(identity["name"]),
            "\n".join(_grant_lines(identity)) or Text("nothing", "dim"),
            Text("\n".join(_key_lines(identity))) or Text("nothing", "dim"),
            _bound(identity["requests_per_s"]),
            _memories(identity),
            ago(identity["created_at"]),
            Text(f"revoked {ago(identity['revoked_at'])}", "red") if identity["revoked_at"] else "",
        )
    if answer["identities"]:
        out.print(table)
    else:
        note("Nobody has a key yet: `recollect keys new NAME` makes one.")
    if answer["server_key"]:
        note(f"Clients know the orchestrator by {answer['server_key']}")


def show_changed(identity: dict[str, Any]) -> None:
    """What an identity may do after a change, if there still is one."""
    if identity["revoked_at"]:
        return out.print(Text.assemble(("Revoked ", "green"), (identity["name"], "bold")))
    out.print(Text(identity["name"], "bold"))
    show_grants(identity)


def show_grants(identity: dict[str, Any]) -> None:
    """A line for each grant, or that there is none."""
    for line in _grant_lines(identity):
        out.print(f"  {line}")
    if not identity["grants"]:
        note(f"It may do nothing yet: `recollect keys grant {identity['name']} PATTERN ACCESS`")


def _grant_lines(identity: dict[str, Any]) -> list[str]:
    return [f"{grant['access']:<6} {clean(grant['pattern'])}" for grant in identity["grants"]]


def _key_lines(identity: dict[str, Any]) -> list[str]:
    if identity["revoked_at"]:
        return []
    lines = ["key file"] if identity["public_key"] else []
    for key in living_keys(identity):
        label = f" {clean(key['label'])}" if key["label"] else ""
        lines.append(f"bearer {key['key_id']}{label}")
    return lines


def _bound(number: float | None) -> str | Text:
    return Text("any", "dim") if number is None else f"{number:g}"


def _memories(identity: dict[str, Any]) -> str | Text:
    maximum = identity["memories_max"]
    return Text("any", "dim") if maximum is None else f"{identity['memories']:,} of {maximum:,}"
