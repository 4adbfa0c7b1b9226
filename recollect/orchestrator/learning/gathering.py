"""What a lesson is made from: the executions of a group, and of the pattern that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.learning import patterns
from recollect.orchestrator.learning.clustering import mean_of, most_typical
from recollect.orchestrator.learning.contrast import Contrast, Outcome, contrast
from recollect.orchestrator.learning.terms import words_of
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.search.similar import Question, Similar
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.collection_names import PATTERNS

MEMBERS_MAX = 1_000
"""Executions behind one pattern; of more, the newest."""
SAME_SIMILARITY = 0.9
"""Nearness from which a pattern is for the same tasks as a group that it shares nothing with."""
MARKS_MAX = 500
SUCCESSES = "SELECT num, success FROM executions WHERE num IN ({marks})"
# Long texts are cut where they are read: what stands out is said early, or often.
TEXTS = """
SELECT e.num, m.id, substr(e.task_description, 1, 2000), substr(e.summary, 1, 4000), e.success,
    CASE WHEN length(e.error_patterns) <= 20000 THEN e.error_patterns ELSE '[]' END, e.duration_ms
FROM executions e JOIN memories m ON m.num = e.num WHERE e.num IN ({marks})
ORDER BY e.num
"""


class Lived(msgspec.Struct, frozen=True):
    """An execution, as far as it is learned from."""

    num: int
    id: str
    description: str
    outcome: Outcome

    @property
    def undescribed(self) -> bool:
        """Whether the description is only how the summary begins."""
        return self.outcome.summary.lstrip().startswith(self.description)


class Material(msgspec.Struct, frozen=True, eq=False):
    """All that one lesson is made from."""

    task_type: str
    members: list[int]
    successes: int
    lived: list[Lived]
    """The newest of them, the oldest first."""
    vectors: Mapping[int, Vectors]
    near_num: int | None
    """A pattern that is for the same tasks."""

    def trigger(self) -> str:
        """What the tasks are, in the words of the most typical one."""
        known = [one for one in self.lived if one.num in self.vectors]
        place = most_typical([self.vectors[one.num] for one in known])
        return known[place].description

    def compared(self) -> Contrast:
        """What sets those that went well apart."""
        # Where nobody said what was to be done, the description is what was done.
        said = (one.description for one in self.lived if not one.undescribed)
        words = frozenset[str]().union(*map(words_of, said))
        return contrast([one.outcome for one in self.lived], words)


class Gathering:
    """Reads what lessons are made from."""

    def __init__(self, store: MemoryStore, similar: Similar) -> None:
        self._store = store
        self._similar = similar

    def gather(
        self,
        call: Call,
        session: Session,
        namespace: str,
        task_type: str,
        group: Mapping[int, Vectors],
        meaning: Meaning,
        texts_max: int,
    ) -> Material:
        """A group of like executions, with those that its pattern was learned from before.

        Of the newest, so many, the words are compared; the others are counted.
        """
        nums = sorted(group)
        pattern = overlapping(session, namespace, task_type, nums, call.now_us)
        if pattern is None:
            pattern = self._near(call, session, namespace, task_type, group, meaning)
        members = set(nums)
        if pattern is not None:
            before = patterns.evidence_of(session, pattern, call.now_us, MEMBERS_MAX)
            members.update(num for num, _ in before)
        newest = sorted(members)[-MEMBERS_MAX:]
        told = newest[-texts_max:]
        return Material(
            task_type,
            newest,
            _successes(session, newest),
            _lived(session, told),
            {**self._store.vectors.of(session, meaning, told), **group},
            pattern,
        )

    def _near(
        self,
        call: Call,
        session: Session,
        namespace: str,
        task_type: str,
        group: Mapping[int, Vectors],
        meaning: Meaning,
    ) -> int | None:
        near = self._similar.find(
            call,
            session,
            Question(meaning, mean_of(list(group.values()))),
            PATTERNS,
            1,
            namespace=namespace,
            threshold=SAME_SIMILARITY,
            only=(
                "namespace = ? AND EXISTS (SELECT 1 FROM patterns p WHERE p.num = memories.num "
                "AND p.task_type = ?)",
                [namespace, task_type],
            ),
        )
        return near[0][0].num if near else None


def overlapping(
    session: Session, namespace: str, task_type: str, nums: Sequence[int], now_us: int
) -> int | None:
    """The living pattern that was learned from most of these executions, at least from half of
    them or with half of its own."""
    shared: dict[int, int] = {}
    for start in range(0, len(nums), MARKS_MAX):
        part = nums[start : start + MARKS_MAX]
        sql = patterns.LEARNED_FROM.format(marks=", ".join("?" for _ in part))
        for num, count in session.execute(sql, (*part, namespace, task_type, now_us)):
            shared[num] = shared.get(num, 0) + count
    for num, count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        [(behind,)] = session.execute(patterns.EVIDENCE_COUNT, (num,))
        if 2 * count >= min(behind, len(nums)):
            return num
    return None


def _successes(session: Session, nums: Sequence[int]) -> int:
    count = 0
    for start in range(0, len(nums), MARKS_MAX):
        part = nums[start : start + MARKS_MAX]
        found = session.execute(SUCCESSES.format(marks=", ".join("?" for _ in part)), part)
        count += sum(success for _, success in found)
    return count


def _lived(session: Session, nums: Sequence[int]) -> list[Lived]:
    found = session.execute(TEXTS.format(marks=", ".join("?" for _ in nums)), nums)
    return [
        Lived(
            num,
            id,
            description,
            Outcome(bool(success), summary, tuple(decode_json(errors)), duration_ms),
        )
        for num, id, description, summary, success, errors, duration_ms in found
    ]
