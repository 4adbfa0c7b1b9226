"""Whether a storage was refused something because of what lies in it, or only for a moment."""

from __future__ import annotations

from recollect.protocol.errors import RecollectError, StorageFailed


def damaged(message: str, reason: str) -> StorageFailed:
    """What whoever asks for something that cannot be read is told."""
    return StorageFailed(message, reason=reason, damaged=True)


def is_damage(error: RecollectError) -> bool:
    """Whether that is what somebody was told."""
    return bool(error.details.get("damaged"))
