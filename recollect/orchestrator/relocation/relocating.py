"""From two places to a copy."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from recollect.orchestrator.relocation.copying import Relocated, Relocation, Report
from recollect.orchestrator.relocation.places import Place
from recollect.orchestrator.relocation.side import Side
from recollect.orchestrator.relocation.sqlite_side import SqliteSide
from recollect.protocol.errors import InvalidArgument


def relocate(source: Place, target: Place, report: Report) -> Relocated:
    """Copy a store that nobody serves to another storage; the source is left as it is."""
    if source.name == target.name:
        raise InvalidArgument(
            f"{source.name} is where the store is already. Give another place.", field="to"
        )
    with (
        closing(_opened(source, source=True)) as here,
        closing(_opened(target, source=False)) as there,
    ):
        return Relocation(here, there, report).run(source, target)


def _opened(place: Place, *, source: bool) -> Side:
    if place.kind == "sqlite":
        return SqliteSide(Path(place.address), source=source)
    from recollect.orchestrator.relocation.postgres_side import PostgresSide  # needs its extra

    return PostgresSide(place.address)
