"""The check-up: configuration, data folder, database and orchestrator, each as far as it goes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from recollect._version import VERSION
from recollect.cli.findings import Finding, fail, ok, warn
from recollect.cli.key_checks import check_keys
from recollect.cli.local_key import local_key, reachable
from recollect.cli.options import settings_from
from recollect.cli.output import in_words, size
from recollect.cli.redis_checks import check_redis, check_sharing
from recollect.client import MemoryClient, Retry
from recollect.client.settings import KEY_FILE_VARIABLE, endpoint_or_default
from recollect.config import ConfigError, Settings
from recollect.config.settings import EmbeddingSettings
from recollect.models.catalogue import CATALOGUE
from recollect.models.errors import ModelError
from recollect.models.locating import find
from recollect.orchestrator.running.data_folder import announcement, holder_of
from recollect.protocol.errors import AccessError, RecollectError

# Versions before it can damage a database whose write-ahead log is reset at a bad moment.
SQLITE_LEAST = (3, 51, 3)
FREE_BYTES_LEAST = 100_000_000
FREE_BYTES_WANTED = 1_000_000_000
PING_S = 3.0
MODEL_PACKAGES = ("onnxruntime", "tokenizers")


def check_up(
    data: str | None, config: str | None, endpoint: str | None, key_file: str | None = None
) -> Iterator[Finding]:
    """Every finding, one after the other; nothing is changed."""
    yield _sqlite()
    settings = Settings()
    try:
        settings = settings_from(config, data)
        yield ok("config", "All settings are valid.")
    except ConfigError as error:
        for problem in error.problems:
            yield fail("config", f"{problem}.", "Put it right; until then nothing starts.")
    yield _model(settings.embedding)
    yield check_redis(settings.redis)
    folder = Path(data if data is not None else settings.storage.data)
    if settings.storage.url != "sqlite":
        yield check_sharing(settings.redis)
        yield from _server_database(settings.storage.url)
    elif folder.is_dir():
        yield from _folder(folder)
        yield from _database(folder)
    elif folder.exists():
        yield fail("data", f"{folder} is not a folder.", "Choose another with --data.")
    else:
        yield warn("data", f"{folder} does not exist yet.", "`recollect up` makes it.")
    yield from check_keys(folder, key_file)
    yield _orchestrator(folder, endpoint, key_file)


def _sqlite() -> Finding:
    import apsw

    number = apsw.sqlite_lib_version()
    if tuple(map(int, number.split("."))) < SQLITE_LEAST:
        least = ".".join(map(str, SQLITE_LEAST))
        return fail(
            "sqlite", f"SQLite {number} is older than {least}.", "pip install --upgrade apsw"
        )
    return ok("sqlite", f"SQLite {number}, Recollect {VERSION}.")


def _model(embedding: EmbeddingSettings) -> Finding:
    """What is configured to embed with, and whether it is there."""
    if embedding.provider == "hashed":
        return ok("model", "The light embedder: it finds by spelling, and needs no model.")
    if embedding.provider == "openai":
        if os.environ.get(embedding.openai_key_variable):
            return ok("model", f"{embedding.model} of {embedding.openai_url}, with a key.")
        return warn(
            "model",
            f"{embedding.model} of {embedding.openai_url}, without a key.",
            f"If that endpoint wants one, put it into {embedding.openai_key_variable}.",
        )
    try:
        installed = find(embedding.model)
    except ModelError as error:
        return fail("model", error.message, f"Install it anew: {_installing(embedding.model)}")
    if installed is None:
        return warn(
            "model",
            f"{embedding.model} is not installed: new stores begin with the light embedder.",
            _installing(embedding.model),
        )
    missing = [name for name in MODEL_PACKAGES if find_spec(name) is None]
    if missing:
        return warn(
            "model",
            f"{embedding.model} is installed; to run it, {' and '.join(missing)} are missing.",
            "pip install 'recollect[server]'",
        )
    return ok("model", f"{embedding.model} is installed in {installed.folder}.")


def _installing(name: str) -> str:
    if name in CATALOGUE:
        return f"recollect models install {name}"
    return "`recollect models list` shows what can be installed; set embedding.model to one."


def _folder(folder: Path) -> Iterator[Finding]:
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield ok("data", f"{folder.resolve()} can be written.")
    else:
        yield fail(
            "data",
            f"{folder.resolve()} cannot be written.",
            "Run as its owner, or change who may write it.",
        )
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES_LEAST:
        yield fail("disk", f"Only {size(free)} are free.", "Free some space: writes will fail.")
    elif free < FREE_BYTES_WANTED:
        yield warn("disk", f"Only {size(free)} are free.", "Free some space soon.")
    else:
        yield ok("disk", f"{size(free)} are free.")
    holder = holder_of(folder)
    yield ok(
        "lock", f"Process {holder} holds the folder." if holder else "Nobody holds the folder."
    )


def _database(folder: Path) -> Iterator[Finding]:
    from recollect.cli.database_checks import check_database  # needs faiss's numpy

    yield from check_database(folder)


def _server_database(url: str) -> Iterator[Finding]:
    if find_spec("psycopg") is None:
        yield fail(
            "database",
            "storage.url names PostgreSQL, and psycopg is missing.",
            "pip install 'recollect[postgres]'",
        )
        return
    from recollect.cli.postgres_checks import check_postgres  # needs psycopg

    yield from check_postgres(url)


def _orchestrator(folder: Path, named: str | None, key_file: str | None) -> Finding:
    """Whether somebody answers: where it was said, else where the folder's orchestrator listens."""
    holder, announced = holder_of(folder), announcement(folder)
    serving = holder is not None and announced is not None and str(announced["pid"]) == holder
    if holder is not None and not serving and named is None:
        return warn(
            "orchestrator",
            f"Process {holder} holds the folder, but has not said where it listens.",
            "It may still be starting: look again in a moment.",
        )
    if named is None and announced is not None and serving:
        named = reachable(str(announced["endpoint"]))
    endpoint = endpoint_or_default(named)
    try:
        key: str | Path | None = key_file
        if key is None and not os.environ.get(KEY_FILE_VARIABLE):
            key = local_key(folder, endpoint)
        with MemoryClient(endpoint, key_file=key, retry=Retry(attempts_max=1)) as client:
            pong = client.ping(timeout=PING_S)
    except AccessError as error:
        return fail("orchestrator", error.message, "Name a key that it knows with --key-file.")
    except RecollectError as error:
        if serving:
            return fail(
                "orchestrator",
                f"Process {holder} holds the folder, but none answers at {endpoint} "
                f"({error.code}).",
                "It may hang: look at its log, then restart it.",
            )
        if named:
            return fail("orchestrator", error.message, "Start it, or name the right endpoint.")
        return warn("orchestrator", f"None answers at {endpoint}.", "`recollect up` starts one.")
    answer = f"Version {pong['version']} answers at {endpoint}, up for {in_words(pong['uptime_s'])}"
    if pong["version"] != VERSION:
        return warn(
            "orchestrator", f"{answer}; this is version {VERSION}.", "Use the same version on both."
        )
    return ok("orchestrator", f"{answer}.")
