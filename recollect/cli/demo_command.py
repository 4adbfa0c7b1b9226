"""`recollect demo`: see it remember, forget and survive a crash, on a system of its own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli.failures import reporting
from recollect.cli.output import note, out, show_failure

if TYPE_CHECKING:
    from recollect.cli.demo.system import DemoSystem


def demo(
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait", help="Stay for as long as you look, or end behind the last act."
        ),
    ] = True,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep the folder at the end, to go on with it.", metavar=""),
    ] = False,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser", help="Open the dashboard in a browser, if there is one."
        ),
    ] = True,
) -> None:
    """See it remember, forget and survive a crash, on sample data; nothing is left of it.

    For example: `recollect demo --keep`
    """
    with reporting(show_failure):
        # A stop is one, however it is asked for: everything is cleaned up.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        folder = Path(tempfile.mkdtemp(prefix="recollect-demo-"))
        try:
            _play(folder, wait=wait, browser=browser)
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
        if keep:
            out.print(f"\nIt is all in {folder}. To go on: recollect up --data {folder / 'data'}")


def _play(folder: Path, *, wait: bool, browser: bool) -> None:
    from recollect.cli.demo import story
    from recollect.cli.demo.system import DemoSystem
    from recollect.cli.demo.telling import Telling

    started_s, now_us = time.monotonic(), time.time_ns() // 1000
    tell = Telling()
    tell.opening()
    with DemoSystem(folder) as system:
        system.start()
        story.first_result(system, tell, started_s)
        system.start_companions()
        records = story.load(system, tell, now_us)
        story.recall(system, tell)
        story.contradiction(system, tell)
        story.decay(system, tell, records, now_us)
        story.survive(system, tell)
        story.context(system, tell)
        if system.model.startswith("hashed"):
            note(
                "\nThis was the light embedder, which finds by spelling; `recollect models "
                "install` brings one that knows meaning.",
                "yellow",
            )
        _look(system, wait=wait, browser=browser)


def _look(system: DemoSystem, *, wait: bool, browser: bool) -> None:
    """Show where the dashboard is, and stay there if wished."""
    url = system.dashboard()
    if url is None:
        note(
            "\nThe dashboard did not start: pip install 'recollect[dashboard]' brings it.", "yellow"
        )
    else:
        said = ("The dashboard, on all of this:", "bold")
        out.print(Text.assemble("\n", said, " ", (url, f"link {url}")))
    told = Text(f"The endpoint for your own programs: {system.endpoint}", "dim")
    out.print(told, soft_wrap=True)
    if not wait:
        return
    if url is not None and browser and _has_screen():
        import webbrowser

        webbrowser.open(url)
    note("Ctrl-C ends it and cleans up.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        note("Cleaning up.")


def _has_screen() -> bool:
    """Whether a browser would have a screen of its own; one in the terminal would hide the rest."""
    own = sys.platform in ("darwin", "win32")
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and bool(own or shown)
