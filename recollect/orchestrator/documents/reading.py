"""From the bytes of a document to its chunks, by what kind it is."""

from __future__ import annotations

import msgspec

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.documents.chunking import Chunk, Text, chunks_of
from recollect.orchestrator.documents.decoding import checked, decoded
from recollect.orchestrator.documents.html_text import html_text
from recollect.orchestrator.documents.kinds import PDF_SIGN, kind_of_name, kind_of_text
from recollect.orchestrator.documents.markdown_chunks import outline_of
from recollect.orchestrator.documents.pdf_text import pdf_text
from recollect.protocol.errors import InvalidArgument, UnreadableDocument

AUTO = "auto"
TITLE_CHARS_MAX = 512


class Cut(msgspec.Struct, frozen=True):
    """A document that was read: what it is, what it calls itself, and its chunks."""

    document_type: str
    title: str | None
    chunks: list[Chunk]


def cut(content: bytes | str, name: str, document_type: str, settings: DocumentsSettings) -> Cut:
    """Read a file or a text, and cut it; of kind `auto`, it is what its name or content tells."""
    kind = (kind_of_name(name) or AUTO) if document_type == AUTO else document_type
    if isinstance(content, bytes):
        text = _of_bytes(content, kind, settings)
    else:
        if document_type == "pdf":
            raise InvalidArgument(
                "A PDF is read from its file: give its path, or the text that it holds.",
                field="document_type",
            )
        if not content.strip():
            raise UnreadableDocument("It is empty: there is no text to remember.")
        text = _of_text(checked(content), AUTO if kind == "pdf" else kind)
    title = text.title[:TITLE_CHARS_MAX] if text.title else None
    chunks = chunks_of(text, settings.chunk_chars, settings.chunks_max)
    return Cut(text.document_type, title, chunks)


def _of_bytes(data: bytes, kind: str, settings: DocumentsSettings) -> Text:
    if kind == "pdf" or (kind == AUTO and data.startswith(PDF_SIGN)):
        pages, title = pdf_text(data, settings.file_bytes_max)
        return Text("pdf", pages, title=title)
    return _of_text(decoded(data, html=kind in (AUTO, "html")), kind)


def _of_text(text: str, kind: str) -> Text:
    if not text.strip():
        # An empty file, such as many a package has, is nothing to complain of.
        return Text("text" if kind == AUTO else kind, [])
    if kind == AUTO:
        kind = kind_of_text(text)
    if kind == "html":
        shown, outline = html_text(text)
        if not shown.strip():
            raise UnreadableDocument("The page shows no text.")
        return Text(kind, [shown], outline, outline.title)
    if kind == "markdown":
        outline = outline_of(text.split("\n"))
        return Text(kind, [text], outline, outline.title)
    return Text(kind, [text])
