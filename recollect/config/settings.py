"""Every setting, declared once: its name, type, default, bounds and help.

The loader, the commented `memory_config.yaml` and `docs/configuration.md` all derive from these
structs. Structs built by hand are not checked; `recollect.config.load` is what checks.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from recollect.config.agents import (
    ContextSettings,
    LearningSettings,
    OperationalSettings,
    TiersSettings,
    WorkflowSettings,
)
from recollect.config.gateway import GatewaySettings
from recollect.config.health import HealthSettings
from recollect.config.redis import RedisSettings
from recollect.config.scheduling import JobsSettings, SchedulerSettings
from recollect.config.sharing import (
    AccessSettings,
    ConsolidationSettings,
    DocumentsSettings,
    SessionsSettings,
    TrustSettings,
)

# A declaration reads in one piece: type, bounds, help, default.
# fmt: off


class StorageSettings(Struct, frozen=True):
    """Where memories are kept, and how their writes are gathered."""

    url: Annotated[str, Meta(min_length=1, description=(
        "`sqlite` keeps one database file in the data folder; `postgresql://user@host/name` keeps "
        "rows, words and vectors in PostgreSQL with pgvector, for any number of orchestrators."
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
        "Memory in which the SQLite connection that writes keeps pages of the database; each "
        "that reads has a quarter of it."))] = 64
    check_at_once_mb: Annotated[int, Meta(ge=0, le=1_048_576, description=(
        "All of a SQLite file is looked over for damage at each start: before anybody is served "
        "if it is no larger than this, else beside the first requests."))] = 64
    idempotency_hours: Annotated[int, Meta(ge=24, le=8760, description=(
        "How long the answer to a write is kept under its idempotency key, so that repeating the "
        "write returns that answer instead of writing twice."))] = 24
    clock_margin_hours: Annotated[float, Meta(ge=0, le=8760, description=(
        "Until the orchestrator has run for so long by its own measure, what goes for good because "
        "of its age must be so much older: the clock may have been set wrong while it was down."
        ))] = 24.0


class NetworkSettings(Struct, frozen=True):
    """Where the orchestrator listens, and how much it takes on at once."""

    bind: Annotated[str, Meta(min_length=1, description=(
        "Address to listen on: `tcp://host:port` or `ipc://path`. Port 0 takes any free port. "
        "Anything but loopback needs CURVE keys."))] = "tcp://127.0.0.1:7331"
    in_flight_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Requests in work at once; beyond it the answer is `overloaded`."))] = 1024
    waiting_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Readers of the change feed that wait for the next change at once, beside the requests in "
        "work; beyond it the answer is `overloaded`."))] = 4096
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
    # Clients, jobs and the dashboard ask for pages of up to a thousand, whatever is set here.
    batch_items_max: Annotated[int, Meta(ge=1000, le=1_000_000, description=(
        "Items in one batch request."))] = 10_000
    page_items_max: Annotated[int, Meta(ge=1000, le=100_000, description=(
        "Items in one page of a list or search."))] = 1000
    # No more than the clients and the gateway take, which do not know what is set here.
    payload_bytes_max: Annotated[int, Meta(ge=1024, le=67_108_864, description=(
        "Bytes of one message, request or reply."))] = 67_108_864
    query_chars_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Characters in a search query."))] = 10_000
    tree_nodes_max: Annotated[int, Meta(ge=1, le=10_000_000, description=(
        "Memories that one cascading delete may take; a larger tree is refused whole."))] = 100_000
    walk_depth_max: Annotated[int, Meta(ge=1, le=64, description=(
        "Steps that a walk along relationships may go from its start."))] = 8
    relationship_results_max: Annotated[int, Meta(ge=1000, le=100_000, description=(
        "Relationships in the answer to one walk."))] = 1000
    decision_options_max: Annotated[int, Meta(ge=1, le=10_000, description=(
        "Options of one decision."))] = 64
    procedure_steps_max: Annotated[int, Meta(ge=1, le=10_000, description=(
        "Steps of one procedure."))] = 256
    item_chars_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Characters in one option of a decision, one step of a procedure or one error of an "
        "execution."))] = 10_000
    error_patterns_max: Annotated[int, Meta(ge=1, le=10_000, description=(
        "Errors of one execution."))] = 64


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
    keep_importance: Annotated[float, Meta(ge=0, le=1, description=(
        "From this importance on a memory never goes into the archive because it faded."))] = 0.9
    shrink_max: Annotated[float, Meta(gt=0, le=1, description=(
        "Part of the memories of a namespace that fading may bring into the archive within a day; "
        "what is left waits for the next. So neither a wrong clock nor a long downtime empties "
        "one at once."))] = 0.2
    access_flush_ms: Annotated[int, Meta(ge=10, le=60_000, description=(
        "Accesses are gathered this long and then written together."))] = 1000
    access_buffer_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Memories whose accesses are gathered until the next writing; those of more are not "
        "counted."))] = 10_000


class EmbeddingSettings(Struct, frozen=True):
    """What turns text into vectors."""

    provider: Annotated[Literal["local", "hashed", "openai"], Meta(description=(
        "`local` runs a model on this machine, offline; `hashed` computes vectors from the words' "
        "spelling, without any model; `openai` asks an endpoint that speaks OpenAI's protocol. "
        "When this changes, the memories are embedded anew in the background."))] = "local"
    model: Annotated[str, Meta(min_length=1, description=(
        "Of `local`: a name that `recollect models list` knows, or a folder with `model.onnx` and "
        "`tokenizer.json`. Of `openai`: the name of the endpoint's model."
        ))] = "all-MiniLM-L6-v2"
    dimensions: Annotated[Annotated[int, Meta(ge=8, le=8192)] | None, Meta(description=(
        "Length of a vector: of `hashed` (null is 256), or asked of an `openai` endpoint (null "
        "takes its own). A local model has its own."))] = None
    query_prefix: Annotated[str | None, Meta(description=(
        "Put before a query; null takes what the model is known to want."))] = None
    document_prefix: Annotated[str | None, Meta(description=(
        "Put before a memory's text; null takes what the model is known to want."))] = None
    threads: Annotated[int, Meta(ge=0, le=256, description=(
        "Threads that embed memories; queries have one of their own. 0 takes one a core."))] = 0
    batch_texts_max: Annotated[int, Meta(ge=1, le=2048, description=(
        "Texts that are embedded together."))] = 32
    queue_texts_max: Annotated[int, Meta(ge=1, le=10_000_000, description=(
        "Texts that may wait for the embedder; memories beyond it are stored at once and embedded "
        "later."))] = 20_000
    wait_ms: Annotated[int, Meta(ge=0, le=600_000, description=(
        "How long a write waits for its vectors. What has none by then is stored, found by its "
        "words at once, and embedded later."))] = 3000
    query_wait_ms: Annotated[int, Meta(ge=1, le=600_000, description=(
        "How long a search waits for the vector of its question, and never more than half of what "
        "is left of its deadline. Without one, `recall` and contexts answer by words alone, and "
        "`semantic_search` with an error."))] = 5000
    cache_texts_max: Annotated[int, Meta(ge=0, le=10_000_000, description=(
        "Texts whose vectors are kept at hand."))] = 10_000
    openai_url: Annotated[str, Meta(min_length=1, description=(
        "Where an `openai` endpoint is; `/embeddings` is added."))] = "https://api.openai.com/v1"
    openai_key_variable: Annotated[str, Meta(min_length=1, description=(
        "Environment variable that holds the endpoint's key."))] = "OPENAI_API_KEY"
    openai_timeout_s: Annotated[float, Meta(gt=0, le=600, description=(
        "Longest wait for one answer of the endpoint."))] = 30.0
    openai_attempts_max: Annotated[int, Meta(ge=1, le=20, description=(
        "Attempts for one request to the endpoint, the first included."))] = 4
    openai_price_per_million: Annotated[float, Meta(ge=0, le=1_000_000, description=(
        "What a million tokens cost there; `stats` adds it up."))] = 0.02


class IndexSettings(Struct, frozen=True):
    """The vector index: a head that takes every new vector at once, and sealed segments."""

    head_max: Annotated[int, Meta(ge=16, le=10_000_000, description=(
        "Vectors in the head; beyond it, it becomes a segment in the background."))] = 2048


class RecallSettings(Struct, frozen=True):
    """How `recall` weighs what it finds. Words and meaning count from 0 to 1 each; every other
    weight is to be read against theirs, and 0 switches its part off. See docs/search.md."""

    candidates: Annotated[int, Meta(ge=10, le=10_000, description=(
        "Memories that are taken from each of the two lists, by words and by meaning."))] = 100
    turns_around: Annotated[int, Meta(ge=0, le=10, description=(
        "Turns before and after a hit in its session that are ranked with it."))] = 2
    lexical: Annotated[float, Meta(ge=0, le=100, description=(
        "Words in common with the question; the best candidate has all of it."))] = 1.0
    semantic: Annotated[float, Meta(ge=0, le=100, description=(
        "Nearness in meaning; the best candidate has all of it."))] = 1.0
    author: Annotated[float, Meta(ge=0, le=100, description=(
        "The question names somebody, and the memory is by them."))] = 0.8
    mention: Annotated[float, Meta(ge=0, le=100, description=(
        "The question names somebody, and the memory of somebody else speaks about "
        "them."))] = 0.3
    when: Annotated[float, Meta(ge=0, le=100, description=(
        "The question asks when, and the text holds an expression of time."))] = 0.4
    period: Annotated[float, Meta(ge=0, le=100, description=(
        "The question names a date or a period, and the memory's moment lies in it or "
        "near it."))] = 0.6
    question: Annotated[float, Meta(ge=0, le=100, description=(
        "Taken off a text that only asks, as far as it does: it is near the question in "
        "every way, and answers nothing."))] = 0.6
    specifics: Annotated[float, Meta(ge=0, le=100, description=(
        "Names, numbers and quotations in the text."))] = 0.25
    turn_next: Annotated[float, Meta(ge=0, le=100, description=(
        "Relevance of the better of the two turns beside it in its session."))] = 0.4
    turn_second: Annotated[float, Meta(ge=0, le=100, description=(
        "The same of the turns two away."))] = 0.1
    reply: Annotated[float, Meta(ge=0, le=100, description=(
        "Relevance of the turn before, where that one asks something: this one is the "
        "reply."))] = 0.2
    session: Annotated[float, Meta(ge=0, le=100, description=(
        "Relevance of the best turns of its session."))] = 0.3
    recency: Annotated[float, Meta(ge=0, le=100, description=(
        "Being newer than other candidates, in proportion to relevance: lets a "
        "corrected fact stand before what it corrects."))] = 0.1
    recency_asked: Annotated[float, Meta(ge=0, le=100, description=(
        "The same, where the question asks for the latest, or in reverse for the first."))] = 1.0
    importance: Annotated[float, Meta(ge=0, le=100, description=(
        "The memory's importance."))] = 0.1
    strength: Annotated[float, Meta(ge=0, le=100, description=(
        "The memory's strength, which fades."))] = 0.1
    context_words: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Credit from turns and session is damped for texts with more words than this: "
        "they have enough of their own."))] = 80
    period_fade_days: Annotated[float, Meta(gt=0, le=36_500, description=(
        "How fast `period` fades with the distance from it, in days."))] = 7.0


class CircuitBreakerSettings(Struct, frozen=True):
    """When a caller stops asking a service that keeps failing."""

    fail_max: Annotated[int, Meta(ge=1, le=1000, description=(
        "Failures in a row that open the circuit."))] = 5
    reset_timeout_s: Annotated[float, Meta(gt=0, le=3600, description=(
        "How long the circuit stays open before one probe is let through."))] = 5.0


class ClientSettings(Struct, frozen=True):
    """Where the processes beside the orchestrator find it."""

    endpoints: Annotated[tuple[str, ...], Meta(description=(
        "Where the orchestrators are, for the scheduler, the health manager and the gateway: "
        "several share one database and one Redis. Empty is the one that serves the data folder. "
        "RECOLLECT_ENDPOINT and `--endpoint`, with commas in between, come before it."))] = ()


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


__all__ = [
    "AccessSettings",
    "CircuitBreakerSettings",
    "ClientSettings",
    "ConsolidationSettings",
    "ContextSettings",
    "DecaySettings",
    "DocumentsSettings",
    "EmbeddingSettings",
    "ErrorsSettings",
    "GatewaySettings",
    "HealthSettings",
    "IndexSettings",
    "JobsSettings",
    "LearningSettings",
    "LimitsSettings",
    "LoggingSettings",
    "NetworkSettings",
    "OperationalSettings",
    "RecallSettings",
    "RedisSettings",
    "SchedulerSettings",
    "SessionsSettings",
    "Settings",
    "StorageSettings",
    "TiersSettings",
    "TrustSettings",
    "WorkflowSettings",
]


class Settings(Struct, frozen=True):
    """All settings, a section each."""

    storage: StorageSettings = StorageSettings()
    network: NetworkSettings = NetworkSettings()
    limits: LimitsSettings = LimitsSettings()
    decay: DecaySettings = DecaySettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    index: IndexSettings = IndexSettings()
    recall: RecallSettings = RecallSettings()
    access: AccessSettings = AccessSettings()
    trust: TrustSettings = TrustSettings()
    sessions: SessionsSettings = SessionsSettings()
    documents: DocumentsSettings = DocumentsSettings()
    consolidation: ConsolidationSettings = ConsolidationSettings()
    operational: OperationalSettings = OperationalSettings()
    workflow: WorkflowSettings = WorkflowSettings()
    context: ContextSettings = ContextSettings()
    learning: LearningSettings = LearningSettings()
    tiers: TiersSettings = TiersSettings()
    redis: RedisSettings = RedisSettings()
    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()
    client: ClientSettings = ClientSettings()
    logging: LoggingSettings = LoggingSettings()
    errors: ErrorsSettings = ErrorsSettings()
    health: HealthSettings = HealthSettings()
    gateway: GatewaySettings = GatewaySettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    jobs: JobsSettings = JobsSettings()
