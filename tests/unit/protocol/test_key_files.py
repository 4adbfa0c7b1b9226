"""Key files: what is written is read again, and what is none says why without giving it away."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.protocol import key_files
from recollect.protocol.key_files import BadKeyFile, KeyFile

PUBLIC = "Yne@#w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
SECRET = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
SERVER = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def test_what_is_written_is_read_again_and_only_by_its_owner(tmp_path: Path) -> None:
    keys = KeyFile("alice", PUBLIC, SECRET, SERVER, "tcp://memory.example:7331")
    path = tmp_path / "alice.key"
    key_files.write_new(path, keys)
    assert key_files.read(path) == keys
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_key_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "alice.key"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        key_files.write_new(path, KeyFile("alice", PUBLIC, SECRET))
    assert path.read_text() == "precious"


def test_even_a_generous_umask_leaves_it_to_its_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        key_files.write_new(tmp_path / "alice.key", KeyFile("alice", PUBLIC, SECRET))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "alice.key").stat().st_mode) == 0o600


@given(*[st.text(alphabet=Z85, min_size=40, max_size=40)] * 3)
def test_any_key_survives_its_text(public: str, secret: str, server: str) -> None:
    keys = KeyFile("bob", public, secret, server)
    assert key_files.parse(keys.text()) == keys


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "name"),
        ("no colon at all", "colon"),
        (f"name: a\npublic_key: {PUBLIC}", "secret_key"),
        (f"name: a\npublic_key: {PUBLIC}\nsecret_key: short", "secret_key is not a key"),
        (f"name: a\npublic_key: {PUBLIC[:-1]}~\nsecret_key: {SECRET}", "public_key is not a key"),
        (f"name: a\npublic_key: {PUBLIC}\nsecret_key: {SECRET}\nserver_key: x", "server_key"),
    ],
)
def test_what_is_no_key_file_says_why(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bad.key"
    path.write_text(text)
    with pytest.raises(BadKeyFile, match=reason) as caught:
        key_files.read(path)
    assert "bad.key" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadKeyFile, match=r"absent\.key cannot be read.*recollect keys new"):
        key_files.read(tmp_path / "absent.key")
    (tmp_path / "bytes.key").write_bytes(b"\xff\xfe" + SECRET.encode())
    with pytest.raises(BadKeyFile, match=r"bytes\.key is not a key file"):
        key_files.read(tmp_path / "bytes.key")


def test_a_secret_is_never_shown_by_accident() -> None:
    assert SECRET not in repr(KeyFile("alice", PUBLIC, SECRET))
