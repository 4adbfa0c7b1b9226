"""What of all memories is in a scope: listed where it is little, estimated where it may be much."""

from __future__ import annotations

import random
from typing import Any, NamedTuple, Protocol

import numpy as np

from recollect.orchestrator.cache.weighed import WeighedCache
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.search.vectors import Numbers, VectorIndex
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.journal import READ_LEDGER
from recollect.orchestrator.storage.listed import numbers

# A list leaves the database fastest as one value.
SELECT_NUMS = "SELECT string_agg(CAST(num AS TEXT), ',') FROM memories WHERE {condition}"
SELECT_SOME_NUMS = """
SELECT string_agg(CAST(num AS TEXT), ',')
FROM (SELECT num FROM memories WHERE {condition} LIMIT ?) AS listed
"""
SAMPLE = """
SELECT count(*), coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0)
FROM memories WHERE num IN ({marks})
"""
SAMPLE_NUMS = 256
WEAK_SHARE = 0.1
"""A scope that leaves at least this share of all is not listed: most of what is found fits it."""
HOME_NUMS_MAX = 20_000
"""A namespace of no more memories is ranked by how common words are within it."""
LISTS_KEPT_MAX = 1_024
LIST_NUMS_KEPT_MAX = 200_000
NUMS_KEPT_MAX = 4_000_000
"""In all lists together, eight bytes each; their conditions are counted as if they were numbers."""
CHANGES_MAX = 512
"""After more changes than these a list is made anew rather than added to."""
FEW_CHANGES = 64
"""To add these to a list takes no time to speak of."""
# What was changed since, as far as it fits now. The journal may have been trimmed meanwhile: then
# it has fewer entries than there were changes.
SELECT_CHANGED = """
SELECT (SELECT count(*) FROM journal WHERE seq > ?), string_agg(CAST(num AS TEXT), ',')
FROM memories WHERE id IN (SELECT subject FROM journal WHERE seq > ?) AND {condition}
"""
ESTIMATES_KEPT_MAX = 4_096
ESTIMATES_BYTES_MAX = 4_000_000
"""Of their conditions together: one that names a thousand ids has a hundred thousand bytes."""
PARAM_BYTES = 64
"""What a parameter takes beside its characters."""
NUM_BYTES = 8
SHARE_GROWTH_MAX = 1.1
"""An estimate holds until there are more memories than then by this much."""
# Reads move these without a change that is counted, so a list by them is never kept.
UNCOUNTED = ("access_count", "last_access_us", "fades_us")
# This one changes with its session, in one entry of the journal for all its memories.
CHANGED_TOGETHER = "session_id"

Hits = list[tuple[int, float]]
Key = tuple[Any, ...]


class Nearest(Protocol):
    """Finds by vector within scopes. Any thread may use it."""

    def find(
        self, session: Session, index: VectorIndex, vector: Vectors, k: int, scope: Scope
    ) -> Hits:
        """Numbers and similarities of the k nearest living memories of a scope, best first."""
        ...

    def home(self, session: Session, scope: Scope) -> Numbers | None:
        """The memories of the scope's namespace, in ascending order; None if they are many."""
        ...

    def few(self, session: Session, scope: Scope) -> Numbers | None:
        """What is in a scope that leaves little, in ascending order; None if it leaves much. Some
        that did fit may be among them."""
        ...

    def estimate(self, session: Session, condition: Condition) -> Estimate:
        """About how much of all memories fits a condition."""
        ...

    def at_hand(self, scope: Scope, seq: int) -> bool:
        """Whether what is in a scope is known already, but for a few of the changes up to a last
        one, so that finding the nearest is quick."""
        ...

    def ready(self, scope: Scope, seq: int) -> Ready | None:
        """What is in a scope that narrows, if it is known without a look into the storage, with
        all changes up to a last one; None if it is not."""
        ...


class Ready(NamedTuple):
    """What is in a scope, in ascending order."""

    nums: Numbers
    listed_seq: int
    """Of these, what was not changed since surely fits, if it has not expired."""


class Estimate(NamedTuple):
    """About how much of all memories a condition leaves."""

    share: float
    last: int
    """The number of the last change when that was estimated."""
    asked: int
    """How often it was asked for since."""
    weight: int
    """Of its condition, in bytes."""

    @property
    def number(self) -> float:
        """About how many that are, at the most."""
        return self.share * self.last


class KeptList(NamedTuple):
    """What was in a scope, in ascending order."""

    seq: int
    """The change up to which nothing that fits is missing."""
    nums: Numbers | None
    """None if they are too many to be listed."""
    listed_seq: int
    """When all was listed anew. What no longer fits since is still among them."""

    @property
    def size(self) -> int:
        return 1 if self.nums is None else 1 + len(self.nums)


