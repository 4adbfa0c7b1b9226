"""Moments as everybody writes them here."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at_s: float) -> str:
    """Seconds since 1970 as ISO 8601 text in UTC."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
