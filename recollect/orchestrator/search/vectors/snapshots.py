"""Segments on disk: a folder each, which either verifies as a whole or does not count.

A segment is written into a folder with a name of its own for unfinished ones, every file is synced,
the manifest comes last and holds the size and SHA-256 of each, and only then is the folder renamed.
So a crash leaves unfinished folders, which are removed at the next start, and never half a segment.
Tombstones are not written: at start the stored memories say what lives.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import structlog

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.search.vectors import ivf
from recollect.orchestrator.search.vectors.scoring import Numbers
from recollect.orchestrator.search.vectors.segment import Segment

log = structlog.get_logger()

FORMAT = 1
VECTORS, NUMBERS, INDEX, MANIFEST = "vectors.f32", "numbers.i64", "index.faiss", "manifest.json"
UNFINISHED = ".partial"
NAME = re.compile(r"segment-(\d{8,18})")
VERIFIERS_MAX = 4
# Synced as it is written: a great deal at once would hold up the commits of the storage beside it.
UNSYNCED_BYTES_MAX = 32 * 2**20


class Damaged(Exception):
    """A segment's files are not what its manifest says."""


class Foreign(Exception):
    """A segment belongs to another model or another version of the format."""


class FileFacts(msgspec.Struct, frozen=True):
    """What a file must be."""

    size_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What a segment's folder holds."""

    format: int
    name: str
    model: str
    dimensions: int
    rows: int
    highest_seq: int
    probes: ivf.Probes
    files: dict[str, FileFacts]


class SnapshotFolder:
    """The segments of one index; one process at a time writes here."""

    def __init__(self, path: Path, model: str, dimensions: int) -> None:
        self.path = path
        self._model = model
        self._dimensions = dimensions
        self._lock = threading.Lock()
        # The number of the newest segment; counted up under the lock.
        self._last = 0

    def open(self) -> list[Segment]:
        """The segments that verify, oldest first; leftovers and damaged ones are removed."""
        self.path.mkdir(parents=True, exist_ok=True)
        names = []
        for entry in sorted(self.path.iterdir()):
            if matched := NAME.fullmatch(entry.name):
                self._last = max(self._last, int(matched[1]))
                names.append(entry.name)
            elif entry.name.endswith(UNFINISHED):
                log.info("An unfinished segment was removed.", action="open", name=entry.name)
                _remove(entry)
        with ThreadPoolExecutor(min(VERIFIERS_MAX, os.cpu_count() or 1)) as verifiers:
            opened = list(verifiers.map(self._open_or_drop, names))
        return [segment for segment in opened if segment is not None]

    def draft(self) -> Draft:
        """A new segment to be written."""
        with self._lock:
            self._last += 1
            name = f"segment-{self._last:08d}"
        return Draft(self.path, name, self._model, self._dimensions)

    def is_whole(self, name: str) -> bool:
        """Whether a segment's files are still as they were written."""
        path = self.path / name
        try:
            manifest = _read_manifest(path / MANIFEST)
            return all(_facts(path / part) == facts for part, facts in manifest.files.items())
        except (OSError, Damaged, msgspec.MsgspecError):
            return False

    def remove(self, name: str) -> None:
        """Remove a segment's files; searches that still use them are not disturbed."""
        # Renamed first, so that a crash half-way leaves a leftover and not a damaged segment.
        doomed = self.path / f"{name}.removed{UNFINISHED}"
        try:
            (self.path / name).rename(doomed)
        except OSError:
            doomed = self.path / name
        _remove(doomed)

    def remove_others(self, kept: set[str]) -> None:
        """Remove the segments that are of no use here."""
        for entry in list(self.path.iterdir()) if self.path.is_dir() else []:
            if NAME.fullmatch(entry.name) and entry.name not in kept:
                self.remove(entry.name)

    def _open_or_drop(self, name: str) -> Segment | None:
        try:
            return self._open(self.path / name)
        except Foreign as reason:
            log.info("A segment is of no use here.", action="open", name=name, reason=str(reason))
        # Whatever else may be wrong with the files of a segment, the answer is to do without it.
        except Exception as error:
            log.warning(
                "A damaged segment was dropped.", action="open", name=name, reason=repr(error)
            )
            self.remove(name)
        return None

    def _open(self, path: Path) -> Segment:
        manifest = _read_manifest(path / MANIFEST)
        if (manifest.format, manifest.model) != (FORMAT, self._model):
            raise Foreign(f"it is of {manifest.model}, format {manifest.format}")
        if manifest.dimensions != self._dimensions:
            raise Foreign(f"its vectors have {manifest.dimensions} dimensions")
        if manifest.name != path.name:
            raise Damaged(f"it is {manifest.name} by its manifest")
        with ThreadPoolExecutor(len(manifest.files)) as readers:
            found = readers.map(lambda name: _facts(path / name), manifest.files)
            for (name, facts), present in zip(manifest.files.items(), found, strict=True):
                if facts != present:
                    raise Damaged(f"{name} is not as it was written")
        rows = manifest.rows
        numbers = np.fromfile(path / NUMBERS, dtype=np.int64)
        if len(numbers) != 2 * rows or not rows:
            raise Damaged(f"{NUMBERS} has another length")
        index = None
        if INDEX in manifest.files:
            index = ivf.read(path / INDEX, manifest.probes, rows, self._dimensions)
        vectors = _mapped(path / VECTORS, rows, self._dimensions)
        return Segment(path.name, numbers[:rows], numbers[rows:], vectors, index)


