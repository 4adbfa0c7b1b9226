"""Going through a folder: which documents lie in it, and when they were changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

import msgspec

from recollect.orchestrator.documents.kinds import kind_of_name
from recollect.orchestrator.documents.patterns import Pattern
from recollect.orchestrator.documents.places import FOLDER, Place, opened_folder, refusing
from recollect.protocol.errors import LimitExceeded, NotFound, PathRefused, UnreadableDocument

DEPTH_MAX = 64
HIDDEN = "."
# What others' tools have put there, and make anew.
LEFT_OUT = frozenset(["node_modules", "__pycache__"])


class FoundFile(msgspec.Struct, frozen=True):
    """A document in a folder, as it was when it was met."""

    place: Place
    size: int
    modified_ns: int


class Walk:
    """One walk through a folder. Links are not followed: what they lead to is met in its place."""

    def __init__(self, top: Place, pattern: Pattern | None, files_max: int) -> None:
        self.top = top
        self._pattern = pattern
        self._files_max = files_max
        self._met = 0
        self._names: set[tuple[str, ...]] = set()
        self.files: list[FoundFile] = []
        self.unseen: list[Place] = []
        """Folders that could not be looked into: of what was in them nothing is known."""

    def go(self) -> Walk:
        with opened_folder(self.top) as descriptor:
            self._enter(descriptor, self.top, DEPTH_MAX)
        return self

    def missed(self, names: Sequence[str]) -> bool:
        """Whether a file of these names below the top, as its source spells them, was not met,
        and would have been if it were there."""
        if any(map(_left_out, names)) or not self._wanted(names):
            return False
        top = len(self.top.parts)
        unseen = (folder.names[top:] for folder in self.unseen)
        seen = not any(tuple(names[: len(folder)]) == folder for folder in unseen)
        return seen and tuple(names) not in self._names

    def _enter(self, descriptor: int, folder: Place, deeper_max: int) -> None:
        """Go through one folder. Its descriptor stays open until those below it are done."""
        with refusing(folder.path):
            found: list[os.DirEntry[str]] = []
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if not _left_out(entry.name):
                        self._count()
                        found.append(entry)
            for entry in sorted(found, key=lambda entry: entry.name):
                place = folder.below(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    self._descend(descriptor, place, deeper_max)
                elif entry.is_file(follow_symlinks=False):
                    self._meet(descriptor, place)

    def _descend(self, descriptor: int, folder: Place, deeper_max: int) -> None:
        try:
            if not deeper_max:
                raise UnreadableDocument(f"{folder.path!r} is nested too deeply.")
            with refusing(folder.path):
                deeper = os.open(folder.parts[-1], FOLDER, dir_fd=descriptor)
        except (UnreadableDocument, PathRefused, NotFound):
            self.unseen.append(folder)
            return
        try:
            self._enter(deeper, folder, deeper_max - 1)
        except (UnreadableDocument, NotFound):
            self.unseen.append(folder)
        finally:
            os.close(deeper)

    def _meet(self, descriptor: int, place: Place) -> None:
        names = place.names[len(self.top.parts) :]
        if not self._wanted(names):
            return
        try:
            status = os.stat(place.parts[-1], dir_fd=descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return  # gone since
        if stat.S_ISREG(status.st_mode):
            self.files.append(FoundFile(place, status.st_size, status.st_mtime_ns))
            self._names.add(names)

    def _wanted(self, names: Sequence[str]) -> bool:
        if kind_of_name(names[-1]) is None:
            return False
        return self._pattern is None or self._pattern.fits(names)

    def _count(self) -> None:
        self._met += 1
        if self._met > self._files_max:
            raise LimitExceeded(
                f"{self.top.path!r} has more than {self._files_max:,} files and folders, the "
                "limit documents.files_max. Sync its parts one by one, or raise the limit.",
                limit="documents.files_max",
                maximum=self._files_max,
            )


def _left_out(name: str) -> bool:
    return name.startswith(HIDDEN) or name in LEFT_OUT
