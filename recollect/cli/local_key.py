"""The key of this machine: whoever has an orchestrator's data folder is let in by what lies in it.

The orchestrator leaves word in the folder of where it listens and whether it asks for keys. Only
then, and only for that endpoint, is its key used.
"""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

from recollect.client.endpoints import split
from recollect.client.settings import KEY_FILE_VARIABLE, endpoint_or_default

# As the settings have it; loading them takes longer than most commands.
USUAL_FOLDER = "./recollect-data"
USUAL_CONFIG = "memory_config.yaml"


def key_for(endpoint: str | None, key_file: str | None) -> str | None:
    """The key file to use: the one given, or this machine's own where that one is asked for."""
    if key_file is not None or os.environ.get(KEY_FILE_VARIABLE):
        return key_file
    own = local_key(data_folder(), endpoint_or_default(endpoint))
    return None if own is None else str(own)


def local_key(folder: Path, endpoint: str) -> Path | None:
    """The key of a data folder, if its orchestrator listens there and asks for keys."""
    from recollect.orchestrator.running.data_folder import announcement

    announced = announcement(folder)
    if announced is None or not announced.get("keys"):
        return None
    own = {str(announced["endpoint"]), reachable(str(announced["endpoint"]))}
    # Several orchestrators have the same keys, so that the key of one is good for all.
    if own.isdisjoint(split(endpoint)):
        return None
    path = local_key_in(folder)
    return path if os.access(path, os.R_OK) else None


def local_key_in(folder: Path) -> Path:
    """Where the key of a data folder lies."""
    return folder / "keys" / "local.key"


def data_folder() -> Path:
    """The data folder that is meant where none is named."""
    named = os.environ.get("RECOLLECT_DATA") or os.environ.get("RECOLLECT_STORAGE_DATA")
    if named:
        return Path(named)
    if os.environ.get("RECOLLECT_CONFIG") or Path(USUAL_CONFIG).exists():
        from recollect.cli.options import settings_from
        from recollect.config import ConfigError

        try:
            return Path(settings_from(None, None).storage.data)
        except ConfigError:
            pass  # Whoever needs the settings will say so; a call needs none.
    return Path(USUAL_FOLDER)


def is_everywhere(endpoint: str) -> bool:
    """Whether an endpoint names no address, but all that the machine has."""
    host = _host_of(endpoint)
    try:
        return host == "*" or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def reachable(endpoint: str) -> str:
    """Where something that listens at an endpoint is reached from the same machine."""
    if not is_everywhere(endpoint):
        return endpoint
    port = endpoint.rsplit(":", 1)[1]
    return f"tcp://[::1]:{port}" if "[" in endpoint else f"tcp://127.0.0.1:{port}"


def _host_of(endpoint: str) -> str:
    return endpoint.partition("://")[2].rsplit(":", 1)[0].strip("[]")
