"""`recollect gateway`: the process that speaks REST, MCP and gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.cli import options
from recollect.cli.companion_command import Supervised, run_companion

if TYPE_CHECKING:
    from recollect.cli.companion_command import Leave
    from recollect.client.places import Find
    from recollect.config import Settings


def gateway(
    data: options.Data = None,
    config: options.Config = None,
    endpoint: options.Endpoint = None,
    key_file: options.KeyFile = None,
    supervised: Supervised = False,
) -> None:
    """Speak REST, MCP and gRPC for whoever does not speak ZeroMQ; `recollect up` starts it too.

    For example: `recollect gateway --endpoint tcp://127.0.0.1:7341`
    """
    run_companion(
        "gateway",
        _run,
        data=data,
        config=config,
        endpoint=endpoint,
        key_file=key_file,
        supervised=supervised,
    )


def _run(settings: Settings, find: Find, leave: Leave) -> int:
    from recollect.gateway import process

    return process.run(settings.gateway, find, leave)
