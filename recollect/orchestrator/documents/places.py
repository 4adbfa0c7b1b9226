"""Where documents may be read from, and reading there without ever being led elsewhere.

A path is resolved, compared with the allowed roots, and then opened name by name from its root,
following no link on the way. So whatever is put into its place in between, nothing outside of the
roots is ever opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from recollect.protocol.errors import LimitExceeded, NotFound, PathRefused, UnreadableDocument

PATH_CHARS_MAX = 4096
READ_BYTES = 1 << 20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe must not keep us waiting for who writes into it.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Place(msgspec.Struct, frozen=True):
    """A path within a root, free of links."""

    root: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        return os.path.join(self.root, *self.parts)

    @property
    def source(self) -> str:
        """The path as text."""
        return spelled(self.path)

    @property
    def names(self) -> tuple[str, ...]:
        """The names below the root as they stand in the source."""
        return tuple(map(spelled, self.parts))

    def below(self, *parts: str) -> Place:
        return Place(self.root, (*self.parts, *parts))


def spelled(name: str) -> str:
    """A name or path as text: what of it is not UTF-8 is spelled out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class FileContent(msgspec.Struct, frozen=True):
    """The bytes of a file, and how it was when they were read."""

    data: bytes
    modified_ns: int


class Roots:
    """The folders that documents may be read from."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = [os.path.abspath(os.path.expanduser(root)) for root in roots]

    def place(self, path: str, field: str) -> Place:
        """The place of a path, if it is within a root."""
        if not path or len(path) > PATH_CHARS_MAX or "\x00" in path:
            raise PathRefused(
                f"{field} is empty, has more than {PATH_CHARS_MAX:,} characters, or a NUL among "
                "them.",
                field=field,
            )
        if not os.path.isabs(path):
            raise PathRefused(
                f"{field} is {path!r}: give the whole path, from / on, as it is where the "
                "orchestrator runs.",
                field=field,
            )
        if os.pardir in path.split(os.sep):
            raise PathRefused(f"{field} has a '..' in it; give the path without.", field=field)
        plain = os.path.normpath(path)
        roots = [(root, os.path.realpath(root)) for root in self._roots]
        # What is not even spelled like a path within a root is not looked at.
        if any(_within(plain, spelled) for pair in roots for spelled in pair):
            real = os.path.realpath(plain)
            for _, root in sorted(roots, key=lambda pair: -len(pair[1])):
                if _within(real, root):
                    rest = os.path.relpath(real, root)
                    return Place(root, () if rest == os.curdir else tuple(rest.split(os.sep)))
        raise self.refused(path, field)

    def refused(self, path: str, field: str) -> PathRefused:
        """Why a path is not read: the same for all that are outside, there or not."""
        allowed = "none are set" if not self._roots else ", ".join(self._roots)
        return PathRefused(
            f"{path!r} does not lie within documents.roots ({allowed}), or a link leads out of "
            "them. Only what is there is read.",
            field=field,
        )


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(os.path.join(root, ""))


@contextmanager
def opened_folder(place: Place) -> Iterator[int]:
    """A descriptor of a folder, reached from its root without following a link."""
    with refusing(place.path):
        descriptor = os.open(place.root, FOLDER)
    try:
        for depth, name in enumerate(place.parts, 1):
            with refusing(place.path):
                if depth == len(place.parts) and _is_plain_file(name, descriptor):
                    raise PathRefused(
                        f"{place.source!r} is a file, not a folder: index_document reads it.",
                        path=place.source,
                    )
                deeper = os.open(name, FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


def _is_plain_file(name: str, folder: int) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _is_a_folder(place: Place) -> PathRefused:
    return PathRefused(
        f"{place.source!r} is a folder, not a file: sync_documents reads what is in it.",
        path=place.source,
    )


def read_file(place: Place, bytes_max: int) -> FileContent:
    """What a plain file holds."""
    if not place.parts:
        raise _is_a_folder(place)
    with opened_folder(Place(place.root, place.parts[:-1])) as folder:
        name = place.parts[-1]
        with refusing(place.path):
            # Opening a device can do something by itself, so it is looked at first.
            before = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(before.st_mode):
                raise _is_a_folder(place)
            if not stat.S_ISREG(before.st_mode):
                raise not_a_file(place.path)
            descriptor = os.open(name, FILE, dir_fd=folder)
        try:
            with refusing(place.path):
                return _read(place, descriptor, bytes_max)
        finally:
            os.close(descriptor)


def _read(place: Place, descriptor: int, bytes_max: int) -> FileContent:
    found = os.fstat(descriptor)
    # It may have been exchanged since.
    if not stat.S_ISREG(found.st_mode):
        raise not_a_file(place.path)
    parts: list[bytes] = []
    size = found.st_size
    left = bytes_max + 1
    while size <= bytes_max and left and (part := os.read(descriptor, min(left, READ_BYTES))):
        parts.append(part)
        left -= len(part)
    if not left or size > bytes_max:
        raise LimitExceeded(
            f"The file has more than {bytes_max:,} bytes, the limit documents.file_bytes_max. "
            "Divide it, or raise the limit.",
            limit="documents.file_bytes_max",
            maximum=bytes_max,
        )
    return FileContent(b"".join(parts), found.st_mtime_ns)


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Say in our words what the system says of a path."""
    path = spelled(path)
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"There is no {path!r}.", path=path) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO):
            raise not_a_file(path) from None
        raise UnreadableDocument(
            f"The system does not let {path!r} be read: {error.strerror}.", path=path
        ) from None


def not_a_file(path: str) -> PathRefused:
    """Why something within a root is not read."""
    path = spelled(path)
    return PathRefused(
        f"{path!r} is not a plain file or folder, or was exchanged for a link while it was "
        "opened. Links, devices, pipes and sockets are not read.",
        path=path,
    )
