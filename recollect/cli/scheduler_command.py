"""The command that runs the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.cli import options
from recollect.cli.companion_command import Supervised, run_companion

if TYPE_CHECKING:
    from recollect.cli.companion_command import Leave
    from recollect.client.places import Find
    from recollect.config import Settings


def scheduler(
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    supervised: Supervised = False,
) -> None:
    """Run the scheduler in the foreground; `recollect up` starts one.

    Of several, one runs the jobs and the others stand by.

    For example: `recollect scheduler --endpoint tcp://127.0.0.1:7341`
    """
    run_companion(
        "scheduler",
        _run,
        data=data,
        config=config,
        endpoint=endpoint,
        key_file=key_file,
        supervised=supervised,
    )


def _run(settings: Settings, find: Find, leave: Leave) -> int:
    import asyncio

    from recollect.scheduler import process

    return asyncio.run(process.serve(settings, find, leave))
