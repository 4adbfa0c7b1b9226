"""Opens the configured storage, with what can be searched in it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recollect.config.settings import Settings
from recollect.orchestrator.search.filters import (
    JsonPaths,
    NoJsonPaths,
    SqliteJsonPaths,
)
from recollect.orchestrator.search.lexical import Fts5Index, LexicalIndex, NoLexicalIndex
from recollect.orchestrator.storage.interface import PrefetchFunction, Storage
from recollect.orchestrator.storage.sqlite import SqliteStorage


def open_storage(
    settings: Settings, prefetch: PrefetchFunction
) -> tuple[Storage, LexicalIndex, JsonPaths]:
    """The configured storage with the search features that go with it."""
    chosen = settings.storage
    loop = asyncio.get_running_loop()
    if chosen.url == "sqlite":
        fts5 = Fts5Index()
        return (
            SqliteStorage(
                Path(chosen.data),
                loop=loop,
                prefetch=prefetch,
                seals=[fts5.seal],
                readers=chosen.readers,
                group_commit_max=chosen.group_commit_max,
                write_queue_max=chosen.write_queue_max,
                page_cache_mb=chosen.page_cache_mb,
            ),
            fts5,
            SqliteJsonPaths(),
        )
    from recollect.orchestrator.storage.postgres import PostgresStorage  # needs its extra

    return (
        PostgresStorage(
            chosen.url,
            loop=loop,
            prefetch=prefetch,
            readers=chosen.readers,
            group_commit_max=chosen.group_commit_max,
            write_queue_max=chosen.write_queue_max,
        ),
        NoLexicalIndex(),
        NoJsonPaths(),
    )
