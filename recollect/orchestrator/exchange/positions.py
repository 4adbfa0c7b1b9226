"""Where an export is: in which of its stages, and how far in it."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations import ExportRecords

TEXTS = 2
NUMBERS = 5


class Position(msgspec.Struct, frozen=True):
    """The last thing that was exported. What its parts mean is a matter of the stage."""

    text: str = ""
    other_text: str = ""
    stage: int = 0
    until: int = 0
    """Memories with larger numbers were made after the export began."""
    number: int = 0
    other_number: int = 0
    bound: int = 0
    """How far something that is in the middle of being exported goes."""

    def next_stage(self) -> Position:
        return Position(stage=self.stage + 1, until=self.until)


def read_position(operation: ExportRecords, stages: int) -> Position | None:
    """The position that a cursor stands for; None at the beginning."""
    parts = read_cursor(operation, operation.cursor, TEXTS + NUMBERS, texts=TEXTS)
    if parts is None:
        return None
    position = Position(*parts)
    if not all(isinstance(part, int) for part in parts[TEXTS:]) or not 0 <= parts[TEXTS] < stages:
        raise InvalidArgument("The cursor is damaged; begin anew without it.", field="cursor")
    return position


def cursor_of(operation: ExportRecords, position: Position) -> str:
    """The cursor that leads on from a position."""
    return make_cursor(operation, [*msgspec.structs.astuple(position)])
