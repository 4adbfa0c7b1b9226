"""Errors of an orchestrator that cannot do it now, and of the way to it."""

from __future__ import annotations

from recollect.protocol.explanations.explanation import Explanation

SERVICE = (
    Explanation(
        "overloaded",
        "Too much is under way already; nothing was done.",
        (
            "more requests are in flight than network.in_flight_max",
            "texts come faster than the model embeds them",
        ),
        (
            "Wait retry_after_ms of the details; the client does so by itself a few times.",
            "Send batches instead of single memories, from fewer callers at once.",
            "`recollect stats` shows the queues.",
        ),
        """\
recollect.protocol.errors.Overloaded: 1024 requests are in flight already; try again shortly.""",
    ),
    Explanation(
        "rate_limited",
        "The identity makes more requests a second than it may.",
        ("its rate is lower than what it sends", "gateway.requests_per_s was reached"),
        (
            "Wait retry_after_ms of the details.",
            "`recollect keys list` shows the rates; who administers it can allow more.",
        ),
        """\
recollect.protocol.errors.RateLimited: The identity 'crawler' may make 10 requests a second; …""",
    ),
    Explanation(
        "shutting_down",
        "The orchestrator ends, answers what it has accepted, and accepts no more.",
        ("it is stopped or started anew",),
        ("Try again: clients find it as soon as it is back.",),
        """\
recollect.protocol.errors.ShuttingDown: The orchestrator is shutting down; try again shortly.""",
    ),
    Explanation(
        "not_yet_visible",
        "The change that you wanted to see, min_seq, was not there before the deadline.",
        (
            "with several orchestrators, this one has not read that far yet",
            "min_seq is of another store",
        ),
        ("Try again, or with a longer timeout; use only a seq that this store answered with.",),
        """\
>>> memory.recall("tea", min_seq=10_000)
recollect.protocol.errors.NotYetVisible: Change 10000 is not visible here; the last one is 42. …""",
    ),
    Explanation(
        "embedder_unavailable",
        "The text could not be turned into a vector. What is stored is found by its words.",
        (
            "the embedding server does not answer, or its key is wrong",
            "embedding.dimensions does not fit the model",
        ),
        (
            "Search by words meanwhile: `recollect search` without --semantic.",
            "`recollect doctor` and `recollect stats` say what is wrong with the embedder.",
            "What was stored meanwhile is embedded by itself when it is back.",
        ),
        """\
$ recollect search "tea" --semantic
Error: The embedder … failed: …
Words still find: use `recollect search` without --semantic.
(embedder_unavailable)""",
    ),
    Explanation(
        "chat_unavailable",
        "The chat model that was to merge memories did not answer; nothing was changed.",
        (
            "consolidation.llm_url is wrong or its server away",
            "its key, in the variable that consolidation.llm_key_variable names, is refused",
        ),
        ("Mend that, or consolidate without a model: --strategy merge or keep_latest.",),
        """\
$ recollect consolidate user:anna --strategy llm_based
Error: …
(chat_unavailable)""",
    ),
    Explanation(
        "storage_full",
        "The disk is full; nothing was written. Reading goes on.",
        ("the disk with the data folder, the backup or the outbox has no space left",),
        (
            "Free some space: writing goes on by itself, nothing needs a restart.",
            "`recollect doctor` shows what takes the space; old backups may go.",
        ),
        """\
$ recollect add "One more"
Error: The disk is full or cannot be written; nothing was written. Free some space: writing …
(storage_full)""",
    ),
    Explanation(
        "storage_failed",
        "The database refused; nothing was written.",
        (
            "the data folder may not be read or written by this user",
            "PostgreSQL does not answer or refuses",
            "the database is damaged",
        ),
        (
            "`recollect doctor` looks into the database and says what to do.",
            "With PostgreSQL: check storage.url, and that the server runs.",
        ),
        """\
$ recollect orchestrator --data /root/memories
Error: The database refused: …
Check who may read and write the data folder; `recollect doctor` looks closer.
(storage_failed)""",
    ),
    Explanation(
        "deadline_exceeded",
        "The deadline had passed before the request was begun; it was not done.",
        ("the orchestrator is busy, or the timeout is short for what was asked",),
        ("Try again with a longer timeout, or ask for less at once.",),
        """\
>>> memory.recall("tea", timeout=0.001)
recollect.protocol.errors.DeadlineExceeded: The deadline had passed before the request was …""",
    ),
    Explanation(
        "internal",
        "A defect of Recollect. What is stored is whole; the request was not done.",
        ("a case that nobody thought of",),
        (
            "`recollect logs` has the details: look for the time of your call.",
            "Report it with those lines; take out what is private.",
        ),
        """\
recollect.protocol.errors.InternalError: recall failed by a defect of the orchestrator (…); …""",
    ),
    Explanation(
        "unreachable",
        "Nobody listens at the endpoint.",
        (
            "no orchestrator runs, or it listens elsewhere",
            "a firewall or a tunnel is in between",
        ),
        (
            "Start one: `recollect up`.",
            "If one runs, name its endpoint: --endpoint or RECOLLECT_ENDPOINT; `recollect up` "
            "says which it is.",
        ),
        """\
$ recollect ping
Error: No orchestrator answers at tcp://127.0.0.1:7331: start one with `recollect up`, or set …
(unreachable)""",
    ),
    Explanation(
        "connection_lost",
        "The line broke before the answer came.",
        (
            "the orchestrator was ended or started anew in between",
            "something else than an orchestrator listens at the endpoint",
        ),
        (
            "Try again: a write is repeated by its idempotency key and is never done twice.",
            "`recollect doctor` says how the orchestrator is.",
        ),
        """\
recollect.protocol.errors.ConnectionLost: The connection to tcp://127.0.0.1:7331 broke before …""",
    ),
    Explanation(
        "timeout",
        "There was no answer in time. Whether a write took effect is not known.",
        ("the orchestrator is busy, stopped or away", "the timeout is short for what was asked"),
        (
            "Try again with the same idempotency key, and the write is done once.",
            "`recollect status` and `recollect doctor` say how the orchestrator is.",
            "Give it longer: timeout=60 in a call, or Timeouts(call_s=60) for a client.",
        ),
        """\
>>> memory.consolidate("user:anna", timeout=1)
recollect.protocol.errors.RequestTimeout: No answer to consolidate in time. Whether it took …""",
    ),
    Explanation(
        "circuit_open",
        "Recent calls failed, so this one was not even sent.",
        ("the orchestrator has not answered several calls in a row",),
        (
            "Wait: after a few seconds one call tries again, and all is well if that succeeds.",
            "The message has the last error, which is what to mend.",
            'An outbox keeps writes meanwhile: MemoryClient(outbox="outbox.db").',
        ),
        """\
recollect.protocol.errors.CircuitOpen: Not sent, because …; the next try is in 4.2 s. The last …""",
    ),
    Explanation(
        "client_closed",
        "The client was closed before or during the call.",
        ("a call outside of its `with` block", "close() was called in another thread"),
        ("Make a new client, or call while it is open.",),
        """\
>>> memory.close()
>>> memory.ping()
recollect.protocol.errors.ClientClosed: The client was closed.""",
    ),
)
