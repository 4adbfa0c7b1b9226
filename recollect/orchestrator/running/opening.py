"""Opens the configured storage, and says how it is searched."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path

import msgspec

from recollect.config.settings import Settings
from recollect.orchestrator.search.json_paths import JsonPaths, PostgresJsonPaths, SqliteJsonPaths
from recollect.orchestrator.search.lexical import Fts5Index, LexicalIndex, TsvectorIndex
from recollect.orchestrator.search.nearest import NearestInProcess
from recollect.orchestrator.search.nearest_stored import NearestStored
from recollect.orchestrator.search.scopes import Nearest
from recollect.orchestrator.storage.interface import PrefetchFunction, SealFunction, Storage
from recollect.orchestrator.storage.sqlite.storage import SqliteStorage
from recollect.orchestrator.vectors.faiss_indexes import FaissIndexes
from recollect.orchestrator.vectors.indexes import VectorIndexes
from recollect.orchestrator.vectors.pgvector_indexes import PgvectorIndexes

SQLITE = "sqlite"


class SearchParts(msgspec.Struct, frozen=True):
    """What goes with a storage: how its words, its vectors and its JSON are searched."""

    lexical: LexicalIndex
    indexes: VectorIndexes
    nearest: Nearest
    paths: JsonPaths


def search_parts(settings: Settings, randomness: random.Random) -> SearchParts:
    """How the configured storage is searched."""
    if settings.storage.url == SQLITE:
        indexes = FaissIndexes(settings.index, Path(settings.storage.data))
        return SearchParts(Fts5Index(), indexes, NearestInProcess(randomness), SqliteJsonPaths())
    return SearchParts(
        TsvectorIndex(), PgvectorIndexes(), NearestStored(randomness), PostgresJsonPaths()
    )


def open_storage(
    settings: Settings, prefetch: PrefetchFunction, seals: Iterable[SealFunction]
) -> Storage:
    """The configured storage."""
    chosen = settings.storage
    loop = asyncio.get_running_loop()
    if chosen.url == SQLITE:
        return SqliteStorage(
            Path(chosen.data),
            loop=loop,
            prefetch=prefetch,
            seals=seals,
            readers=chosen.readers,
            group_commit_max=chosen.group_commit_max,
            write_queue_max=chosen.write_queue_max,
            page_cache_mb=chosen.page_cache_mb,
            check_at_once_mb=chosen.check_at_once_mb,
        )
    from recollect.orchestrator.storage.postgres.storage import PostgresStorage  # needs its extra

    return PostgresStorage(
        chosen.url,
        loop=loop,
        prefetch=prefetch,
        seals=seals,
        readers=chosen.readers,
        group_commit_max=chosen.group_commit_max,
        write_queue_max=chosen.write_queue_max,
    )
