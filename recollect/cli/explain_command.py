"""`recollect explain`: what an error code means, why it happens, and what to do."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.failures import USAGE, Failure, reporting
from recollect.cli.output import bare_table, note, out, print_json, show_failure
from recollect.protocol.errors import BY_CODE as CLASSES
from recollect.protocol.explanations import BY_CODE, CHAPTERS, nearest
from recollect.protocol.explanations.explanation import Explanation


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            help="The code, as an error shows it in brackets; all of them if not given.",
            metavar="CODE",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what an error code means, why it happens, and what to do about it.

    For example: `recollect explain unreachable`
    """
    with reporting(partial(show_failure, as_json=as_json)):
        if code is None:
            return _list(as_json=as_json)
        found = BY_CODE.get(code.strip("()").lower().replace("-", "_"))
        if found is None:
            raise _unknown(code)
        if as_json:
            return print_json({"status": "success", "explanation": _plain(found)})
        _show(found)


def _list(*, as_json: bool) -> None:
    if as_json:
        return print_json({"status": "success", "explanations": [*map(_plain, BY_CODE.values())]})
    for chapter, explanations in CHAPTERS.items():
        out.print(Text(f"\n{chapter}", "bold"))
        table = bare_table()
        table.show_header = False
        for one in explanations:
            table.add_row(Text(f"  {one.code}", "cyan"), one.meaning)
        out.print(table)
    note("\n`recollect explain CODE` tells more of one.")


def _show(one: Explanation) -> None:
    out.print(Text(one.code, "bold cyan"))
    out.print(one.meaning)
    _points("Why it happens", one.causes)
    _points("What to do", one.steps)
    known = CLASSES.get(one.code)
    if known is not None:
        helps = "helps" if known.retryable else "does not help"
        out.print(Text.assemble(("\nIn Python  ", "bold"), f"recollect.errors.{known.__name__}"))
        out.print(f"           the same again {helps}")
    out.print(Text("\nFor example", "bold"))
    for line in one.example.splitlines():
        out.print(Text(f"  {line}", "dim"), soft_wrap=True)


def _points(head: str, points: tuple[str, ...]) -> None:
    out.print(Text(f"\n{head}", "bold"))
    table = bare_table()
    table.show_header = False
    for point in points:
        table.add_row(" •", Text(point))
    out.print(table)


def _plain(one: Explanation) -> dict[str, Any]:
    known = CLASSES.get(one.code)
    return {
        **one._asdict(),
        "class": None if known is None else f"recollect.errors.{known.__name__}",
        "retryable": None if known is None else known.retryable,
    }


def _unknown(code: str) -> Failure:
    meant = nearest(code.lower())
    near = f"Did you mean {' or '.join(meant)}? " if meant else ""
    return Failure(
        "not_found",
        f"There is no error code {code!r}.",
        f"{near}`recollect explain` alone lists all of them.",
        exit_code=USAGE,
    )
