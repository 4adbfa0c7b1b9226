"""The options that several commands share, and the settings that they lead to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from recollect.config import Settings

Endpoint = Annotated[
    str | None,
    typer.Option(
        help="Where the orchestrator listens, or several with commas in between; else "
        "RECOLLECT_ENDPOINT, else tcp://127.0.0.1:7331.",
        show_default=False,
        metavar="ENDPOINT",
    ),
]
KeyFile = Annotated[
    str | None,
    typer.Option(
        "--key-file",
        help="The key to come in with; else RECOLLECT_KEY_FILE, else that of the data folder.",
        show_default=False,
        metavar="FILE",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the answer, or the error, as JSON.", metavar="")
]
Data = Annotated[
    str | None,
    typer.Option(
        help="The data folder; else RECOLLECT_DATA or storage.data of the configuration.",
        show_default=False,
        metavar="DIR",
    ),
]
Bind = Annotated[
    str | None,
    typer.Option(
        help="Where to listen, such as tcp://127.0.0.1:7331; else network.bind.",
        show_default=False,
        metavar="ENDPOINT",
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        help="The configuration file; else RECOLLECT_CONFIG, else memory_config.yaml here.",
        show_default=False,
        metavar="FILE",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Only this namespace and those below it.", metavar="NAMESPACE"
    ),
]
MemoryType = Annotated[
    str | None, typer.Option("--type", "-t", help="Only memories of this type.", metavar="TYPE")
]
Limit = Annotated[int, typer.Option("--limit", "-l", min=1, help="How many at most.", metavar="N")]
FullIds = Annotated[
    bool, typer.Option("--full-ids", help="Show ids whole, however narrow it gets.", metavar="")
]


def settings_from(config: str | None, data: str | None, bind: str | None = None) -> Settings:
    """The settings in force; an option that was given wins over every other source."""
    from recollect.config import find_config, load

    given = {"storage.data": data, "network.bind": bind}
    return load(
        find_config(config, os.environ, Path.cwd()),
        os.environ,
        {key: value for key, value in given.items() if value is not None},
    )
