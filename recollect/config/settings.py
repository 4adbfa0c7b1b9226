"""Every setting, declared once: its name, type, default, bounds and help.

The loader, the commented `memory_config.yaml` and `docs/configuration.md` all derive from these
structs. Structs built by hand are not checked; `recollect.config.load` is what checks.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

# A declaration reads in one piece: type, bounds, help, default.
# fmt: off


class StorageSettings(Struct, frozen=True):
    """Where memories are kept, and how their writes are gathered."""

    url: Annotated[str, Meta(min_length=1, description=(
        "`sqlite` keeps one database file in the data folder; `postgresql://user@host/name` keeps "
        "rows and vectors in PostgreSQL, for one orchestrator so far and without search by words."
        ))] = "sqlite"
    data: Annotated[str, Meta(min_length=1, description=(
        "Folder of the database, index segments and keys. A relative path starts from the folder "
        "in which the process was started."))] = "./recollect-data"
    readers: Annotated[int, Meta(ge=1, le=64, description=(
        "Connections that serve reads side by side; writes have one of their own."))] = 4
    group_commit_max: Annotated[int, Meta(ge=1, le=10_000, description=(
        "Transactions that wait at the same moment and are committed together, with one sync to "
        "disk. 1 syncs for every write."))] = 256
    write_queue_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Writes that may wait for the writer; beyond it the answer is `overloaded`."))] = 4096
    page_cache_mb: Annotated[int, Meta(ge=1, le=65_536, description=(
        "Memory in which a SQLite connection keeps pages of the database."))] = 64
    idempotency_hours: Annotated[int, Meta(ge=24, le=8760, description=(
        "How long the answer to a write is kept under its idempotency key, so that repeating the "
        "write returns that answer instead of writing twice."))] = 24


class NetworkSettings(Struct, frozen=True):
    """Where the orchestrator listens, and how much it takes on at once."""

    bind: Annotated[str, Meta(min_length=1, description=(
        "Address to listen on: `tcp://host:port` or `ipc://path`. Port 0 takes any free port. "
        "Anything but loopback needs CURVE keys."))] = "tcp://127.0.0.1:7331"
    in_flight_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Requests in work at once; beyond it the answer is `overloaded`."))] = 1024
    peer_queue_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Replies that may wait for one slow client before further ones are dropped."))] = 1000
    heartbeat_ms: Annotated[int, Meta(ge=100, le=60_000, description=(
        "Pause between two signs of life on an idle connection."))] = 2000
    drain_s: Annotated[float, Meta(ge=0, le=600, description=(
        "How long a stopping orchestrator finishes the requests it has accepted."))] = 10.0
    retry_after_ms: Annotated[int, Meta(ge=1, le=60_000, description=(
        "The wait that an `overloaded` answer advises."))] = 50
    deadline_ms_default: Annotated[int, Meta(ge=1, le=3_600_000, description=(
        "Deadline of a request that carries none."))] = 30_000


class LimitsSettings(Struct, frozen=True):
    """How large one request, one memory and one answer may be. What exceeds a limit is refused."""

    content_chars_max: Annotated[int, Meta(ge=1, le=10_000_000, description=(
        "Characters in the content of one memory."))] = 200_000
    metadata_bytes_max: Annotated[int, Meta(ge=2, le=16_777_216, description=(
        "Bytes of one memory's metadata, as JSON."))] = 65_536
    value_bytes_max: Annotated[int, Meta(ge=2, le=67_108_864, description=(
        "Bytes of one memory's value, as JSON."))] = 1_048_576
    depth_max: Annotated[int, Meta(ge=1, le=64, description=(
        "Levels of nesting in metadata and values."))] = 16
    tags_max: Annotated[int, Meta(ge=0, le=10_000, description="Tags on one memory.")] = 64
    tag_chars_max: Annotated[int, Meta(ge=1, le=4096, description="Characters in one tag.")] = 128
    key_chars_max: Annotated[int, Meta(ge=1, le=4096, description="Characters in a key.")] = 512
    namespace_chars_max: Annotated[int, Meta(ge=8, le=4096, description=(
        "Characters in a namespace, its prefix included."))] = 256
    batch_items_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Items in one batch request."))] = 10_000
    page_items_max: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Items in one page of a list or search."))] = 1000
    payload_bytes_max: Annotated[int, Meta(ge=1024, le=1_073_741_824, description=(
        "Bytes of one message, request or reply."))] = 67_108_864
    query_chars_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Characters in a search query."))] = 10_000
    tree_nodes_max: Annotated[int, Meta(ge=1, le=10_000_000, description=(
        "Memories that one cascading delete may take; a larger tree is refused whole."))] = 100_000
    walk_depth_max: Annotated[int, Meta(ge=1, le=64, description=(
        "Steps that a walk along relationships may go from its start."))] = 8
    relationship_results_max: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Relationships in the answer to one walk."))] = 1000


class DecaySettings(Struct, frozen=True):
    """How fast memories fade, and what keeps them strong."""

    half_life_days_short: Annotated[float, Meta(gt=0, le=36_500, description=(
        "Days after which an untouched memory of the tier `short` has half its strength."))] = 7.0
    half_life_days_medium: Annotated[float, Meta(gt=0, le=36_500, description=(
        "The same for the tier `medium`."))] = 30.0
    half_life_days_long: Annotated[float, Meta(gt=0, le=36_500, description=(
        "The same for the tier `long`."))] = 365.0
    fade_threshold: Annotated[float, Meta(gt=0, lt=1, description=(
        "Strength below which a memory counts as faded."))] = 0.05
    importance_gain: Annotated[float, Meta(ge=0, le=100, description=(
        "How much importance lengthens stability: by the factor 1 + gain x importance."))] = 1.0
    access_gain: Annotated[float, Meta(ge=1, le=10, description=(
        "Factor by which each tracked access lengthens stability."))] = 1.05
    stability_days_max: Annotated[float, Meta(gt=0, le=365_000, description=(
        "Stability never grows beyond this, however often a memory is read."))] = 3650.0
    access_flush_ms: Annotated[int, Meta(ge=10, le=60_000, description=(
        "Accesses are gathered this long and then written together."))] = 1000
    access_buffer_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Memories whose accesses are gathered until the next writing; those of more are not "
        "counted."))] = 10_000


class EmbeddingSettings(Struct, frozen=True):
    """What turns text into vectors."""

    provider: Annotated[Literal["hashed"], Meta(description=(
        "`hashed` computes vectors from the words themselves: no model, no key, no download."
    ))] = "hashed"
    dimensions: Annotated[int, Meta(ge=8, le=8192, description="Length of a vector.")] = 256


class RedisSettings(Struct, frozen=True):
    """The shared cache. It makes things faster and never holds the only copy of anything."""

    url: Annotated[str, Meta(min_length=1, description=(
        "`off` runs without; `embedded` starts a redis-server of its own on a private socket; "
        "`redis://host:port/0`, `rediss://` or `unix://` uses yours."))] = "off"
    timeout_ms: Annotated[int, Meta(ge=1, le=60_000, description=(
        "Longest wait for Redis; after it the lookup counts as a miss."))] = 50


class CircuitBreakerSettings(Struct, frozen=True):
    """When a caller stops asking a service that keeps failing."""

    fail_max: Annotated[int, Meta(ge=1, le=1000, description=(
        "Failures in a row that open the circuit."))] = 5
    reset_timeout_s: Annotated[float, Meta(gt=0, le=3600, description=(
        "How long the circuit stays open before one probe is let through."))] = 5.0


class ClientSettings(Struct, frozen=True):
    """How the client waits and retries."""

    timeout_s: Annotated[float, Meta(gt=0, le=3600, description=(
        "Deadline of one call, its retries included."))] = 10.0
    connect_timeout_s: Annotated[float, Meta(gt=0, le=600, description=(
        "Longest wait for a connection."))] = 1.0
    retry_attempts_max: Annotated[int, Meta(ge=1, le=100, description=(
        "Attempts for one call, the first included. 1 never retries."))] = 4
    retry_backoff_ms: Annotated[int, Meta(ge=1, le=60_000, description=(
        "Pause before the first retry; it doubles for each further one, with jitter."))] = 50
    retry_backoff_ms_max: Annotated[int, Meta(ge=1, le=600_000, description=(
        "The pause never grows beyond this."))] = 2000
    connections_max: Annotated[int, Meta(ge=1, le=10_000, description=(
        "Connections that one client may hold open."))] = 64


class LoggingSettings(Struct, frozen=True):
    """What is logged, in which form and where."""

    level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description=(
        "The least severe entries that are still written. Only `debug` may show content."
    ))] = "info"
    format: Annotated[Literal["auto", "json", "console"], Meta(description=(
        "`json` writes one object a line, `console` is for reading; `auto` is `console` on a "
        "terminal and `json` elsewhere."))] = "auto"
    file: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description=(
        "File to which the log is appended; null writes to standard error."))] = None


class ErrorsSettings(Struct, frozen=True):
    """The error bus, on which the parts of the system report what went wrong."""

    kept_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Errors kept; the oldest make room."))] = 1000


class Settings(Struct, frozen=True):
    """All settings, a section each."""

    storage: StorageSettings = StorageSettings()
    network: NetworkSettings = NetworkSettings()
    limits: LimitsSettings = LimitsSettings()
    decay: DecaySettings = DecaySettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    redis: RedisSettings = RedisSettings()
    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()
    client: ClientSettings = ClientSettings()
    logging: LoggingSettings = LoggingSettings()
    errors: ErrorsSettings = ErrorsSettings()
