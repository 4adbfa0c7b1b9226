"""Sessions and memories by key beside a raw echo and the bare SQLite work, on 100,000 memories.

`python -m benchmarks.sharing` fills a service, copies its database by a backup, and measures each
operation beside an echo of the same bytes plus the same statements on that copy.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.load import ignore, latencies_us
from benchmarks.raw import EchoClient, echo_server, raw_answer, raw_change
from benchmarks.service import CONTENT, folder, serving, store
from benchmarks.table import Row, at_most, medians, p50, show
from recollect import MemoryClient
from recollect.orchestrator.memories.keys import HOLDER
from recollect.orchestrator.memories.rows import COLUMNS, PRESENT
from recollect.orchestrator.services.listing import OLD_VERSIONS
from recollect.orchestrator.serving import idempotency
from recollect.orchestrator.sessions import rows
from recollect.orchestrator.sessions.rows import SessionRow
from recollect.orchestrator.sessions.state import COUNT_KEYS, SET_KEY
from recollect.orchestrator.storage import journal
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.inserting import insert_sql
from recollect.orchestrator.storage.sqlite.session import SqliteSession

MEMORIES = 100_000
ROUNDS = 3
CALLS = 500
FACTOR = 3.0
SESSIONS = 50
SESSIONS_WITHIN_MS = 1_000.0
PLACE = ("user:anna:settings", "theme")
NAMESPACE = "project:bench:hundred"
NAMESPACE_QUERY = f"""
SELECT {COLUMNS} FROM memories WHERE namespace = ? AND {PRESENT} ORDER BY num LIMIT 100
"""
EVENT = {"role": "user", "text": "Which canary was red on Thursday, and who was on call then?"}

Call = Callable[[], object]


class RawCopy:
    """The database of the service as it was, with nothing but SQLite before it."""

    def __init__(self, path: Path) -> None:
        self._session = SqliteSession(path, page_cache_mb=64, readonly=False)
        [(seq, _)] = self._session.execute(journal.READ_LEDGER)
        self._seq = int(seq)
        self._positions = itertools.count(1)
        self._session_id = self.create_session()

    def read(self, sql: str, params: Sequence[Any]) -> list[Any]:
        return self._session.execute(sql, params)

    def create_session(self) -> str:
        """One durable transaction with the rows of a new session."""
        now_us = time.time_ns() // 1000
        row = SessionRow(
            id=f"raw-{self._seq + 1:012x}",
            user_id="anna",
            app="default",
            namespace="user:anna",
            session_type="conversation",
            metadata="{}",
            status="created",
            version=1,
            events=0,
            created_us=now_us,
            updated_us=now_us,
            created_by="local",
        )
        with self._written("create_session"):
            self._session.execute(insert_sql(rows.INSERT, 1), msgspec.structs.astuple(row))
        return row.id

    def append_event(self) -> None:
        """One durable transaction with the rows of an event and a change of state."""
        now_us, position = time.time_ns() // 1000, next(self._positions)
        owner = ("session", self._session_id)
        event = msgspec.json.encode(EVENT).decode()
        with self._written("append_event"):
            execute = self._session.execute
            execute(rows.CHANGE, (1, now_us, self._session_id))
            execute(SET_KEY, (*owner, "turn", str(position)))
            execute(COUNT_KEYS, owner)
            execute(
                insert_sql(rows.INSERT_EVENT, 1),
                (self._session_id, position, now_us, "local", event),
            )

    @contextmanager
    def _written(self, operation: str) -> Iterator[None]:
        """What every write brings with it: journal, kept answer, ledger and the commit."""
        session = self._session
        self._seq += 1
        session.begin()
        yield
        session.execute(insert_sql(journal.APPEND, 1), raw_change(self._seq, operation))
        session.execute(insert_sql(idempotency.KEEP, 1), raw_answer(operation, self._seq))
        session.execute(journal.CLOSE_LEDGER, (self._seq, b"h" * 32))
        session.commit()

    def close(self) -> None:
        self._session.connection.close()


def fill(client: MemoryClient, memories: int) -> None:
    """The memories, a namespace of a hundred among them, and a key of ten versions."""
    store(
        client,
        (
            {"content": CONTENT.format(n), "namespace": f"project:bench:n{n % 1_000}"}
            for n in range(memories)
        ),
    )
    client.batch_add_memories(
        [{"content": CONTENT.format(n)} for n in range(100)], namespace=NAMESPACE
    )
    for number in range(10):
        client.put(*PLACE, {"colour": "green", "contrast": number})


def operations(client: MemoryClient, raw: RawCopy) -> dict[str, tuple[dict[str, Any], Call, Call]]:
    """By name: the arguments as they travel, the call, and the bare work that it needs."""
    session_id = client.create_session("anna")["session_id"]
    turns = itertools.count(1)
    [(num,)] = raw.read("SELECT num FROM memories WHERE namespace = ? AND key = ?", PLACE)
    namespace, key = PLACE
    return {
        "create_session": (
            {"user_id": "anna"},
            lambda: client.create_session("anna"),
            raw.create_session,
        ),
        "append_event with a state delta": (
            {"session_id": session_id, "event": EVENT, "state_delta": {"turn": 1}},
            lambda: client.append_event(session_id, EVENT, {"turn": next(turns)}),
            raw.append_event,
        ),
        "get by key, the current version": (
            {"namespace": namespace, "key": key},
            lambda: client.get(*PLACE),
            lambda: raw.read(HOLDER, PLACE),
        ),
        "history of ten versions": (
            {"namespace": namespace, "key": key, "limit": 10},
            lambda: client.history(*PLACE, limit=10),
            lambda: (raw.read(HOLDER, PLACE), raw.read(OLD_VERSIONS, (num, 10, 11))),
        ),
        "search_namespace over 100 memories": (
            {"prefix": NAMESPACE, "limit": 100},
            lambda: client.search_namespace(NAMESPACE, limit=100),
            lambda: raw.read(NAMESPACE_QUERY, (NAMESPACE,)),
        ),
    }


def compared(name: str, request: dict[str, Any], call: Call, bare: Call) -> Row:
    """One operation beside an echo of the same bytes and the bare work."""
    answer: Any = call()

    def measure() -> dict[str, float]:
        with echo_server(answer) as endpoint:
            echo_us = p50(latencies_us(EchoClient(endpoint, request).call, CALLS))
        return {
            "echo": echo_us,
            "bare": p50(latencies_us(lambda: ignore(bare()), CALLS, warmup=50)),
            "call": p50(latencies_us(lambda: ignore(call()), CALLS, warmup=50)),
        }

    found = medians(measure, ROUNDS)
    echo, bare_us = found["echo"], found["bare"]
    beside = f"echo {echo:,.0f} + SQLite {bare_us:,.0f} ="
    return at_most(name, found["call"], echo + bare_us, FACTOR, "µs", beside)


def concurrent_sessions(endpoint: str) -> Row:
    """Many sessions read at once, each by a thread of its own with a few turns behind it."""
    with MemoryClient(endpoint) as client:
        ids = [client.create_session(f"user-{n}")["session_id"] for n in range(SESSIONS)]
        for session_id in ids:
            for turn in range(10):
                client.append_event(session_id, EVENT, {"turn": turn})

        def measure() -> dict[str, float]:
            ready = threading.Barrier(SESSIONS + 1)

            def read(session_id: str) -> None:
                ready.wait(30)
                client.get_session(session_id)

            threads = [threading.Thread(target=read, args=(i,), daemon=True) for i in ids]
            for thread in threads:
                thread.start()
            ready.wait(30)
            started = time.perf_counter()
            for thread in threads:
                thread.join(30)
            return {"all": 1000 * (time.perf_counter() - started)}

        found = medians(measure, ROUNDS)
    name = f"{SESSIONS} sessions read at once, together"
    return at_most(name, found["all"], SESSIONS_WITHIN_MS, 1.0, "ms", "bound")


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure everything and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharing")
    parser.add_argument("--memories", type=int, default=MEMORIES)
    memories = parser.parse_args(arguments).memories
    with serving() as service, folder() as place:
        with MemoryClient(service.endpoint, timeout=120.0) as client:
            fill(client, memories)
            copy = Path(client.backup(str(place / "copy"))["path"]) / DATABASE_NAME
            raw = RawCopy(copy)
            found = [compared(name, *parts) for name, parts in operations(client, raw).items()]
            raw.close()
        found.append(concurrent_sessions(service.endpoint))
    return show(f"Sharing, over {memories:,} memories", found)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
