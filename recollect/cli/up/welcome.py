"""The first thing that `recollect up` says: where everything is, and what to do first."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from recollect._version import VERSION
from recollect.cli.local_key import local_key_in, reachable
from recollect.cli.output import clean
from recollect.cli.up.programs import Companion, Orchestrator
from recollect.client.settings import DEFAULT_ENDPOINT

LIGHT_MODEL = "hashed-"


def welcome(
    orchestrator: Orchestrator, companions: Sequence[Companion], *, detached: bool = False
) -> Text:
    """Without a frame, so that it can be copied."""
    endpoint = reachable(orchestrator.endpoint)
    text = Text.assemble((f"Recollect {VERSION} is up.\n", "bold green"))
    for name, value in _places(orchestrator, companions):
        text.append(f"  {name:<10}", "dim").append(value).append("\n")
    text.append("\nTry it in another terminal:\n" if not detached else "\nTry it:\n", "dim")
    command = own_command()
    if endpoint != DEFAULT_ENDPOINT:
        text.append(f"  export RECOLLECT_ENDPOINT={endpoint}\n")
    if orchestrator.asks_for_keys:
        text.append(f"  export RECOLLECT_KEY_FILE={local_key_in(orchestrator.folder)}\n")
    text.append(f'  {command} add "The build is green since Tuesday."\n')
    text.append(f'  {command} recall "How is the build?"\n')
    text.append("\nOr from Python:\n", "dim")
    text.append(_python(orchestrator, endpoint))
    if detached:
        folder = orchestrator.folder
        return text.append(f"\n{command} down --data {folder} stops it.", "dim")
    return text.append("\nCtrl-C stops it.", "dim")


def _places(
    orchestrator: Orchestrator, companions: Sequence[Companion]
) -> list[tuple[str, Text | str]]:
    places: list[tuple[str, Text | str]] = [("endpoint", orchestrator.endpoint)]
    places += [place for one in companions for place in one.places()]
    places += [
        ("data", str(orchestrator.folder)),
        ("log", str(orchestrator.log_path)),
    ]
    if orchestrator.embedding is not None:
        places.append(("model", _model(orchestrator, orchestrator.embedding)))
    if orchestrator.asks_for_keys:
        hint = "asked for; `recollect keys new NAME` makes one for somebody else"
        places.append(("keys", hint))
    return places


def _python(orchestrator: Orchestrator, endpoint: str) -> str:
    given = [] if endpoint == DEFAULT_ENDPOINT else [f'"{endpoint}"']
    if orchestrator.asks_for_keys:
        given.append(f'key_file="{local_key_in(orchestrator.folder)}"')
    return (
        "  from recollect import MemoryClient\n"
        f"  with MemoryClient({', '.join(given)}) as memory:\n"
        '      memory.add_memory("The build is green since Tuesday.")\n'
        '      print(memory.recall("How is the build?")["results"])\n'
    )


def _model(orchestrator: Orchestrator, embedding: dict[str, Any]) -> Text:
    """What it embeds with; in yellow where that is only the light embedder, against the wish."""
    model = clean(embedding["model"]).partition("@")[0]
    progress = embedding["reembedding"]
    if progress["state"] in ("running", "waiting"):
        target = clean(progress["target"]).partition("@")[0]
        return Text(f"{model}, being exchanged for {target}; `recollect stats` shows how far")
    if orchestrator.wants_local and model.startswith(LIGHT_MODEL):
        return Text(
            f"the light embedder ({model}), in place of {orchestrator.wanted_model}", "yellow"
        )
    return Text(model)


def own_command() -> str:
    """How to call this program again: by its name if a shell finds it, else as it was called."""
    if shutil.which("recollect"):
        return "recollect"
    called = Path(sys.argv[0])
    return "python -m recollect" if called.name == "__main__.py" else str(called)
