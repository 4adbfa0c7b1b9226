"""What was made of a text as bytes that a cache keeps: its vector, then those of its passages.

Bytes, not an array: a row of a micro-batch would keep the whole batch alive, bytes cost a third
less overhead, and an array over bytes cannot be written to.
"""

from __future__ import annotations

import struct

import numpy as np

from recollect.orchestrator.embedding.interface import VECTOR_ITEM_BYTES, Pooled

FORM = 1
_heading = struct.Struct("<HHI")
"""The form of what follows, nothing, and the number of dimensions."""


def packed(made: Pooled) -> bytes:
    return _heading.pack(FORM, 0, len(made.vector)) + made.vector.tobytes() + made.passages


def unpacked(kept: bytes, dimensions: int) -> Pooled | None:
    """What was kept, unless it is no such thing or of another length."""
    end = _heading.size + VECTOR_ITEM_BYTES * dimensions
    if len(kept) < end or _heading.unpack_from(kept) != (FORM, 0, dimensions):
        return None
    vector = np.frombuffer(kept, np.float32, dimensions, _heading.size)
    passages = kept[end:]
    return None if len(passages) % dimensions else Pooled(vector, passages)
