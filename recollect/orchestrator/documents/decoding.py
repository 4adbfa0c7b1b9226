"""From bytes to text: UTF-8, or what a byte order mark or an HTML page itself says."""

from __future__ import annotations

import codecs
import re

from recollect.protocol.errors import UnreadableDocument

# The longer marks first: that of UTF-32 begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What pages say they are, and what browsers therefore take them for.
WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
DECLARED_WITHIN_BYTES = 2048
_declared = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I
)
_newlines = re.compile("\r\n?")


def decoded(data: bytes, *, html: bool = False) -> str:
    """The text of some bytes."""
    encoding = "utf-8"
    for mark, marked in MARKS:
        if data.startswith(mark):
            data, encoding = data[len(mark) :], marked
            break
    else:
        if html and (found := _declared.search(data[:DECLARED_WITHIN_BYTES])):
            encoding = _text_encoding(found.group(1).decode("ascii", "replace"))
    try:
        return checked(data.decode(encoding))
    except UnicodeDecodeError as error:
        raise UnreadableDocument(
            f"It is not {encoding.upper()} text (byte {error.start:,} does not fit). Convert it to "
            "UTF-8; if it is no text at all, it cannot be indexed.",
            encoding=encoding,
        ) from None


def checked(text: str) -> str:
    """A text as it is cut: with plain newlines, and without what no text has."""
    if "\x00" in text:
        raise UnreadableDocument(
            "It has NUL characters, which text has not: it is of another kind than its name says."
        )
    return _newlines.sub("\n", text)


def _text_encoding(name: str) -> str:
    """A declared encoding, if it is one of text that Python knows."""
    try:
        known = codecs.lookup(name)
    except (LookupError, ValueError):
        return "utf-8"
    # Some codecs, such as zlib or idna, turn no text into bytes.
    is_text = getattr(known, "_is_text_encoding", True) and known.name not in ("idna", "punycode")
    return WIDER.get(known.name, known.name) if is_text else "utf-8"
