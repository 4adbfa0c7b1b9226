"""What a process says at its end to the supervisor that started it."""

from __future__ import annotations

import sys

import msgspec

from recollect.cli.failures import Failure


def log_failure(process: str, failure: Failure) -> None:
    """A failure as an entry of the log, where the supervisor finds it."""
    entry = {
        "action": "fail",
        "code": failure.code,
        "event": failure.message,
        "advice": failure.advice,
        "process": process,
        "level": "error",
    }
    sys.stderr.write(msgspec.json.encode(entry).decode() + "\n")
    sys.stderr.flush()
