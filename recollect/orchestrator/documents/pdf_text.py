"""PDF as its pages of text."""

from __future__ import annotations

import io
from typing import Any

from recollect.protocol.errors import LimitExceeded, UnreadableDocument, Unsupported


def pdf_text(data: bytes, chars_max: int) -> tuple[list[str], str | None]:
    """The pages of a PDF, and its title if it has one."""
    try:
        from pypdf import PdfReader
    except ImportError:
        raise Unsupported(
            "PDF is read with the package pypdf: pip install 'recollect[documents]'.",
            extra="documents",
        ) from None
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _opened(reader):
            raise UnreadableDocument("The PDF is encrypted: save it without a password.")
        pages = _pages(reader, chars_max)
    except (UnreadableDocument, LimitExceeded):
        raise
    except Exception as error:
        # A broken file can fail in any way, and what the library says of it may quote it.
        raise UnreadableDocument(
            f"The PDF is broken ({type(error).__name__}): save it anew."
        ) from None
    if not any(page.strip() for page in pages):
        raise UnreadableDocument(
            "The PDF has no text: its pages are images. Run a text recognition over it first."
        )
    return pages, _title(reader)


def _opened(reader: Any) -> bool:
    """Whether it opens without a password, as one does that is only kept from being changed."""
    try:
        return bool(reader.decrypt(""))
    except Exception:
        return False


def _pages(reader: Any, chars_max: int) -> list[str]:
    pages: list[str] = []
    chars = 0
    for page in reader.pages:
        text = _clean(page.extract_text())
        chars += len(text)
        if chars > chars_max:
            raise LimitExceeded(
                f"The PDF has more than {chars_max:,} characters of text; the limit is "
                "documents.file_bytes_max. Divide it, or raise the limit.",
                limit="documents.file_bytes_max",
                maximum=chars_max,
            )
        pages.append(text)
    return pages


def _clean(text: str) -> str:
    # Fonts can map to halves of characters and to NUL, which no text has.
    whole = text.encode("utf-8", "replace").decode().replace("\x00", " ")
    return whole.replace("\r\n", "\n").replace("\r", "\n")


def _title(reader: Any) -> str | None:
    try:
        title = reader.metadata.title if reader.metadata else None
    except Exception:
        return None
    return (" ".join(_clean(title).split()) or None) if isinstance(title, str) else None
