"""Which rows of a segment a search may find, in the forms in which that is asked.

Each form is made when it is first wanted, and kept: a selection that comes again is ready.
"""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from recollect.orchestrator.search.vectors import bitmaps
from recollect.orchestrator.search.vectors.bitmaps import Bits, Positions

# The class takes an array by an addition in Python that its type does not see.
_faiss: Any = faiss


class Selection:
    """What of a segment may be found."""

    def __init__(
        self, rows: int, count: int, *, positions: Positions | None = None, bits: Bits | None = None
    ) -> None:
        self.count = count
        self.by_filter = positions is not None
        """Whether it is what a filter leaves, and not just what lives."""
        self._rows, self._positions, self._bits = rows, positions, bits
        self._selector: Any = None
        self._counts: npt.NDArray[np.int64] | None = None

    @property
    def positions(self) -> Positions:
        """Where it is, in ascending order."""
        if self._positions is None:
            if self._bits is None:
                self._positions = np.arange(self._rows, dtype=np.int64)
            else:
                self._positions = bitmaps.positions_in(self._bits, self._rows)
        return self._positions

    @property
    def selector(self) -> Any:
        """The same for FAISS; None when it is everything."""
        if self._selector is None and self.count < self._rows:
            if self._bits is None:
                self._bits = bitmaps.of(self.positions, self._rows)
            self._selector = _faiss.IDSelectorBitmap(self._bits)
        return self._selector

    def counts(self, list_of: npt.NDArray[np.int16], lists: int) -> npt.NDArray[np.int64]:
        """How much of it is in each list of an index, given the list of each row."""
        if self._counts is None:
            self._counts = np.bincount(list_of[self.positions], minlength=lists)
        return self._counts
