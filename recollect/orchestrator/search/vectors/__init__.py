"""Search by meaning: the nearest of many vectors, exactly scored, under any filter."""

from recollect.orchestrator.search.vectors.index import FaissIndex
from recollect.orchestrator.search.vectors.interface import Held, Numbers, VectorIndex

__all__ = ["FaissIndex", "Held", "Numbers", "VectorIndex"]
