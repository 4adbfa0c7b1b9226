"""Documents are cut along headings, code blocks and definitions; edits elsewhere move nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.documents.chunking import Chunk
from recollect.orchestrator.documents.kinds import kind_of_name, kind_of_text
from recollect.orchestrator.documents.reading import cut
from recollect.protocol.errors import LimitExceeded

SIZE = 400


def chunks(text: str, name: str, size: int = SIZE, chunks_max: int = 10_000) -> list[Chunk]:
    settings = DocumentsSettings(chunk_chars=size, chunks_max=chunks_max)
    return cut(text, name, "auto", settings).chunks


def sentences(count: int, about: str) -> str:
    return "\n\n".join(
        f"Sentence {n} tells something about {about} and {n * 7}." for n in range(count)
    )


def test_a_short_document_is_one_chunk() -> None:
    [chunk] = chunks("# Title\n\nSome words.\n\n## Part\n\nMore words.\n", "a.md")
    assert (chunk.line, chunk.heading, chunk.above) == (1, "Title", "")
    assert chunk.content == "# Title\n\nSome words.\n\n## Part\n\nMore words."


def test_chunks_stand_under_their_headings() -> None:
    install, use = sentences(12, "Linux"), sentences(12, "it")
    text = f"# Guide\n\nIntro.\n\n## Install\n\n{install}\n\n## Use\n\n{use}\n"
    found = chunks(text, "a.md")
    assert len(found) > 4
    for chunk in found:
        about = "Guide > Use" if " it and " in chunk.text else "Guide > Install"
        if "Intro" not in chunk.text:
            assert chunk.heading == about
        # What is remembered says what it is about, whether the heading stands in it or above it.
        assert about.split(" > ")[-1] in chunk.content or "Intro" in chunk.text
        assert len(chunk.text) <= 2 * SIZE
        assert text.split("\n")[chunk.line - 1] == chunk.text.split("\n")[0]


def test_a_heading_alone_goes_with_what_comes_below_it() -> None:
    text = f"# Guide\n\n## Install\n\n### Linux\n\n{sentences(12, 'Linux')}\n"
    first, *others = chunks(text, "a.md")
    assert first.text.startswith("# Guide\n\n## Install\n\n### Linux\n\nSentence 0")
    assert all(chunk.above == "Guide > Install > Linux" for chunk in others)


@pytest.mark.parametrize("name", ["a.md", "a.html"])
def test_a_code_block_is_kept_whole_with_its_blank_lines(name: str) -> None:
    code = "\n\n".join(f"step_{n}(value)" for n in range(20))
    code = f"# not a heading\n{code}"
    before, after = sentences(6, "code"), sentences(6, "more")
    if name == "a.md":
        text = f"# Code\n\n{before}\n\n```python\n{code}\n```\n\n{after}\n"
    else:
        text = f"<h1>Code</h1><p>{before}</p><pre>{code}</pre><p>{after}</p>"
    found = chunks(text, name)
    assert sum(code in chunk.text for chunk in found) == 1
    assert {chunk.heading for chunk in found} == {"Code"}


def test_a_definition_is_kept_whole_and_goes_with_its_comment() -> None:
    functions = [
        f"# What number {n} is for.\n@cached\ndef function_{n}(value):\n"
        f"    first = value + {n}\n\n    second = first * {n}\n    return second\n"
        for n in range(12)
    ]
    found = chunks("import os\n\n\n" + "\n\n".join(functions), "tool.py")
    assert len(found) > 2 and found[0].text.startswith("import os\n\n\n# What number 0")
    for function in functions:
        assert sum(function.strip() in chunk.text for chunk in found) == 1


def test_a_line_longer_than_a_chunk_is_cut_between_words() -> None:
    text = " ".join(f"word{n}" for n in range(1000))
    found = chunks(text, "a.txt")
    assert all(0 < len(chunk.text) <= SIZE for chunk in found)
    assert " ".join(chunk.text for chunk in found).split() == text.split()
    blank = "begin" + " " * 5000 + "end"
    assert [chunk.text.strip() for chunk in chunks(blank, "a.txt")] == ["begin", "end"]


def test_blank_lines_before_a_program_are_no_part_of_it() -> None:
    [chunk] = chunks("\n\n\nimport os\n", "a.py")
    assert (chunk.text, chunk.line) == ("import os", 4)


def test_front_matter_gives_the_title_and_is_no_heading() -> None:
    text = "---\ntitle: 'The real title'\nlayout: page\n---\n\n# Heading\n\nWords.\n"
    read = cut(text, "a.md", "auto", DocumentsSettings())
    assert read.title == "The real title"
    assert [chunk.heading for chunk in read.chunks] == [""]
    assert "layout: page" in read.chunks[0].text


def test_one_chunk_too_many_is_refused_by_the_name_of_the_limit() -> None:
    text = sentences(100, "much")
    count = len(chunks(text, "a.txt"))
    assert len(chunks(text, "a.txt", chunks_max=count)) == count
    with pytest.raises(LimitExceeded) as caught:
        chunks(text, "a.txt", chunks_max=count - 1)
    assert caught.value.details["limit"] == "documents.chunks_max"


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.py"])
def test_an_edit_in_one_place_leaves_the_chunks_elsewhere_as_they_were(name: str) -> None:
    parts = [f"## Part {n}\n\n{sentences(15, f'part {n}')}" for n in range(30)]
    if name == "a.py":
        parts = [
            part.replace("## Part ", "# Part ").replace("Sentence", "x = 'S'") for part in parts
        ]
    before = {chunk.hash for chunk in chunks("# Top\n\n" + "\n\n".join(parts), name)}
    parts[3] = parts[3].replace("Sentence 7", "An edited and rather longer sentence 7")
    parts[3] = parts[3].replace("x = 'S' 7", "an_edited_and_longer_name = 'S' 7")
    parts.insert(8, "## New part\n\nIt has come in between, and says little.")
    after = chunks("# Top\n\n" + "\n\n".join(parts), name)
    new = [chunk for chunk in after if chunk.hash not in before]
    # Only around the two edits.
    assert 0 < len(new) <= 16 < len(after) // 4


WORDS = st.text("abcXYZ019_-#`>*|.:é月\t \n", min_size=1, max_size=120)
LINES = st.sampled_from(
    [
        "# One",
        "## Two",
        "###### Six",
        "Title\n=====",
        "```",
        "~~~",
        "- item",
        "> said",
        "    code",
        "",
    ]
)
DOCUMENTS = st.lists(st.one_of(LINES, WORDS), min_size=1, max_size=40).map("\n".join)


@settings(max_examples=300, deadline=None)
@given(
    text=DOCUMENTS,
    name=st.sampled_from(["a.md", "a.txt", "a.py", "a.unknown"]),
    size=st.sampled_from([200, 400, 2000]),
)
def test_no_word_is_lost_or_said_twice(text: str, name: str, size: int) -> None:
    if not text.strip():
        return
    found = chunks(text, name, size)
    together = "".join("".join(chunk.text.split()) for chunk in found)
    assert together == "".join(text.split())
    assert all(chunk.text.strip() for chunk in found)
    lines = [chunk.line for chunk in found]
    assert lines == sorted(lines) and lines[0] >= 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("README.md", "markdown"),
        ("/a/b.MARKDOWN", "markdown"),
        ("notes", None),
        ("README", "text"),
        ("Makefile", "code"),
        ("a.tar.gz", None),
        (".bashrc", None),
        ("page.HTM", "html"),
        ("a.pdf", "pdf"),
        ("x.rs", "code"),
        ("dir.py/data", None),
    ],
)
def test_a_name_tells_what_it_is(name: str, kind: str | None) -> None:
    assert kind_of_name(name) == kind


def test_a_text_tells_what_it_is() -> None:
    assert kind_of_text("<!-- c --><!DOCTYPE html><p>x") == "html"
    assert kind_of_text("Words\n\n## Heading\n") == "markdown"
    assert kind_of_text("plain <b>words</b>, 1 # 2") == "text"
