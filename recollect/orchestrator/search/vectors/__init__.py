"""Search by meaning: the nearest of many vectors, exactly scored, under any filter."""

from recollect.orchestrator.search.vectors.index import VectorIndex
from recollect.orchestrator.search.vectors.scoring import Numbers

__all__ = ["Numbers", "VectorIndex"]
