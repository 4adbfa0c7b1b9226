"""Reading happens in processes of its own, which may take too long or break."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.documents.readers import READERS_MAX, Readers
from recollect.protocol.errors import LimitExceeded, ShuttingDown, UnreadableDocument
from tests.unit.orchestrator.documents.samples import pdf

# So deeply nested that its tree takes any parser far longer than the bound.
ENDLESS = b"<div>" * 400_000


@pytest.fixture
def readers() -> Iterator[Readers]:
    readers = Readers(DocumentsSettings(read_s_max=2.0, chunks_max=50, chunk_chars=200))
    yield readers
    readers.close()


def children() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children()
        if any("documents.reading_process" in part for part in child.cmdline())
    ]


def test_files_and_texts_are_read_by_few_processes(readers: Readers) -> None:
    async def run() -> list[str]:
        tasks = [
            readers.cut(b"# Title\n\nwords", "a.md", "auto"),
            readers.cut("words alone", "text:1", "auto"),
            readers.cut(pdf("Apollo flies."), "a.pdf", "auto"),
            *(readers.cut(f"text {n}".encode(), "a.txt", "auto") for n in range(10)),
        ]
        return [(await task).document_type for task in tasks]

    assert asyncio.run(run()) == ["markdown", "text", "pdf", *["text"] * 10]
    assert 1 <= len(children()) <= READERS_MAX


def test_the_error_of_a_document_keeps_its_type(readers: Readers) -> None:
    with pytest.raises(UnreadableDocument, match="UTF-8"):
        asyncio.run(readers.cut(b"\xff", "a.txt", "auto"))
    with pytest.raises(LimitExceeded) as caught:
        asyncio.run(readers.cut(b"word " * 10_000, "a.txt", "auto"))
    assert caught.value.details["limit"] == "documents.chunks_max"


def test_what_takes_too_long_is_given_up_and_the_next_is_read(readers: Readers) -> None:
    with pytest.raises(UnreadableDocument) as caught:
        asyncio.run(readers.cut(ENDLESS, "a.html", "auto"))
    assert caught.value.details["limit"] == "documents.read_s_max"
    assert asyncio.run(readers.cut(b"words", "a.txt", "auto")).chunks[0].text == "words"


def test_a_reader_that_breaks_costs_one_document(readers: Readers) -> None:
    async def run() -> None:
        reading = asyncio.ensure_future(readers.cut(ENDLESS, "a.html", "auto"))
        while not (started := children()):
            await asyncio.sleep(0.01)
        os.kill(started[0].pid, signal.SIGKILL)
        with pytest.raises(UnreadableDocument, match="brought its reader down"):
            await reading
        assert (await readers.cut(b"words", "a.txt", "auto")).chunks[0].text == "words"

    asyncio.run(run())


def test_closing_ends_the_processes_and_what_they_read(readers: Readers) -> None:
    async def run() -> None:
        reading = asyncio.ensure_future(readers.cut(ENDLESS, "a.html", "auto"))
        while not children():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(readers.close)
        with pytest.raises(ShuttingDown):
            await reading

    asyncio.run(run())
    assert children() == []
