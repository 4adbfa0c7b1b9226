"""Puts a model where it belongs: whole and checked, or not at all.

Files are gathered in a hidden folder beside the target, checked by size and SHA-256, brought to the
disk and then renamed into place at once. A lock lets one installer of a model work at a time; the
others wait and find the work done. What a killed installer left behind, the next one clears away.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from recollect.models.catalogue import Entry, ModelFile
from recollect.models.errors import (
    ChecksumMismatch,
    InstallBusy,
    ModelUnavailable,
    SourceFailed,
    WrongContent,
)
from recollect.models.locating import MANIFEST_FILE, Installed, in_folder, traits_of
from recollect.models.sources import FETCH_S_MAX, Source

LOCK_S_MAX = FETCH_S_MAX
LOCK_POLL_S = 0.1


class Progress(msgspec.Struct, frozen=True):
    """How far an installation is."""

    source: str
    bytes_done: int = 0
    bytes_total: int = 0
    """0 where it is not known."""


class Outcome(msgspec.Struct, frozen=True):
    """A model that is installed now, and the source it came from; none if it was there before."""

    model: Installed
    source: str | None


def install(
    entry: Entry,
    models: Path,
    *,
    sources: Sequence[Source] | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Install the model into its folder below `models`; nothing is done if it is there and whole.

    Each source is tried in turn. Raises ChecksumMismatch if one of them gave wrong files and none
    the right ones, ModelUnavailable if none gave any.
    """
    target = models / entry.name
    if is_whole(entry, target):
        return Outcome(_found(target), None)
    models.mkdir(parents=True, exist_ok=True)
    with _locked(models / f".{entry.name}.lock", entry):
        if is_whole(entry, target):
            return Outcome(_found(target), None)
        staging = models / f".{entry.name}.staging"
        _remove(staging)
        try:
            source = _gather(entry, staging, entry.sources if sources is None else sources, report)
            _put_in_place(staging / "files", target, staging / "replaced")
        finally:
            _remove(staging)
    return Outcome(_found(target), source)


def is_whole(entry: Entry, folder: Path) -> bool:
    """Whether the folder holds every file of the model, to the bit."""
    try:
        return all(wrong_with(file, folder / file.name) is None for file in entry.files)
    except OSError:
        return False


def wrong_with(file: ModelFile, path: Path) -> str | None:
    """How a file differs from what it should be; None if it does not."""
    size = path.stat().st_size
    if size not in {content.size for content in file.accepted}:
        return f"{file.name} has {size:,} bytes, not {file.accepted[0].size:,}"
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest not in {content.sha256 for content in file.accepted}:
        return f"{file.name} has the SHA-256 {digest[:12]}…, not {file.accepted[0].sha256[:12]}…"
    return None


def _gather(
    entry: Entry, staging: Path, sources: Sequence[Source], report: Callable[[Progress], None]
) -> str:
    """Fill `staging/files` from the first source that has the right files, and name that source."""
    answers: dict[str, str] = {}
    refused = False
    for source in sources:
        title = source.title()
        report(Progress(title))
        try:
            _fetch(entry, source, staging, report)
            return title
        except SourceFailed as failed:
            answers[title] = str(failed)
            refused = refused or isinstance(failed, WrongContent)
            _remove(staging)
    told = "; ".join(f"{title}: {answer}" for title, answer in answers.items())
    if refused:
        raise ChecksumMismatch(
            f"{entry.name} was not installed, because what came is not the known model: {told}.",
            model=entry.name,
            sources=answers,
        )
    raise ModelUnavailable(
        f"No source gave {entry.name}: {told or 'it has none'}.", model=entry.name, sources=answers
    )


def _fetch(entry: Entry, source: Source, staging: Path, report: Callable[[Progress], None]) -> None:
    files, scratch = staging / "files", staging / "scratch"
    files.mkdir(parents=True)
    scratch.mkdir()
    title = source.title()
    source.fetch(
        {file.name: file.size_max for file in entry.files},
        files,
        scratch,
        lambda done, total: report(Progress(title, done, total)),
    )
    for file in entry.files:
        wrong = wrong_with(file, files / file.name)
        if wrong is not None:
            raise WrongContent(wrong)
    (files / MANIFEST_FILE).write_bytes(
        msgspec.json.format(msgspec.json.encode(traits_of(entry))) + b"\n"
    )
    for path in (*files.iterdir(), files):
        _sync(path)


def _put_in_place(files: Path, target: Path, replaced: Path) -> None:
    # Only a damaged or unfinished folder can be there: a whole one was found before. It makes way,
    # because a folder is not renamed over one that holds something.
    if target.exists():
        target.rename(replaced)
    files.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    """Bring a file or a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _found(folder: Path) -> Installed:
    found = in_folder(folder)
    assert found is not None, folder
    return found


@contextmanager
def _locked(path: Path, entry: Entry) -> Iterator[None]:
    """Hold the lock of a model's installation; it falls with the process that holds it."""
    deadline_s = time.monotonic() + LOCK_S_MAX
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline_s:
                    raise InstallBusy(
                        f"Another process has been installing {entry.name} for over "
                        f"{LOCK_S_MAX:.0f} s. Wait for it, or stop it.",
                        model=entry.name,
                    ) from None
                time.sleep(LOCK_POLL_S)
        yield
