"""What the commands of the processes beside the orchestrator share: where they find it, and the
word that they leave of themselves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from recollect.cli.local_key import local_key, reachable
from recollect.client.endpoints import SEPARATOR, split
from recollect.client.places import Place
from recollect.client.settings import ENDPOINT_VARIABLE, KEY_FILE_VARIABLE
from recollect.config import Settings
from recollect.orchestrator.running.data_folder import announcement, announcement_path


def place_of(settings: Settings, endpoint: str | None, key_file: str | None) -> Place:
    """Where the orchestrator is now, or several are: where we were told, else where it says itself,
    else where it will be."""
    folder = Path(settings.storage.data)
    given = endpoint or os.environ.get(ENDPOINT_VARIABLE)
    if given is None and settings.client.endpoints:
        given = SEPARATOR.join(settings.client.endpoints)
    if given is None:
        announced = announcement(folder)
        given = str(announced["endpoint"]) if announced else settings.network.bind
    found = SEPARATOR.join(reachable(one) for one in split(given))
    key = key_file or os.environ.get(KEY_FILE_VARIABLE)
    if key is None and (own := local_key(folder, found)) is not None:
        key = str(own)
    return Place(found, key)


class Word:
    """What a process leaves word of in the data folder, if there is one here: several may serve one
    folder in a role, and the last to say something is the one that is found."""

    def __init__(self, folder: Path, role: str) -> None:
        self._role = role
        self._path = announcement_path(folder, role)
        self._partial = folder / f"{role}.{os.getpid()}.partial"

    def leave(self, facts: dict[str, Any]) -> None:
        """Say something of this process, in place of what was said before."""
        if self._path.parent.is_dir():
            self._partial.write_bytes(msgspec.json.encode({"pid": os.getpid(), **facts}))
            self._partial.rename(self._path)

    def take_back(self) -> None:
        """Say nothing any more, unless somebody else has the word by now."""
        announced = announcement(self._path.parent, self._role)
        if announced is not None and announced["pid"] == os.getpid():
            self._path.unlink(missing_ok=True)
