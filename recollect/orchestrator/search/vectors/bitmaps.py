"""Sets of positions as packed bits, in the order that FAISS reads them.

Bitmaps are never changed in place: a search may be looking at the old one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

_ONES = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


def full(size: int) -> Bits:
    """Every position below size."""
    return np.packbits(np.ones(size, dtype=bool), bitorder="little")


def of(positions: Positions, size: int) -> Bits:
    """These positions, of a set that may hold those below size."""
    marks = np.zeros(size, dtype=bool)
    marks[positions] = True
    return np.packbits(marks, bitorder="little")


def without(bits: Bits, positions: Positions) -> Bits:
    """A copy in which these positions are left out."""
    changed = bits.copy()
    masks = np.left_shift(1, positions & 7).astype(np.uint8)
    np.bitwise_and.at(changed, positions >> 3, ~masks)
    return changed


def among(bits: Bits, positions: Positions) -> npt.NDArray[np.bool_]:
    """Which of the positions are in the set."""
    found: npt.NDArray[np.bool_] = (
        (bits[positions >> 3] >> (positions & 7).astype(np.uint8)) & 1
    ).astype(bool)
    return found


def positions_in(bits: Bits, size: int) -> Positions:
    """All positions of the set, in ascending order."""
    return np.flatnonzero(np.unpackbits(bits, count=size, bitorder="little"))


def size_of(bits: Bits) -> int:
    """How many positions are in the set."""
    return int(_ONES[bits].sum(dtype=np.int64))
