"""Echoes: an agent that writes down what it was just served.

Agents that are told what they know tend to note it as something new, and a memory fills with
copies of itself. So it is kept in view which memories an agent was served lately, and a new memory
that only repeats one of them is not stored again. Only their ids are kept, and hashes; what the
memories say is compared when something is written. Where several orchestrators serve one store,
`shared_echoes` lets each know what the others served.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recollect.config.settings import TrustSettings
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.memories.rows import SELECT_BY_ID, CachedMemory, MemoryRow
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol.operations import GetMemory

AGENTS_MAX = 1_000
LIKELY_MAX = 8
"""Memories that say the same as one that is written, and are looked at more closely."""
TEXT_CHARS_MAX = 8_000
"""A longer text is an echo only if it is the same to the letter."""
LISTS = ("memories", "results", "related")
DETAIL = "an echo, not stored again"
PLAIN_TYPE = "general"
IS_CHUNK = "SELECT 1 FROM document_chunks WHERE num = ?"
QUICKEST = GetMemory.spec.name

# What says no more than that something is known already. Anything else before it may turn its
# meaning round.
_PREFACE = re.compile(
    r"(?:(?:please )?(?:note|remember|recall|reminder|memory|fyi|from memory|as (?:noted|stored|"
    r"recorded)|i (?:remember|recall)|according to (?:my )?memory|known(?: fact)?|fact))"
    r"(?: that|:| that:|,) ",
    re.I,
)
_INDENTED = re.compile(r"\n(?: {2}| ?\t)")
_STOPS = ".,;:!?…()\"'“”«»"
_QUOTES = {'"': '"', "'": "'", "“": "”", "«": "»", "`": "`"}

Agent = tuple[str, str]
Note = tuple[str, int, int | None]
"""A memory as it was served: its id, when that was, and the mark of its text if that is made."""
TextOf = Callable[[str], str | None]
"""The text of a memory by its id, if it is at hand."""


class View(deque[Note]):
    """What one agent was served and nobody asked for yet; and by their marks, what was before."""

    def __init__(self, kept_max: int) -> None:
        super().__init__(maxlen=kept_max)
        self._kept_max = kept_max
        self._known: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._by_mark: dict[int, list[str]] = {}

    def sort_in(self, text_of: TextOf | None, since_us: int) -> None:
        """Take over the new ones, and let go of what is too old or too much."""
        while self:
            memory_id, at_us, mark = self.popleft()
            if mark is None and text_of is not None and (text := text_of(memory_id)) is not None:
                mark = mark_of(text)
            if mark is not None:
                self._drop(memory_id)
                self._known[memory_id] = (at_us, mark)
                self._by_mark.setdefault(mark, []).append(memory_id)
        known = self._known
        while known and (len(known) > self._kept_max or next(iter(known.values()))[0] < since_us):
            self._drop(next(iter(known)))

    def _drop(self, memory_id: str) -> None:
        before = self._known.pop(memory_id, None)
        if before is not None:
            alike = self._by_mark[before[1]]
            alike.remove(memory_id)
            if not alike:
                del self._by_mark[before[1]]

    def alike(self, marks: set[int], since_us: int) -> list[str]:
        """Ids of what has one of these marks and was served since."""
        found = [memory_id for mark in marks for memory_id in self._by_mark.get(mark, ())]
        return [memory_id for memory_id in found if self._known[memory_id][0] >= since_us]


class Echoes:
    """What agents were served lately. Touched by the event loop's thread alone."""

    shared = False
    """Whether others serve agents too, so that `share` and `elsewhere` are worth a wait."""

    def __init__(self, settings: TrustSettings, text_of: TextOf | None) -> None:
        self._window_us = int(settings.echo_window_s * 1_000_000)
        self._kept_max = settings.echoes_kept_max
        self._text_of = text_of
        self._agents: OrderedDict[Agent, View] = OrderedDict()

    def served(self, call: Call, answer: Mapping[str, Any]) -> None:
        """Note what an answer shows to an agent that names itself."""
        agent = call.agent
        if agent is None:
            return
        memory = answer.get("memory")
        if memory is not None:
            served = self._agents.get((call.identity, agent))
            if served is None:
                served = self._new((call.identity, agent))
            # The quickest read stays so: its text will still be at hand when something is written.
            lazy = self._text_of is not None and call.operation == QUICKEST
            mark = None if lazy else mark_of(memory["content"])
            served.append((memory["id"], call.now_us, mark))
            return
        if shown := _listed_in(answer):
            self._served_many(call, agent, shown)

    def _served_many(self, call: Call, agent: str, memories: list[Any]) -> None:
        served = self._agents.get((call.identity, agent))
        if served is None:
            served = self._new((call.identity, agent))
        # Of more than are kept, the first ones: they were the best.
        served.extend(
            (memory["id"], call.now_us, mark_of(memory["content"]))
            for memory in reversed(memories[: self._kept_max])
            if "content" in memory
        )

    def _new(self, agent: Agent) -> View:
        served = self._agents[agent] = View(self._kept_max)
        if len(self._agents) > AGENTS_MAX:
            self._agents.popitem(last=False)
        return served

    def likely(self, call: Call) -> Likely | None:
        """What a new memory of the caller may be an echo of; None if there is nothing."""
        agent = (call.identity, call.agent or "")
        view = self._agents.get(agent)
        if view is None:
            return None
        self._agents.move_to_end(agent)
        since_us = call.now_us - self._window_us
        view.sort_in(self._text_of, since_us)
        return Likely(view, since_us)

    async def share(self, call: Call, answer: Mapping[str, Any]) -> None:
        """Have others know what an answer shows, or do without that in bounded time."""

    async def elsewhere(self, call: Call, drafts: Sequence[MemoryRow]) -> list[tuple[str, ...]]:
        """What each of some drafts may be an echo of, as far as others served it."""
        return [()] * len(drafts)

    async def forget(self) -> None:
        """Leave nothing with others that tells of a text."""


