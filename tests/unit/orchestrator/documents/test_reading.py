"""Every kind of document is read; what cannot be read says why."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.documents.reading import Cut, cut
from recollect.protocol.errors import LimitExceeded, RecollectError, UnreadableDocument
from tests.unit.orchestrator.documents.samples import HTML, encrypted_pdf, pdf


def read(data: bytes | str, name: str, **settings: int) -> Cut:
    return cut(data, name, "auto", DocumentsSettings(**settings))  # type: ignore[arg-type]


def test_html_is_read_as_people_see_it() -> None:
    page = read(HTML.encode(), "page.html")
    assert (page.document_type, page.title) == ("html", "The Page")
    [chunk] = page.chunks
    assert chunk.text == "\n".join(
        [
            "# Top heading",
            "",
            "First & second paragraph, over two lines.",
            "",
            "- one",
            "- two",
            "",
            "```",
            "def f():",
            "    return 1",
            "",
            "# not a heading",
            "```",
            "",
            "name | age",
            "Anna | 31",
            "",
            "## Below",
            "",
            "# no heading either",
            "and a new line",
        ]
    )
    assert chunk.heading == "Top heading"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("grüße 月".encode(), "a.txt"),
        ("grüße 月".encode("utf-8-sig"), "a.txt"),
        ("grüße 月".encode("utf-16"), "a.txt"),
        ("grüße 月".encode("utf-32"), "a.txt"),
        ('<meta charset="gb2312"><p>grüße 月'.encode("gb18030"), "a.html"),
        ('<?xml version="1.0" encoding="utf-8"?><html>grüße 月'.encode(), "a.html"),
        ('<meta charset="zlib"><p>grüße 月'.encode(), "a.html"),
    ],
)
def test_what_says_its_encoding_is_read(data: bytes, name: str) -> None:
    assert read(data, name).chunks[0].text == "grüße 月"


def test_a_page_in_an_old_encoding_is_read_as_browsers_do() -> None:
    page = '<meta http-equiv="content-type" content="text/html; charset=iso-8859-1"><p>“grüße”'
    assert read(page.encode("cp1252"), "a.html").chunks[0].text == "“grüße”"


def test_lines_end_alike_wherever_they_were_written() -> None:
    assert read(b"one\r\ntwo\rthree\n", "a.txt").chunks[0].text == "one\ntwo\nthree"


def test_a_pdf_is_read_page_by_page() -> None:
    read_pdf = read(pdf("Apollo flies.", "", "Eagle lands.", title="Moon"), "a.pdf")
    assert (read_pdf.document_type, read_pdf.title) == ("pdf", "Moon")
    assert [(c.page, c.text) for c in read_pdf.chunks] == [
        (1, "Apollo flies."),
        (3, "Eagle lands."),
    ]
    # Its first bytes tell it, where its name does not.
    assert read(pdf("Apollo flies."), "download").document_type == "pdf"


def test_a_pdf_behind_an_empty_password_opens_and_one_behind_another_does_not() -> None:
    assert read(encrypted_pdf("Apollo flies.", ""), "a.pdf").chunks[0].text == "Apollo flies."
    with pytest.raises(UnreadableDocument, match="encrypted"):
        read(encrypted_pdf("Apollo flies.", "secret"), "a.pdf")


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"caf\xe9", "a.txt", "UTF-8"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a.txt", "UTF-8"),
        (b"ab\x00cd", "a.txt", "NUL"),
        (b"<html><script>only()</script></html>", "a.html", "no text"),
        (b"\xff\xfe\x00", "a.txt", "UTF-16"),
        (b"%PDF-1.7", "a.pdf", "broken"),
        (b"no pdf at all", "a.pdf", "broken"),
        (pdf("Apollo flies.")[:200], "a.pdf", "broken"),
        (pdf(""), "a.pdf", "images"),
    ],
)
def test_what_cannot_be_read_says_why_and_quotes_nothing(
    data: bytes, name: str, reason: str
) -> None:
    with pytest.raises(UnreadableDocument, match=reason) as caught:
        read(data, name)
    assert "Apollo" not in caught.value.message


@pytest.mark.parametrize("name", ["__init__.py", "a.md", "a.html", "a.txt", "unknown"])
@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_read_and_has_no_chunks(data: bytes, name: str) -> None:
    assert read(data, name).chunks == []


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(UnreadableDocument, match="empty"):
        read(" \n", "a.txt")


def test_a_pdf_with_too_much_text_is_refused_by_the_name_of_the_limit() -> None:
    data = pdf(*["Apollo flies to the moon. " * 100] * 10)
    with pytest.raises(LimitExceeded) as caught:
        read(data, "a.pdf", file_bytes_max=20_000)
    assert caught.value.details["limit"] == "documents.file_bytes_max"


@pytest.mark.parametrize("place", range(0, 900, 37))
def test_a_damaged_pdf_is_read_or_refused(place: int) -> None:
    data = bytearray(pdf("Apollo flies.", "Eagle lands."))
    data[place : place + 9] = b"<<(/[0 R\xff"
    try:
        assert read(bytes(data), "a.pdf").chunks
    except RecollectError as error:
        assert error.code == "unreadable_document"


@pytest.mark.parametrize(
    ("package", "name", "data"),
    [
        ("markdown_it", "a.md", b"# x"),
        ("selectolax", "a.html", b"<p>x"),
        ("pypdf", "a.pdf", pdf("x")),
    ],
)
def test_a_missing_package_says_which_extra_to_install(
    package: str, name: str, data: bytes
) -> None:
    script = (
        f"import sys; sys.modules['{package}'] = None; sys.modules['{package}.lexbor'] = None\n"
        "from recollect.config.sharing import DocumentsSettings\n"
        "from recollect.orchestrator.documents.reading import cut\n"
        "from recollect.protocol.errors import Unsupported\n"
        "try:\n"
        f"    cut({data!r}, {name!r}, 'auto', DocumentsSettings())\n"
        "except Unsupported as error:\n"
        "    print(error.message)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert "recollect[documents]" in ended.stdout, ended