class Draft:
    """A segment that is being written; nothing of it counts before it is finished."""

    def __init__(self, folder: Path, name: str, model: str, dimensions: int) -> None:
        self._folder, self._name, self._model = folder, name, model
        self._dimensions = dimensions
        self._path = folder / f"{name}{UNFINISHED}"
        self._path.mkdir(parents=True)
        self._file = (self._path / VECTORS).open("wb")
        self._digest = hashlib.sha256()
        self._rows = 0
        self._unsynced_bytes = 0

    def append(self, rows: Vectors) -> None:
        """Write the next rows."""
        block = np.ascontiguousarray(rows, dtype=np.float32)
        self._file.write(block.data)
        self._digest.update(block.data)
        self._rows += len(block)
        self._unsynced_bytes += block.nbytes
        if self._unsynced_bytes >= UNSYNCED_BYTES_MAX:
            _sync(self._file)
            self._unsynced_bytes = 0

    def vectors(self) -> Vectors:
        """All rows, mapped from the file; no more are appended."""
        _sync(self._file)
        self._file.close()
        return _mapped(self._path / VECTORS, self._rows, self._dimensions)

    def finish(self, nums: Numbers, seqs: Numbers, vectors: Vectors, index: Any) -> Segment:
        """Write what belongs to the vectors, and have the segment count."""
        files = {VECTORS: FileFacts(vectors.nbytes, self._digest.hexdigest())}
        with (self._path / NUMBERS).open("wb") as file:
            file.write(np.concatenate((nums, seqs)).data)
            _sync(file)
        files[NUMBERS] = _facts(self._path / NUMBERS)
        probes: ivf.Probes = ()
        if index is not None:
            index.save(self._path / INDEX)
            with (self._path / INDEX).open("rb+") as file:
                os.fsync(file.fileno())
            files[INDEX] = _facts(self._path / INDEX)
            # Read again, since a filled index has room to grow that would never be used.
            probes = index.probes
            del index
            index = ivf.read(self._path / INDEX, probes, len(nums), self._dimensions)
        failpoint("while_sealing")
        manifest = Manifest(
            format=FORMAT,
            name=self._name,
            model=self._model,
            dimensions=self._dimensions,
            rows=len(nums),
            highest_seq=int(seqs.max()),
            probes=probes,
            files=files,
        )
        body = msgspec.json.encode(manifest)
        with (self._path / MANIFEST).open("wb") as file:
            file.write(body + b"\n" + hashlib.sha256(body).hexdigest().encode())
            _sync(file)
        _sync_folder(self._path)
        self._path.rename(self._folder / self._name)
        _sync_folder(self._folder)
        return Segment(self._name, nums, seqs, vectors, index)

    def abandon(self) -> None:
        """Remove what was written so far."""
        self._file.close()
        _remove(self._path)


def _read_manifest(path: Path) -> Manifest:
    body, _, digest = path.read_bytes().rpartition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise Damaged("the manifest is not as it was written")
    return msgspec.json.decode(body, type=Manifest)


def _mapped(path: Path, rows: int, dimensions: int) -> Vectors:
    return np.asarray(np.memmap(path, dtype=np.float32, mode="r", shape=(rows, dimensions)))


def _facts(path: Path) -> FileFacts:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return FileFacts(file.tell(), digest.hexdigest())


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a folder or a file, as far as that goes: what is left is tried again at start."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
