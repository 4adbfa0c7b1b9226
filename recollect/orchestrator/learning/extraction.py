"""Learning from executions: which are looked at, and what becomes of them.

Two or more of like tasks make a lesson. What is looked at is bounded: all of a namespace up to
`learning.examined_max`, the newest first; or, when one is stored, its nearest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ParamSpec, TypeVar

import msgspec
import numpy as np

from recollect.config.agents import LearningSettings
from recollect.orchestrator.calls import Call
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.learning import executions
from recollect.orchestrator.learning.clustering import groups_of
from recollect.orchestrator.learning.gathering import Gathering, Material
from recollect.orchestrator.learning.lessons import Lesson, Lessons, learn
from recollect.orchestrator.learning.wording import Learned
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.search.similar import Similar
from recollect.orchestrator.storage.interface import Session, Storage

MEMBERS_MIN = 2
LESSONS_MAX = 100
"""Of one extraction."""
TEXTS_MAX = 200
TEXTS_MAX_STORING = 50
"""Executions of one lesson whose words are compared; fewer where somebody waits to store one."""

P = ParamSpec("P")
T = TypeVar("T")
Reword = Callable[[Call, Learned], Awaitable[Learned]]


class Extracted(msgspec.Struct, frozen=True):
    """What was learned, and from how many executions."""

    lessons: list[Lesson]
    examined: int


class Extraction:
    """Reads in threads of the storage, compares in one of its own, writes nothing."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        similar: Similar,
        lessons: Lessons,
        settings: LearningSettings,
    ) -> None:
        self._storage = storage
        self._store = store
        self._gathering = Gathering(store, similar)
        self._lessons = lessons
        self._settings = settings
        # One comparison at a time: of many at once none is faster, and all that is answered
        # meanwhile waits for the threads of each.
        self._comparing = asyncio.Semaphore(1)

    async def around(self, call: Call, namespace: str, task_type: str, num: int) -> Extracted:
        """What an execution that was just stored teaches, with those that are like it."""
        meaning = self._store.meanings.current
        most = self._settings.examined_max

        def look(session: Session) -> dict[int, Vectors]:
            nums = executions.newest(session, namespace, call.now_us, most, task_type)
            return self._store.vectors.of(session, meaning, [num for num, _ in nums])

        known = await self._storage.read(look)
        # One without a vector yet is found by a later extraction.
        near = await self._compare(self._near, known, num) if num in known else {}
        groups = [group for group in await self._groups(near) if num in group]
        of_type = [(task_type, group) for group in groups]
        lessons = await self._learn(call, namespace, of_type, meaning, TEXTS_MAX_STORING)
        return Extracted(lessons, len(known))

    def _near(self, known: dict[int, Vectors], num: int) -> dict[int, Vectors]:
        """Those nearest to one of them, itself among them; of equally near ones the newest."""
        nums = [num, *sorted(known.keys() - {num}, reverse=True)]
        likeness = np.stack([known[one] for one in nums]) @ known[num]
        likeness[0] = np.inf
        nearest = np.argsort(-likeness, kind="stable")[: self._settings.neighbours_max]
        return {nums[at]: known[nums[at]] for at in nearest}

    async def _compare(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._comparing:
            return await asyncio.to_thread(function, *args, **kwargs)

    async def through(
        self,
        call: Call,
        namespace: str,
        chosen: Callable[[Session], Sequence[tuple[int, str]]],
        reword: Reword | None,
    ) -> Extracted:
        """What some executions of a namespace teach; `chosen` gives their numbers and types."""
        meaning = self._store.meanings.current

        def look(session: Session) -> dict[str, dict[int, Vectors]]:
            types = dict(chosen(session))
            found: dict[str, dict[int, Vectors]] = {}
            for num, vector in self._store.vectors.of(session, meaning, list(types)).items():
                found.setdefault(types[num], {})[num] = vector
            return found

        by_type = await self._storage.read(look)
        groups = [
            (task_type, group)
            for task_type, vectors in sorted(by_type.items())
            for group in await self._groups(vectors)
        ]
        # Where there is more to learn than one call may, that of which there is most comes first.
        groups.sort(key=lambda item: -len(item[1]))
        most = groups[:LESSONS_MAX]
        lessons = await self._learn(call, namespace, most, meaning, TEXTS_MAX, reword)
        return Extracted(lessons, sum(map(len, by_type.values())))

    async def _groups(self, vectors: dict[int, Vectors]) -> list[dict[int, Vectors]]:
        """Executions of like tasks, of at least so many that they teach something."""
        if len(vectors) < MEMBERS_MIN:
            return []
        nums = sorted(vectors)
        stacked = np.stack([vectors[num] for num in nums])
        nearness = self._settings.cluster_similarity
        groups = await self._compare(groups_of, stacked, nearness)
        return [
            {nums[place]: vectors[nums[place]] for place in group}
            for group in groups
            if len(group) >= MEMBERS_MIN
        ]

    async def _learn(
        self,
        call: Call,
        namespace: str,
        groups: Sequence[tuple[str, dict[int, Vectors]]],
        meaning: Meaning,
        texts_max: int,
        reword: Reword | None = None,
    ) -> list[Lesson]:
        lessons: list[Lesson] = []
        for task_type, group in groups:

            def gather(
                session: Session, task_type: str = task_type, group: dict[int, Vectors] = group
            ) -> Material:
                return self._gathering.gather(
                    call, session, namespace, task_type, group, meaning, texts_max
                )

            material = await self._storage.read(gather)
            columns, learned = await self._compare(learn, material)
            if reword is not None:
                learned = await reword(call, learned)
            lessons.append(await self._lessons.draft(call, namespace, material, columns, learned))
        return lessons
