"""What is given to a command beside its options: text on standard input, and JSON."""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec

from recollect.cli.failures import USAGE, Failure

READ_BYTES = 65_536


def content_from(text: str) -> str:
    """The text itself; for `-`, standard input without the newline at its end."""
    if text != "-":
        return text
    try:
        return _standard_input().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise Failure(
            "invalid_argument",
            f"Standard input is not UTF-8 text: {error}.",
            "Convert it first.",
            exit_code=USAGE,
        ) from error


def _standard_input() -> bytes:
    # Bit by bit, because one long read would not notice Ctrl-C.
    parts = []
    while part := os.read(sys.stdin.fileno(), READ_BYTES):
        parts.append(part)
    return b"".join(parts)


def object_from(
    option: str, text: str | None, example: str = '{"source": "wiki"}'
) -> dict[str, Any] | None:
    """The JSON object given to an option."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Failure(
            "invalid_argument",
            f"{option} is not a JSON object: {error}.",
            f"Write it as {option} '{example}'.",
            exit_code=USAGE,
        ) from error