class Scopes:
    """Looks into scopes. Any thread may use it."""

    def __init__(self, randomness: random.Random) -> None:
        self._randomness = randomness
        self._lists: WeighedCache[Key, KeptList] = WeighedCache(
            entries_max=LISTS_KEPT_MAX, weight_max=NUMS_KEPT_MAX
        )
        # Estimates by their condition. Only a shortcut: threads may overwrite each other's.
        self._estimates: WeighedCache[Key, Estimate] = WeighedCache(
            entries_max=ESTIMATES_KEPT_MAX, weight_max=ESTIMATES_BYTES_MAX
        )

    def home(self, session: Session, scope: Scope) -> Numbers | None:
        """The memories of the scope's namespace, in ascending order; None if they are many."""
        if scope.namespace is None:
            return None
        return self.listed(session, scope.namespace, HOME_NUMS_MAX)

    def few(self, session: Session, scope: Scope) -> Numbers | None:
        """What is in a scope that leaves little, in ascending order; None if it leaves much. Some
        that did fit may be among them."""
        if scope.narrow is None or self.estimate(session, scope.narrow).share >= WEAK_SHARE:
            return None
        return self.listed(session, scope.narrow)

    def estimate(self, session: Session, condition: Condition) -> Estimate:
        """About how much of all memories fits a condition."""
        [(last, _)] = session.execute(READ_LEDGER)
        key = (condition[0], *condition[1])
        kept = self._estimates.get(key)
        if kept is not None and kept.last <= last <= SHARE_GROWTH_MAX * kept.last:
            kept = kept._replace(asked=kept.asked + 1)
        else:
            share = self._sampled(session, condition, int(last))
            kept = Estimate(share, int(last), 1, _weight(condition))
        self._estimates.keep(key, kept, kept.weight)
        return kept

    def _sampled(self, session: Session, condition: Condition, last: int) -> float:
        count = min(SAMPLE_NUMS, last)
        if not count:
            return 0.0
        sample = [self._randomness.randint(1, last) for _ in range(count)]
        sql, params = condition
        marks = ", ".join("?" for _ in sample)
        statement = SAMPLE.format(condition=sql, marks=marks)
        [(seen, fitting)] = session.execute(statement, (*params, *sample))
        return float(fitting) / seen if seen else 0.0

    def is_listed(self, condition: Condition, seq: int, most: int | None = None) -> bool:
        """Whether the list of a condition is at hand, and little has changed since."""
        kept = self._lists.get((most, condition[0], *condition[1]))
        return (
            kept is not None
            and kept.nums is not None
            and seq <= min(kept.seq + FEW_CHANGES, kept.listed_seq + CHANGES_MAX)
        )

    def ready(self, scope: Scope, seq: int) -> Ready | None:
        """What is in a scope that narrows, if it is known without a look into the storage, with
        all changes up to a last one; None if it is not."""
        narrow = scope.narrow
        if narrow is None or CHANGED_TOGETHER in narrow[0]:
            return None
        kept = None
        if narrow == scope.namespace:
            kept = self._lists.get((HOME_NUMS_MAX, narrow[0], *narrow[1]))
        if kept is None or kept.nums is None:
            kept = self._lists.get((None, narrow[0], *narrow[1]))
        if kept is None or kept.nums is None or kept.seq < seq:
            return None
        return Ready(kept.nums, kept.listed_seq)

    def listed(
        self, session: Session, condition: Condition, most: int | None = None
    ) -> Numbers | None:
        """The numbers that fit a condition, in ascending order; None if there are too many.

        A few that did fit, and do not any more, may be among them.
        """
        sql, params = condition
        key = (most, sql, *params)
        [(seq, _)] = session.execute(READ_LEDGER)
        kept = self._lists.get(key)
        if kept is not None and kept.seq == seq:
            return kept.nums
        now = None
        if kept is not None and kept.seq < seq <= kept.listed_seq + CHANGES_MAX:
            now = _caught_up(session, condition, most, kept, int(seq))
        if now is None:
            now = KeptList(int(seq), _listed_anew(session, condition, most), int(seq))
        lasting = not any(column in sql for column in UNCOUNTED)
        newest = kept is None or kept.seq < seq
        if lasting and newest and now.size <= LIST_NUMS_KEPT_MAX:
            self._lists.keep(key, now, now.size + _weight(condition) // NUM_BYTES)
        return now.nums


def _weight(condition: Condition) -> int:
    """About how many bytes it takes to keep a condition."""
    sql, params = condition
    texts = (len(param) for param in params if isinstance(param, str))
    return len(sql) + PARAM_BYTES * len(params) + sum(texts)


def _listed_anew(session: Session, condition: Condition, most: int | None) -> Numbers | None:
    sql, params = condition
    if most is None:
        statement, bound = SELECT_NUMS.format(condition=sql), params
    else:
        statement, bound = SELECT_SOME_NUMS.format(condition=sql), [*params, most + 1]
    [(listed,)] = session.execute(statement, bound)
    return _lasting(np.sort(numbers(listed)), most)


def _caught_up(
    session: Session, condition: Condition, most: int | None, kept: KeptList, seq: int
) -> KeptList | None:
    """A list with what has come to fit since it was made; None if that cannot be told."""
    sql, params = condition
    if CHANGED_TOGETHER in sql:
        return None
    if kept.nums is None:
        return kept._replace(seq=seq)
    statement = SELECT_CHANGED.format(condition=sql)
    [(changes, listed)] = session.execute(statement, (kept.seq, kept.seq, *params))
    if changes < seq - kept.seq:
        return None
    nums: Numbers | None = kept.nums
    fresh = np.setdiff1d(numbers(listed), kept.nums)
    if len(fresh):
        nums = _lasting(np.union1d(kept.nums, fresh), most)
    return KeptList(seq, nums, kept.listed_seq)


def _lasting(nums: Numbers, most: int | None) -> Numbers | None:
    if most is not None and len(nums) > most:
        return None
    # The index knows a list again that surely stays as it is.
    nums.flags.writeable = False
    return nums
