"""Nothing outside of the roots is ever read, whatever path or link is given."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path

import pytest

from recollect.orchestrator.documents.patterns import Pattern
from recollect.orchestrator.documents.places import Roots, read_file
from recollect.orchestrator.documents.walking import Walk
from recollect.protocol.errors import (
    InvalidArgument,
    LimitExceeded,
    NotFound,
    PathRefused,
    RecollectError,
    UnreadableDocument,
)

SECRET = "not to be read"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, beside a folder that is none."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "good.md").write_text("good words")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(SECRET)
    (tmp_path / "root-beside").mkdir()
    (tmp_path / "root-beside" / "secret.md").write_text(SECRET)
    return root


def read(root: Path, path: str | Path, bytes_max: int = 1000) -> bytes:
    return read_file(Roots([str(root)]).place(str(path), "path"), bytes_max).data


def test_a_file_in_a_root_is_read_by_any_of_its_spellings(root: Path, tmp_path: Path) -> None:
    good = root / "sub" / "good.md"
    assert read(root, good) == b"good words"
    assert read(root, f"{root}//sub/./good.md") == b"good words"
    (root / "inner.md").symlink_to("sub/good.md")
    (root / "inner").symlink_to("sub")
    for spelled in (root / "inner.md", root / "inner" / "good.md"):
        place = Roots([str(root)]).place(str(spelled), "path")
        assert place.source == str(good)
        assert read(root, spelled) == b"good words"
    # A root that is itself a link, and one that is given by it.
    (tmp_path / "linked").symlink_to(root)
    linked = tmp_path / "linked" / "sub" / "good.md"
    assert read(tmp_path / "linked", linked) == b"good words"
    assert read(tmp_path / "linked", good) == b"good words"
    assert read(Path("/"), good) == b"good words"


def hostile(root: Path) -> dict[str, str]:
    """Paths that must not be read, by what is wrong with them."""
    beside = root.parent
    (root / "file-link.md").symlink_to(beside / "outside" / "secret.md")
    (root / "folder-link").symlink_to(beside / "outside")
    (root / "up-link").symlink_to("..")
    (root / "far.md").symlink_to("sub/../../outside/secret.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "chain.md").symlink_to("file-link.md")
    os.mkfifo(root / "pipe.md")
    device = root / "device.md"
    device.symlink_to("/dev/zero")
    return {
        "outside": f"{beside}/outside/secret.md",
        "begins alike": f"{beside}-beside/secret.md",
        "beside": f"{beside}/root-beside/secret.md",
        "dots": f"{root}/../outside/secret.md",
        "dots that lead back": f"{root}/../root/sub/good.md",
        "dots within": f"{root}/sub/../sub/good.md",
        "link to a file": f"{root}/file-link.md",
        "link through a folder": f"{root}/folder-link/secret.md",
        "link upward": f"{root}/up-link/outside/secret.md",
        "link with dots": f"{root}/far.md",
        "link to a link": f"{root}/chain.md",
        "link to itself": f"{root}/loop.md",
        "link to a device": str(device),
        "pipe": f"{root}/pipe.md",
        "folder": f"{root}/sub",
        "root": str(root),
        "file as a folder": f"{root}/sub/good.md/more",
        "relative": "sub/good.md",
        "home": "~/secret.md",
        "empty": "",
        "NUL": f"{root}/sub/good.md\x00.txt",
        "long": f"{root}/{'x' * 5000}",
        "proc": "/proc/self/environ",
        "passwords": "/etc/passwd",
        "device": "/dev/zero",
        "own descriptor": "/dev/fd/0",
    }


def test_hostile_paths_are_refused(root: Path) -> None:
    for what, path in hostile(root).items():
        with pytest.raises(RecollectError) as caught:
            read(root, path)
        assert caught.value.code in ("path_refused", "not_found"), what
        assert SECRET not in caught.value.message
    with socket.socket(socket.AF_UNIX) as listening:
        # Bound from inside, since such a path may not be long.
        before = os.getcwd()
        os.chdir(root)
        try:
            listening.bind("sock.md")
        finally:
            os.chdir(before)
        with pytest.raises(PathRefused):
            read(root, root / "sock.md")


def test_devices_are_refused_even_in_a_root() -> None:
    for path in ("/dev/zero", "/dev/null"):
        with pytest.raises(PathRefused):
            read(Path("/dev"), path)


def test_without_roots_nothing_is_read(root: Path) -> None:
    with pytest.raises(PathRefused, match="none are set"):
        Roots([]).place(str(root / "sub" / "good.md"), "path")


def test_what_is_absent_or_outside_looks_alike_outside_and_is_told_inside(root: Path) -> None:
    def refusal(path: Path) -> str:
        with pytest.raises(PathRefused) as caught:
            read(root, path)
        return caught.value.message.replace(str(path), "it")

    outside = root.parent / "outside"
    assert refusal(outside / "secret.md") == refusal(outside / "absent.md")
    with pytest.raises(NotFound):
        read(root, root / "absent.md")


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_link_put_in_place_after_the_check_is_not_followed(root: Path, swapped: str) -> None:
    place = Roots([str(root)]).place(str(root / "sub" / "good.md"), "path")
    outside = root.parent / "outside"
    (outside / "good.md").write_text(SECRET)
    if swapped == "file":
        (root / "sub" / "good.md").unlink()
        (root / "sub" / "good.md").symlink_to(outside / "good.md")
    else:
        (root / "sub").rename(root / "was")
        (root / "sub").symlink_to(outside)
    with pytest.raises(PathRefused):
        read_file(place, 1000)


def test_a_file_that_is_exchanged_all_the_time_never_leads_out(root: Path) -> None:
    target = root / "sub" / "good.md"
    secret = root.parent / "outside" / "secret.md"
    place = Roots([str(root)]).place(str(target), "path")
    stop = threading.Event()

    def exchange() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            new = root / f"new-{number}"
            if number % 2:
                new.symlink_to(secret)
            else:
                new.write_text("good words")
            new.replace(target)

    thread = threading.Thread(target=exchange)
    thread.start()
    outcomes: set[bytes | str] = set()
    try:
        for _ in range(2000):
            try:
                outcomes.add(read_file(place, 1000).data)
            except RecollectError as error:
                outcomes.add(error.code)
    finally:
        stop.set()
        thread.join()
    assert outcomes <= {b"good words", b"", "path_refused", "not_found"}
    assert outcomes & {b"good words"} and outcomes & {"path_refused"}


def test_a_file_that_is_too_large_is_refused_by_the_name_of_the_limit(root: Path) -> None:
    path = root / "large.md"
    path.write_bytes(b"x" * 1001)
    with pytest.raises(LimitExceeded) as caught:
        read(root, path)
    assert caught.value.details["limit"] == "documents.file_bytes_max"
    path.write_bytes(b"x" * 1000)
    assert len(read(root, path)) == 1000
    # Its size says nothing: only reading tells.
    with pytest.raises(LimitExceeded):
        read(Path("/proc/self"), "/proc/self/maps", 100)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_the_system_keeps_back_is_told(root: Path) -> None:
    path = root / "sub" / "good.md"
    path.chmod(0)
    with pytest.raises(UnreadableDocument, match="Permission"):
        read(root, path)


def walked(root: Path, pattern: str | None = None, files_max: int = 100) -> Walk:
    top = Roots([str(root)]).place(str(root), "root")
    return Walk(top, None if pattern is None else Pattern(pattern), files_max).go()


def names(walk: Walk) -> list[str]:
    return ["/".join(file.place.parts) for file in walk.files]


def test_a_walk_meets_plain_documents_and_follows_nothing(root: Path) -> None:
    hostile(root)
    (root / ".git").mkdir()
    (root / ".git" / "note.md").write_text("x")
    (root / ".hidden.md").write_text("x")
    (root / "picture.png").write_bytes(b"x")
    (root / "a.txt").write_text("x")
    walk = walked(root)
    assert names(walk) == ["a.txt", "sub/good.md"]
    assert walk.missed(["sub", "gone.md"])
    assert not walk.missed(["sub", "good.md"])
    # Of what it would not have taken up, it cannot say that it is gone.
    for kept in ([".git", "note.md"], [".hidden.md"], ["picture.png"]):
        assert not walk.missed(kept)
    assert names(walked(root, "*.txt")) == ["a.txt"]
    assert not walked(root, "*.txt").missed(["sub", "gone.md"])


def test_a_name_that_is_not_utf_8_is_spelled_out(root: Path) -> None:
    odd = os.fsencode(root) + b"/caf\xe9.md"
    Path(os.fsdecode(odd)).write_text("x")
    [file, _] = walked(root).files
    assert file.place.source == f"{root}/caf\\xe9.md"
    assert read_file(file.place, 10).data == b"x"


def test_of_a_folder_that_cannot_be_looked_into_nothing_counts_as_gone(root: Path) -> None:
    deep = root
    for _ in range(70):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "far.md").write_text("x")
    walk = walked(root, files_max=1000)
    assert names(walk) == ["sub/good.md"]
    [unseen] = walk.unseen
    assert not walk.missed([*unseen.parts, "far.md"])
    assert walk.missed(["d", "far.md"])


def test_a_folder_with_too_many_files_is_refused_by_the_name_of_the_limit(root: Path) -> None:
    for number in range(5):
        (root / f"{number}.png").write_bytes(b"x")
    assert names(walked(root, files_max=7)) == ["sub/good.md"]
    with pytest.raises(LimitExceeded) as caught:
        walked(root, files_max=6)
    assert caught.value.details["limit"] == "documents.files_max"


def test_a_file_is_no_folder_and_a_folder_no_file_and_both_are_told(root: Path) -> None:
    roots = Roots([str(root)])
    with pytest.raises(PathRefused, match="is a file, not a folder: index_document"):
        Walk(roots.place(str(root / "sub" / "good.md"), "root"), None, 100).go()
    for folder in (root, root / "sub"):
        with pytest.raises(PathRefused, match="is a folder, not a file: sync_documents"):
            read_file(roots.place(str(folder), "path"), 1000)
    with pytest.raises(NotFound):
        Walk(roots.place(str(root / "absent"), "root"), None, 10).go()


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("*.md", "x/a.md", False),
        ("docs/**", "docs/x/a.md", True),
        ("docs/**", "other/docs/a.md", False),
        ("**/docs/**/*.md", "docs/a.md", True),
        ("**/docs/**/*.md", "x/docs/y/z/a.md", True),
        ("x/?.md", "x/a.md", True),
        ("x/?.md", "x/ab.md", False),
        ("[ab].md", "a.md", True),
        ("/a.md", "a.md", True),
        ("**", "x/y", True),
        ("A.md", "a.md", False),
        ("x/../a.md", "a.md", False),
    ],
)
def test_patterns(pattern: str, path: str, fits: bool) -> None:
    assert Pattern(pattern).fits(path.split("/")) is fits


def test_a_pattern_is_bounded_and_quick() -> None:
    for bad in ("", "/", "x" * 1025, "a\x00"):
        with pytest.raises(InvalidArgument):
            Pattern(bad)
    assert not Pattern("/".join(["**"] * 300 + ["z"])).fits(["a"] * 500)
    assert not Pattern("*a" * 100 + "b").fits(["a" * 255])


def test_nothing_that_is_opened_stays_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    hostile_paths = hostile(root)
    for path in [*hostile_paths.values(), str(root / "sub" / "good.md")]:
        with contextlib.suppress(RecollectError):
            read(root, path)
    walked(root)
    assert len(os.listdir("/proc/self/fd")) == before
