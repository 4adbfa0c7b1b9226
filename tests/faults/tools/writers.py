"""Clients that write without pause and log every acknowledgement."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from recollect import MemoryClient, RecollectError
from recollect.client import Breaker, Retry, Timeouts
from tests.faults.tools.acknowledgements import Acknowledged, AcknowledgementLog
from tests.faults.tools.threads import Threads

ANSWERED_WITHIN_S = 30.0
BATCH_ITEMS = 8
KEPT = 40


def patient_client(
    endpoint: str, name: str, *, call_s: float = 5.0, connect_s: float = 1.0
) -> MemoryClient:
    """A client that goes on through restarts: its breaker never opens, its pauses are short."""
    return MemoryClient(
        endpoint,
        agent_id=name,
        timeouts=Timeouts(call_s=call_s, connect_s=connect_s),
        retry=Retry(attempts_max=50, backoff_ms=5, backoff_ms_max=50),
        breaker=Breaker(fail_max=1_000_000),
    )


class Writers(Threads):
    """Threads with a client each: add, batch, update, delete. An interrupted write is repeated by
    its key until it is answered, so that at the end nothing is in doubt."""

    def __init__(
        self, endpoint: str, log: AcknowledgementLog, *, seed: int, count: int = 4
    ) -> None:
        super().__init__()
        self.log = log
        self.failures: list[str] = []
        """Answers that no write of ours should get."""
        self._endpoint = endpoint
        self._threads = [
            threading.Thread(target=self._run, args=(f"writer-{seed}-{n}",), daemon=True)
            for n in range(count)
        ]

    def _did_not_end(self, name: str) -> None:
        self.failures.append(f"{name} did not end")

    def _run(self, name: str) -> None:
        try:
            with patient_client(self._endpoint, name) as client:
                writer = _Writer(client, self.log, name)
                while not self._stopping.is_set():
                    writer.step()
        except RecollectError as error:
            self.failures.append(f"{name}: {error.code}: {error}")
        except Exception as error:
            self.failures.append(f"{name}: {error!r}")


class _Writer:
    """One client and the memories that it alone changes."""

    def __init__(self, client: MemoryClient, log: AcknowledgementLog, name: str) -> None:
        self._client = client
        self._log = log
        self._name = name.replace("-", "")
        self._random = random.Random(name)
        self._number = 0
        self._own: list[Acknowledged] = []

    def step(self) -> None:
        kind = self._random.choices(("add", "batch", "update", "delete"), (5, 1, 3, 1))[0]
        if kind == "batch":
            self._batch()
        elif kind == "add" or not self._own:
            self._add()
        elif kind == "update":
            self._update(self._own.pop(self._random.randrange(len(self._own))))
        else:
            self._delete(self._own.pop(self._random.randrange(len(self._own))))

    def _content(self) -> str:
        self._number += 1
        return f"{self._name}x{self._number} remembers {self._random.getrandbits(64):x}"

    def _once(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        key = f"{self._name}-{self._random.getrandbits(96):x}"
        give_up_s = time.monotonic() + ANSWERED_WITHIN_S
        while True:
            try:
                return call(*args, **kwargs, idempotency_key=key)
            except RecollectError as error:
                if not error.retryable or time.monotonic() > give_up_s:
                    raise

    def _acknowledged(self, *entries: Acknowledged) -> None:
        self._log.add(*entries)
        self._own += [entry for entry in entries if not entry.deleted]
        del self._own[:-KEPT]

    def _add(self) -> None:
        content = self._content()
        added = self._once(self._client.add_memory, content, tags=["written"])
        self._acknowledged(Acknowledged(added["memory_id"], added["version"], content))

    def _batch(self) -> None:
        contents = [self._content() for _ in range(BATCH_ITEMS)]
        items = [{"content": content} for content in contents]
        answer = self._once(self._client.batch_add_memories, items)
        self._acknowledged(
            *(
                Acknowledged(item["memory_id"], item["version"], content)
                for item, content in zip(answer["results"], contents, strict=True)
            )
        )

    def _update(self, entry: Acknowledged) -> None:
        content = self._content()
        changed = self._once(
            self._client.update_memory,
            entry.memory_id,
            {"content": content},
            expected_version=entry.version,
        )
        self._acknowledged(Acknowledged(entry.memory_id, changed["version"], content))

    def _delete(self, entry: Acknowledged) -> None:
        gone = self._once(self._client.delete_memory, entry.memory_id)
        self._acknowledged(
            Acknowledged(entry.memory_id, gone["version"], entry.content, deleted=True)
        )
