"""How much each part of a score weighs."""

from __future__ import annotations

import msgspec


class Weights(msgspec.Struct, frozen=True):
    """The weight of every part of a recall's score.

    Relevance is `lexical` plus `semantic`, each scaled to 0..1 over the candidates; every other
    weight is to be read against those two. A weight of 0 switches its part off.
    """

    # Words in common (BM25), the best candidate at 1.
    lexical: float = 1.0
    # Nearness in meaning (cosine), the best candidate at 1.
    semantic: float = 1.0
    # The query names somebody, and this memory is by them.
    author: float = 0.8
    # The query names somebody, and this memory of somebody else speaks about them.
    mention: float = 0.3
    # The query asks when, and the text holds an expression of time.
    when: float = 0.4
    # The query names a date or a period, and the memory's moment lies in it or near it.
    period: float = 0.6
    # Taken off a text that only asks, in proportion to how much of it are questions: what asks the
    # same as the query is near it in every way, and answers nothing.
    question: float = 0.6
    # Names, numbers and quotations make a text more likely to be what is asked for.
    specifics: float = 0.25
    # Relevance of the better neighbour one turn away in the session; half of it where both turns
    # are by the same author.
    turn_next: float = 0.4
    # The same of the turns two away.
    turn_second: float = 0.1
    # Relevance of the turn before, where that turn asks something: this one is the reply.
    reply: float = 0.2
    # Relevance of the session's best turns.
    session: float = 0.3
    # Being the newest of those that are about the thing (with 0.6 of the best relevance or more);
    # the oldest gets nothing. Breaks ties, and lets a corrected fact stand before what it corrects.
    recency: float = 0.1
    # The same where the query asks for the latest, or for the first, which turns it round.
    recency_asked: float = 1.0
    # Importance, 0..1, as it is stored.
    importance: float = 0.1
    # Strength, 0..1: what has not been used for long has faded.
    strength: float = 0.1

    # Context credit is damped by min(1, context_words / words of the text): a long text has enough
    # words of its own, and would otherwise soak up the credit of every turn beside it.
    context_words: int = 80
    # How fast `period` fades with the distance from the period.
    period_fade_days: float = 7.0
