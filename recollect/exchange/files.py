"""Files as lines: plain or gzip by their ending, `-` for the standard streams."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from recollect.exchange.problems import BadFile

STANDARD = "-"
LINE_BYTES_MAX = 128 * 1024 * 1024
"""A longer line is no record of ours; without a bound one would fill the memory."""


def is_gzip(path: str) -> bool:
    """Whether a file is packed, by its name."""
    return path.endswith(".gz")


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """A file to read bytes from, unpacked."""
    if path == STANDARD:
        yield sys.stdin.buffer
        return
    if not Path(path).is_file():
        raise BadFile(path, "there is no such file.")
    with cast("IO[bytes]", gzip.open(path, "rb")) if is_gzip(path) else open(path, "rb") as file:
        yield file


def lines_of(path: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, without keeping more than one."""
    with opened(path) as file:
        number = 0
        while True:
            try:
                line = file.readline(LINE_BYTES_MAX)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise BadFile(
                    path,
                    f"it cannot be unpacked: {error}.",
                    "It was cut or damaged; export again, or use another copy.",
                    line=number + 1,
                ) from error
            if not line:
                return
            number += 1
            if len(line) >= LINE_BYTES_MAX:
                raise BadFile(path, "this line is longer than any record.", line=number)
            yield number, line
