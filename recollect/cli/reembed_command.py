"""The command that exchanges the embedding model: reembed."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal, cast

import typer
from rich.text import Text

from recollect.cli import options
from recollect.cli.calling import calling
from recollect.cli.failures import Failure
from recollect.cli.output import clean, err, note, out, print_json
from recollect.cli.progress_bars import Report, counting
from recollect.client import MemoryClient

POLL_S = 0.2
# The last one: the new model is in use, and what belonged to the old one is being removed.
UNDER_WAY = ("running", "waiting", "clearing")
IN_BACKGROUND = "It goes on in the background; `recollect stats` shows how far it is."


def reembed(
    model: Annotated[
        str,
        typer.Option(
            help="A name that `recollect models list` knows, or a folder.",
            metavar="NAME",
            show_default=False,
        ),
    ],
    provider: Annotated[
        str,
        typer.Option(help="Who embeds with it: local, hashed or openai.", metavar="PROVIDER"),
    ] = "local",
    dimensions: Annotated[
        int | None,
        typer.Option(
            help="Length of a vector, where the model leaves the choice.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Stay until it is done.", metavar="")
    ] = True,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Embed all memories anew with another model, in the background; searches go on meanwhile.

    For example: `recollect reembed --model all-MiniLM-L6-v2`
    """
    with calling(endpoint, key_file, as_json=as_json) as client:
        quiet = as_json or not wait
        with counting("embedding", quiet=quiet, left=IN_BACKGROUND) as report:
            # Whether there is such a provider, the orchestrator says.
            answer = client.reembed(model, cast(Literal["local"], provider), dimensions)
            if wait and answer["state"] != "done":
                if not (as_json or err.is_terminal):
                    note(f"Embedding all memories anew with {clean(answer['model'])} …")
                answer = {**answer, "state": _until_done(client, answer["model"], report)}
        if as_json:
            return print_json(answer)
        name = clean(answer["model"])
        if answer["state"] == "done":
            return out.print(Text.assemble(("All memories are embedded with ", "green"), name))
        out.print(f"Embedding all memories anew with {name}.")
        note(IN_BACKGROUND)


def _until_done(client: MemoryClient, model: str, report: Report) -> str:
    """Report how far it is until it is done."""
    while True:
        embedding = client.stats()["embedding"]
        state: dict[str, Any] = embedding["reembedding"]
        reason = clean(str(state.get("reason") or "the orchestrator's log says why")).rstrip(".")
        under_way = state["state"] in UNDER_WAY
        if embedding["model"] == model and not under_way:
            return "done"
        if not under_way:
            raise Failure(
                "reembedding_failed",
                f"Embedding with {model} ended early: {reason}.",
                "The memories keep the vectors they had. Run it again when that is mended.",
            )
        told = {"waiting": f"waiting ({reason})", "clearing": "tidying up"}
        report(
            told.get(state["state"], "embedding"),
            int(state.get("done") or 0),
            state.get("total"),
        )
        time.sleep(POLL_S)
