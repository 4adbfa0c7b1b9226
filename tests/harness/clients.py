"""Both clients seen alike: every call blocks, and what was called is noted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recollect import AsyncMemoryClient, MemoryClient

KINDS = ("blocking", "asyncio")


class Recording:
    """A client whose methods return results, whichever kind it is."""

    def __init__(self, client: Any, runner: asyncio.Runner | None) -> None:
        self._client = client
        self._runner = runner
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        self.called.add(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            if self._runner is not None and asyncio.iscoroutine(result):
                return self._runner.run(result)
            return result

        return call


@contextmanager
def client_of(kind: str, endpoint: str, **options: Any) -> Iterator[Recording]:
    """A client of one kind, closed at the end."""
    if kind == "blocking":
        with MemoryClient(endpoint, **options) as blocking:
            yield Recording(blocking, None)
    else:
        with asyncio.Runner() as runner:
            twin = AsyncMemoryClient(endpoint, **options)
            try:
                yield Recording(twin, runner)
            finally:
                runner.run(twin.close())
