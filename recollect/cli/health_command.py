"""`recollect health`: the process that watches everything and serves the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.cli import options
from recollect.cli.companion_command import Supervised, run_companion

if TYPE_CHECKING:
    from recollect.cli.companion_command import Leave
    from recollect.client.places import Find
    from recollect.config import Settings


def health(
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    supervised: Supervised = False,
) -> None:
    """Watch everything, tell how it is, and serve the dashboard; `recollect up` starts it too.

    For example: `recollect health --endpoint tcp://127.0.0.1:7341`
    """
    run_companion(
        "health",
        _run,
        data=data,
        config=config,
        endpoint=endpoint,
        key_file=key_file,
        supervised=supervised,
    )


def _run(settings: Settings, find: Find, leave: Leave) -> int:
    from recollect.health import process

    return process.run(settings, find, leave)
