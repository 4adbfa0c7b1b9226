"""The ranking of hybrid recall: pure functions from a query and its candidates to an order.

read_query   what the query asks: words, meaning, whose, when
rank         candidates by score, each score with its named parts
collapse     near-duplicates into one
diversify    variety by maximal marginal relevance
embedded_text, passages    what of a memory is embedded, when it is written
forget_texts               what is remembered of texts to be quicker
"""

from recollect.orchestrator.search.ranking import selection, texts
from recollect.orchestrator.search.ranking.candidates import Candidate, Ranked
from recollect.orchestrator.search.ranking.dates import Span, read_dates
from recollect.orchestrator.search.ranking.queries import Intent, read_query
from recollect.orchestrator.search.ranking.scoring import rank
from recollect.orchestrator.search.ranking.selection import collapse, diversify
from recollect.orchestrator.search.ranking.texts import Traits, embedded_text, passages, traits
from recollect.orchestrator.search.ranking.weights import Weights


def forget_texts() -> None:
    """Forget what was remembered of the texts of memories."""
    selection.forget()
    texts.forget()


__all__ = [
    "Candidate",
    "Intent",
    "Ranked",
    "Span",
    "Traits",
    "Weights",
    "collapse",
    "diversify",
    "embedded_text",
    "forget_texts",
    "passages",
    "rank",
    "read_dates",
    "read_query",
    "traits",
]
