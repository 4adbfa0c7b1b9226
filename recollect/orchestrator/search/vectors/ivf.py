"""An inverted file of 8-bit codes: what a large segment is searched with.

How many lists a search visits depends on its depth, which is k divided by the share of vectors that
may be found: a filter that lets one vector in ten through makes the tenth neighbour out of the
hundredth. The table from depth to lists was measured when the index was built.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.vectors.bitmaps import Positions
from recollect.orchestrator.search.vectors.selection import Selection

Probes = tuple[tuple[int, int], ...]
"""(depth, lists to visit), both ascending."""

# The classes take arrays and keywords by additions in Python that their types do not see.
_faiss: Any = faiss
_pointer: Any = faiss.swig_ptr

# Of the 8-bit codes, these are compared fastest: 15 ns a vector of 384 dimensions, where those with
# a scale for each dimension took 39 ns and full vectors 46 ns.
CODES = _faiss.ScalarQuantizer.QT_8bit_direct_signed
CODE_MAX = 127

# Measured, for vectors of 384 dimensions; all that counts is how they compare with one another and
# with what a row costs outside of the index. A selector that is often right costs more for being
# hard to foresee.
CODE_NS = 15.0
SELECTOR_NS = 3.5
SELECTED_NS = 45.0

DEPTHS_KEPT_MAX = 1_000
# When so many times the usual number of lists hold too little, what is selected lies far away.
REACH = 2
HANDFUL = 8


class Ivf:
    """A built index over the positions of a segment; searched from any thread."""

    def __init__(self, index: Any, probes: Probes) -> None:
        self._index = index
        self.probes = probes
        self._depths = np.log([depth for depth, _ in probes])
        self._lists = np.log([lists for _, lists in probes])
        self._plain: dict[int, Any] = {}
        self._probes_for: dict[float, int] = {}
        self._quantizer: Any = faiss.downcast_index(index.quantizer)
        self._list_of = _list_of(index)
        self._sizes = np.bincount(self._list_of, minlength=index.nlist)

    @property
    def raw(self) -> Any:
        """The FAISS index itself, to be measured against."""
        return self._index

    def probes_for(self, depth: float) -> int:
        """How many lists to visit to find the `depth` nearest; between measurements by log-log."""
        known = self._probes_for.get(depth)
        if known is None:
            if len(self._probes_for) >= DEPTHS_KEPT_MAX:
                self._probes_for.clear()
            known = self._probes_for[depth] = self._interpolated(depth)
        return known

    def _interpolated(self, depth: float) -> int:
        lists = float(np.exp(np.interp(np.log(max(depth, 1.0)), self._depths, self._lists)))
        deepest = self.probes[-1]
        if depth > deepest[0]:
            lists = deepest[1] * depth / deepest[0]
        return max(1, min(int(np.ceil(lists - 1e-6)), int(self._index.nlist)))

    def cost_ns(self, k: float, selected: int) -> float:
        """About how long a search takes when so many of the positions may be found."""
        rows, lists = len(self._list_of), int(self._index.nlist)
        share = selected / rows
        visited = rows * self.probes_for(k / share) / lists
        return CODE_NS * lists + visited * (SELECTOR_NS + SELECTED_NS * share)

    def plain_cost_ns(self, k: int) -> float:
        """About how long a search takes when all may be found."""
        rows, lists = len(self._list_of), int(self._index.nlist)
        return CODE_NS * (lists + rows * self.probes_for(k) / lists)

    def search(self, query: Vectors, k: float, wanted: int, selection: Selection) -> Positions:
        """`wanted` selected positions, which exist, with nearly all of the k nearest among them."""
        query = coded_query(query)
        probes = self.probes_for(k * len(self._list_of) / selection.count)
        if selection.by_filter:
            lists = self._lists_to_visit(query, probes, wanted, selection)
            return self._search_lists(query, wanted, lists, selection)
        scores = np.empty(wanted, dtype=np.float32)
        found: Positions = np.empty(wanted, dtype=np.int64)
        # As the method `search` does, in a third of its time for a single query.
        self._index.search_c(
            1,
            _pointer(query),
            wanted,
            _pointer(scores),
            _pointer(found),
            self._parameters(probes, selection.selector),
        )
        # What was not found stands as -1 at the end.
        if found[-1] >= 0:
            return found
        return self._search_lists(query, wanted, np.arange(self._index.nlist), selection)

    def _lists_to_visit(
        self, query: Vectors, probes: int, wanted: int, selection: Selection
    ) -> Positions:
        """The nearest lists that hold as many selected positions as `probes` lists do on average.

        A filter has often to do with meaning: what it selects may all lie near the query, so that
        few lists are enough, or all far away, where one list is as good as another and none of
        them can be left out.
        """
        counts = selection.counts(self._list_of, self._index.nlist)
        share = selection.count / len(self._list_of)
        if 2 * probes < len(counts):
            nearest = self._quantizer.search(query, min(len(counts), REACH * probes))[1][0]
            seen = np.cumsum(counts[nearest])
            enough = max(wanted, selection.count * probes / len(counts))
            if seen[-1] >= enough and self._lies_near(nearest, seen, share):
                nearest = nearest[: int(np.searchsorted(seen, enough)) + 1]
                lists: Positions = nearest[counts[nearest] > 0]
                return lists
        return np.flatnonzero(counts)

    def _lies_near(self, nearest: Positions, seen: npt.NDArray[np.int64], share: float) -> bool:
        """Whether the very nearest lists hold a fair part of what is selected.

        As many of them are looked at as would hold a handful if the filter were a matter of chance.
        """
        expected = np.cumsum(self._sizes[nearest]) * share
        last = min(int(np.searchsorted(expected, HANDFUL)), len(nearest) - 1)
        return bool(seen[last] >= expected[last] / 4)

    def _search_lists(
        self, query: Vectors, wanted: int, lists: Positions, selection: Selection
    ) -> Positions:
        unused = np.zeros(len(lists), dtype=np.float32)
        scores = np.empty(wanted, dtype=np.float32)
        found: Positions = np.empty(wanted, dtype=np.int64)
        # The method in Python takes no parameters, hence the one below it.
        self._index.search_preassigned_c(
            1,
            _pointer(query),
            wanted,
            _pointer(lists),
            _pointer(unused),
            _pointer(scores),
            _pointer(found),
            False,
            self._parameters(len(lists), selection.selector),
        )
        return found if found[-1] >= 0 else found[found >= 0]

    def _parameters(self, probes: int, selector: Any) -> Any:
        if selector is not None:
            return _faiss.SearchParametersIVF(nprobe=probes, sel=selector)
        parameters = self._plain.get(probes)
        if parameters is None:
            parameters = self._plain[probes] = _faiss.SearchParametersIVF(nprobe=probes)
        return parameters

    def save(self, path: Path) -> None:
        """Write the index to a file; an OSError if that fails."""
        try:
            faiss.write_index(self._index, str(path))
        except RuntimeError as error:
            raise OSError(f"the index could not be written: {error}") from error


def read(path: Path, probes: Probes, rows: int, dimensions: int) -> Ivf:
    """The index from its file; a ValueError if it is not the one of this segment."""
    index: Any = faiss.read_index(str(path))
    if not isinstance(index, faiss.IndexIVF) or index.ntotal != rows or index.d != dimensions:
        raise ValueError("the file holds another index")
    return Ivf(index, probes)


def _list_of(index: Any) -> npt.NDArray[np.int16]:
    """The list in which each position is."""
    lists = index.invlists
    list_of = np.zeros(index.ntotal, dtype=np.int16)
    for number in range(index.nlist):
        if size := lists.list_size(number):
            list_of[_faiss.rev_swig_ptr(lists.get_ids(number), size)] = number
    return list_of


def coded_query(query: Vectors) -> Vectors:
    """One row, of whole numbers; each query has a scale of its own, which changes no order."""
    codes: Vectors = query.reshape(1, -1) * np.float32(scale_of(query))
    return np.rint(codes, out=codes)


def scale_of(sample: Vectors) -> float:
    """By how much to multiply, so that the largest value takes the whole of a signed byte."""
    return CODE_MAX / max(float(np.abs(sample).max()), 1e-6)


def coded(rows: Vectors, scale: float) -> Vectors:
    """The rows in whole numbers, as which they are stored and compared, a byte each."""
    codes: Vectors = np.clip(np.rint(rows * np.float32(scale)), -CODE_MAX, CODE_MAX)
    return codes