def shown_in(answer: Mapping[str, Any]) -> list[Any]:
    """The memories that an answer shows."""
    memory = answer.get("memory")
    return _listed_in(answer) if memory is None else [memory]


def _listed_in(answer: Mapping[str, Any]) -> list[Any]:
    for name in LISTS:
        found = answer.get(name)
        # Elsewhere the same name is that of a count.
        if isinstance(found, list):
            return [item.get("memory", item) for item in found]
    return _whole(answer.get("chunks"))


def _whole(chunks: Any) -> list[Any]:
    """The memories that a context quotes from their beginning to their end."""
    return [
        {"id": chunk["memory_id"], "content": chunk["text"]}
        for chunk in (chunks if isinstance(chunks, list) else ())
        if chunk["memory_id"] is not None and not chunk["truncated"]
    ]


def echoes_at_hand(settings: TrustSettings, cache: LocalCache[CachedMemory] | None) -> Echoes:
    """Those of this process, with the cache of what was read if there is one."""
    if cache is None:
        return Echoes(settings, None)

    def text_of(memory_id: str) -> str | None:
        cached = cache.peek(memory_id)
        return None if cached is None else cached.row.content

    return Echoes(settings, text_of)


class Likely:
    """What one agent was served, for a call of it that writes."""

    def __init__(self, view: View, since_us: int) -> None:
        self._view = view
        self._since_us = since_us

    def of(self, draft: MemoryRow) -> tuple[str, ...]:
        """Ids of those that a draft may be an echo of: not many, and mostly none."""
        if draft.key is not None:
            return ()
        marks = {mark_of(draft.content), mark_of(draft.content, plain=False)}
        return tuple(self._view.alike(marks, self._since_us)[:LIKELY_MAX])


def together(here: tuple[str, ...], elsewhere: tuple[str, ...]) -> tuple[str, ...]:
    """What a draft may be an echo of, whoever served it."""
    return tuple(dict.fromkeys((*here, *elsewhere)))[:LIKELY_MAX]


