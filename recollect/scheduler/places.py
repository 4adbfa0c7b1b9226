"""The namespaces that a job goes through one by one."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.protocol.operations import ListNamespaces
from recollect.scheduler.work import Work

PAGE = 500
NAMESPACES_MAX = 100_000


async def outermost(work: Work, chosen: Sequence[str] = ()) -> list[str]:
    """Namespaces that together cover all memories, or those that were chosen: what lies below one
    of them is seen to with it. What is temporary is left to its end."""
    names = set(chosen)
    cursor = None
    while not chosen and len(names) < NAMESPACES_MAX:
        page = await work.call(ListNamespaces(limit=work.page(PAGE), cursor=cursor))
        names.update(entry["namespace"] for entry in page["namespaces"])
        cursor = page["cursor"]
        if cursor is None:
            break
    found: list[str] = []
    for name in sorted(names, key=lambda name: name.split(":")):
        covered = bool(found) and f"{name}:".startswith(f"{found[-1]}:")
        if not covered and not name.startswith("temp:"):
            found.append(name)
    return found
