"""The items of a JSON list, one after the other, whatever the length of the list.

Exports of conversations are one list in one file, often of hundreds of megabytes. It is never in
memory as a whole: only the item that is being read.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from recollect.exchange.files import opened
from recollect.exchange.problems import BadFile

CHUNK_CHARS = 1 << 20
ITEM_CHARS_MAX = 256 * 1024 * 1024
_decoder = json.JSONDecoder()


@contextmanager
def opened_member(path: str, member: str) -> Iterator[IO[bytes]]:
    """A file, or the file of some name in a zip."""
    if not path.endswith(".zip"):
        with opened(path) as file:
            yield file
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == member]
            if not names:
                raise BadFile(path, f"there is no {member} in it.")
            with archive.open(min(names, key=len)) as file:
                yield file
    except zipfile.BadZipFile as error:
        raise BadFile(path, f"it is no zip file ({error}).") from None
    except FileNotFoundError:
        raise BadFile(path, "there is no such file.") from None


def items_in(path: str, member: str, expected: str) -> Iterator[tuple[int, Any]]:
    """The items of the list in a file, with their places from 1."""
    with opened_member(path, member) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig")
        try:
            yield from _items(path, text, expected)
        except UnicodeDecodeError as error:
            raise BadFile(path, f"it is no UTF-8 text ({error}).", expected) from None


def _items(path: str, text: IO[str], expected: str) -> Iterator[tuple[int, Any]]:
    buffer = _Buffer(text)
    if buffer.next_char() != "[":
        raise BadFile(path, "it is no JSON list.", expected)
    buffer.skip()
    place = 0
    while True:
        char = buffer.next_char()
        if char == "]":
            return
        if char == "," and place:
            buffer.skip()
        elif not char or place:
            raise BadFile(path, f"the list ends, or breaks off, after item {place:,}.", expected)
        place += 1
        try:
            yield place, buffer.item()
        except ValueError as error:
            raise BadFile(
                path, f"item {place:,} of the list is no JSON ({error}).", expected
            ) from None


class _Buffer:
    """Text of which as much is at hand as the next item needs."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text
        self._held = ""
        self._at = 0

    def next_char(self) -> str:
        """The next character that is no white space; nothing at the end."""
        while True:
            while self._at < len(self._held):
                if not self._held[self._at].isspace():
                    return self._held[self._at]
                self._at += 1
            if not self._more(CHUNK_CHARS):
                return ""

    def skip(self) -> None:
        self._at += 1

    def item(self) -> Any:
        self.next_char()
        wanted = CHUNK_CHARS
        while True:
            try:
                value, end = _decoder.raw_decode(self._held, self._at)
                # A number may go on behind what is at hand.
                if end < len(self._held) or not self._more(CHUNK_CHARS):
                    self._at = end
                    return value
            except ValueError:
                # Twice as much each time, so that a long item is not begun too often.
                if len(self._held) - self._at > ITEM_CHARS_MAX or not self._more(wanted):
                    raise
                wanted = min(2 * wanted, ITEM_CHARS_MAX)

    def _more(self, chars: int) -> bool:
        added = self._text.read(chars)
        self._held = self._held[self._at :] + added
        self._at = 0
        return bool(added)