def known_already(
    call: Call, transaction: WriteTransaction, draft: MemoryRow, likely: tuple[str, ...]
) -> MemoryRow | None:
    """The memory that a draft only repeats, with an entry in the journal that it was recognised."""
    call.require(draft.namespace, "", "write")
    for memory_id in likely:
        found = transaction.execute(SELECT_BY_ID, (memory_id,))
        if found and repeats(draft, row := MemoryRow(*found[0]), call.now_us):
            # What a document says goes with the document; who notes it wants it to stay.
            if transaction.execute(IS_CHUNK, (row.num,)):
                continue
            row.seq = record(
                call,
                transaction,
                subject=row.id,
                namespace=row.namespace,
                version_before=row.version,
                version_after=row.version,
                operation=draft.operation,
                detail=DETAIL,
            )
            return row
    return None


def repeats(draft: MemoryRow, row: MemoryRow, now_us: int) -> bool:
    """Whether a draft says nothing that a memory does not say, in the same place."""
    return (
        row.present
        and row.alive(now_us)
        and draft.namespace == row.namespace
        and draft.memory_type in (PLAIN_TYPE, row.memory_type)
        and draft.value in (None, row.value)
        and draft.metadata in ("{}", row.metadata)
        and draft.tags in ("[]", row.tags)
        and draft.parent_id in (None, row.parent_id)
        and draft.source in (None, row.source)
        and (draft.valid_from_us == row.valid_from_us or _holds(draft, row, now_us))
        # What is to stay is not said by what will be gone, nor what still holds by what held.
        and draft.valid_to_us == row.valid_to_us
        and draft.expires_us == row.expires_us
        and _says_the_same(draft.content, row.content)
    )


def _holds(draft: MemoryRow, row: MemoryRow, now_us: int) -> bool:
    """Whether a draft that does not say since when it holds is true of a memory that does."""
    since_us = row.valid_from_us
    return draft.valid_from_us is None and since_us is not None and since_us <= now_us


def _says_the_same(new: str, known_text: str) -> bool:
    if max(len(new), len(known_text)) > TEXT_CHARS_MAX:
        return new == known_text
    return any(
        said(known_text) == said(new, plain=plain)
        and _exact(known_text) == _exact(new, plain=plain)
        for plain in (True, False)
    )


def _exact(text: str, *, plain: bool = True) -> list[str]:
    """What of a text does change what it says in another case or with other blanks: names, codes
    and options among its words, and all of it where its lines are indented."""
    text = text.strip() if plain else _without_preface(text.strip())
    if _INDENTED.search(text):
        return [text.rstrip(".!… ")]
    words = (word.strip(_STOPS) for word in text.split())
    return [word for word in words if not _is_prose(word)]


def _is_prose(word: str) -> bool:
    """Whether a word is one of a sentence, which may begin one or be emphasised."""
    letters = word.replace("-", "").replace("'", "").replace("\u2019", "")
    in_one_case = word.islower() or word.isupper() or letters == letters.capitalize()
    return not word or (letters.isalpha() and in_one_case and not word.startswith("-"))


def mark_of(text: str, *, plain: bool = True) -> int:
    """A number that two texts have in common if they say the same."""
    return hash(said_in_full(text, plain=plain))


def said_in_full(text: str, *, plain: bool = True) -> str:
    """What two texts have in common if they say the same, however long they are."""
    return said(text, plain=plain) if len(text) <= TEXT_CHARS_MAX else text


def said(text: str, *, plain: bool = True) -> str:
    """A text without what does not change what it says: blanks, case, the stop at its end; and,
    unless it is to be left `plain`, words before it that only say that it is known."""
    text = " ".join(text.split())
    if not plain:
        text = _without_preface(text)
    return text.casefold().rstrip(".!… ")


def _without_preface(text: str) -> str:
    if preface := _PREFACE.match(text):
        text = text[preface.end() :]
        if len(text) > 2 and _QUOTES.get(text[0]) == text.rstrip(".!")[-1:]:
            text = text.rstrip(".!")[1:-1]
    return text
