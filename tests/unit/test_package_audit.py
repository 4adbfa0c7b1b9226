"""What `make audit` makes of what pip-audit says; pip-audit itself is a stand-in here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / ".ci" / "audit.py"
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
FLAWED = {
    "name": "flawed",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}],
}
SKIPPED = {"name": "unheard-of", "skip_reason": "not found"}


def audited(folder: Path, said: str) -> tuple[int, str]:
    """The exit code, and what was printed."""
    (folder / "pip_audit.py").write_text(f"print({said!r})")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "some.lock"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        ([SOUND, SKIPPED], 0, "1 packages looked up at pypi, 1 unknown there"),
        ([SOUND, FLAWED], 1, "flawed 2.0: PYSEC-1, mended in ['2.1']"),
        ([SKIPPED], 0, "*** some.lock WAS NOT AUDITED"),
    ],
)
def test_what_is_vulnerable_fails_and_what_was_not_asked_is_loud(
    told: list[Any], code: int, words: str, tmp_path: Path
) -> None:
    ended, said = audited(tmp_path, json.dumps({"dependencies": told}))
    assert (ended, words in said) == (code, True), said


def test_an_audit_that_breaks_off_was_none(tmp_path: Path) -> None:
    ended, said = audited(tmp_path, "no connection")
    assert ended == 0 and "WAS NOT AUDITED" in said
