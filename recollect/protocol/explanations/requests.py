"""Errors of a request that can never succeed as it is, or that does not fit what is there."""

from __future__ import annotations

from recollect.protocol.explanations.explanation import Explanation

REQUESTS = (
    Explanation(
        "invalid_argument",
        "A field is missing, has the wrong type, or is out of its range. Nothing was done.",
        (
            "a name was misspelt, or a value is not one of those that the field takes",
            "a filter names a field that there is not",
            "a namespace has no prefix: temp, session, user, app or project",
        ),
        (
            "Read the message: it names the field and says what it takes.",
            "docs/operations.md lists the fields of every operation.",
        ),
        """\
$ recollect add "Anna prefers green tea" --importance 7
Error: add_memory: importance is refused: expected float <= 1.0. (From 0 to 1; important …)
(invalid_argument)""",
    ),
    Explanation(
        "limit_exceeded",
        "Something is larger than a configured limit, which the message names. Nothing was done.",
        (
            "a memory, a batch, an answer or a list is longer than its limit",
            "an identity has as many memories or bytes as its quota allows",
        ),
        (
            "Send or ask for less at once: smaller batches, a lower limit, several documents.",
            "If the limit is too low for you, raise the setting that the message names.",
        ),
        """\
>>> memory.list_memories(limit=1_000_000)
recollect.protocol.errors.LimitExceeded: limit asks for 1,000,000 items; the limit …""",
    ),
    Explanation(
        "malformed_request",
        "What arrived is not a request: broken frames, broken MessagePack or broken JSON.",
        (
            "a client in another language does not follow the protocol",
            "a body over REST is not one JSON object, or has another content type",
        ),
        (
            "Compare with docs/protocol.md; over REST, send JSON with Content-Type: "
            "application/json.",
        ),
        """\
$ curl -s localhost:7333/v1/memories -H 'content-type: application/json' -d '{"content":'
{"type": "urn:recollect:error:malformed_request", …, "detail": "The body is not JSON: …", …}""",
    ),
    Explanation(
        "unknown_operation",
        "There is no operation, or no path, of that name.",
        (
            "the client is newer than the orchestrator",
            "a path of the REST side is misspelt",
        ),
        (
            "Compare the versions: `recollect version` shows both.",
            "docs/operations.md and /openapi.json list what there is.",
        ),
        """\
$ curl -s localhost:7333/v1/memory
{"type": "urn:recollect:error:unknown_operation", …, "detail": "There is nothing at this path; …""",
    ),
    Explanation(
        "unsupported_version",
        "The orchestrator speaks another version of the protocol than the client.",
        ("client and orchestrator come from releases that are too far apart",),
        ("Install the same release of Recollect on both sides.",),
        """\
>>> memory.ping()
recollect.protocol.errors.UnsupportedVersion: This orchestrator speaks version 1 …""",
    ),
    Explanation(
        "unsupported",
        "The request is valid, but this installation or this storage cannot do it.",
        (
            "a document is of a kind whose package is not installed",
            "a backup was asked of a store on PostgreSQL",
            "an outbox was asked about that the client was not given",
        ),
        ("Do what the message says: install the extra that it names, or use the other way.",),
        """\
$ recollect backup ./backups/monday
Error: On PostgreSQL, take backups with pg_dump or your provider's tools.
(unsupported)""",
    ),
    Explanation(
        "secret_refused",
        "The text seems to hold a password, a key or a token. Nothing was stored.",
        ("a log, a configuration or a conversation was remembered whole",),
        (
            "Take the secret out, and keep it where secrets are kept.",
            "trust.secrets is `refuse` there; with `mask` it is stored with the secret blotted "
            "out.",
        ),
        """\
$ recollect add "The deploy key is AKIA…"
Error: content seems to hold a secret (…); nothing was stored. Take it out, …
(secret_refused)""",
    ),
    Explanation(
        "path_refused",
        "The path is not a plain file or folder within documents.roots.",
        (
            "the folder is not named in documents.roots",
            "the path is relative, holds '..', or a link leads out of the roots",
        ),
        (
            "Give the whole path as it is where the orchestrator runs.",
            "Name the folder in documents.roots of the configuration, and start anew.",
        ),
        """\
$ recollect documents index /etc/hosts
Error: '/etc/hosts' does not lie within documents.roots (…), or a link leads out of them. …
(path_refused)""",
    ),
    Explanation(
        "unreadable_document",
        "The file is there, and has no text that could be remembered.",
        (
            "it is broken, encrypted or empty",
            "it is a PDF whose pages are images",
            "it is not UTF-8, or no text at all",
        ),
        ("Do what the message says: save it anew, without a password, as UTF-8, with its text.",),
        """\
$ recollect documents index /srv/documents/scan.pdf
Error: The PDF has no text: its pages are images. Run a text recognition over it first.
(unreadable_document)""",
    ),
    Explanation(
        "not_found",
        "There is no such memory, key, session, document, run or version, or you may not see it.",
        (
            "the id is wrong, or of another store",
            "it was deleted, purged or never there",
            "it lies in a namespace that you may not read, which looks the same",
        ),
        (
            "`recollect list`, `sessions list`, `documents list`, `runs` show what there is.",
            "`recollect whoami` shows what you may read.",
            "A deleted memory has its history still: `recollect history ID`.",
        ),
        """\
$ recollect get user:anna theme
Error: There is no memory under the key 'theme' in user:anna.
`recollect list` shows what there is.
(not_found)""",
    ),
    Explanation(
        "unauthenticated",
        "The orchestrator asks for a key, and there was none, or one that it does not know.",
        (
            "access.require_keys is on, or the orchestrator can be reached from other machines",
            "the key was revoked, or is of another orchestrator",
        ),
        (
            "Give the key: --key-file FILE or RECOLLECT_KEY_FILE; a bearer key in "
            "RECOLLECT_BEARER.",
            "On the machine of the orchestrator, RECOLLECT_DATA=<its data folder> is enough.",
            "`recollect keys new NAME`, run there, makes a key for somebody else.",
        ),
        """\
$ recollect ping
Error: The orchestrator at tcp://127.0.0.1:7331 asks for a key: name a key file with …
(unauthenticated)""",
    ),
    Explanation(
        "forbidden",
        "The identity is known, and has no such access there.",
        ("its grants do not cover the namespace, or only to read where writing was asked",),
        (
            "`recollect whoami` shows who you are and what you may do.",
            "Whoever administers it grants more, as the message says: `recollect keys grant …`.",
        ),
        """\
>>> memory.add_memory("A note", namespace="user:anna")
recollect.protocol.errors.Forbidden: The identity 'planner' has no write access to user:anna: …""",
    ),
    Explanation(
        "version_conflict",
        "Somebody changed it since you read it, so your change was not made.",
        ("two agents changed the same memory, and you gave expected_version",),
        ("Read it again, make your change to what is there now, and send it once more.",),
        """\
>>> memory.update_memory(tea, {"content": "Anna prefers black tea"}, expected_version=1)
recollect.protocol.errors.VersionConflict: Memory … is at version 2, not 1: read it again …""",
    ),
    Explanation(
        "already_exists",
        "The key, the id or the name is taken.",
        (
            "a memory has that key in its namespace",
            "an identity of that name has a key",
            "a folder that was to be made is there",
        ),
        (
            "Choose another key or name, or change the one that is there: `put` makes its next "
            "version.",
        ),
        """\
$ recollect add "dark" --namespace user:anna --key theme
Error: user:anna already has a memory with the key 'theme': update that one, or choose another …
(already_exists)""",
    ),
    Explanation(
        "cycle_refused",
        "A memory cannot be its own ancestor, nor a goal serve itself.",
        ("the parent lies below the memory that it was to become the parent of",),
        ("Choose another parent, or first move that one elsewhere.",),
        """\
>>> memory.update_memory(chapter, {"parent_id": its_paragraph})
recollect.protocol.errors.CycleRefused: … is below …, so it cannot become its parent.""",
    ),
    Explanation(
        "transition_refused",
        "From its present status, a session or task does not go to the one you asked for.",
        (
            "a session that has ended is not active again",
            "a phase of the workflow was skipped",
        ),
        ("The message names the statuses that can follow. For more work, begin a new session.",),
        """\
>>> memory.update_status(session, "active")
recollect.protocol.errors.TransitionRefused: Session … is archived and cannot become active: …""",
    ),
    Explanation(
        "lease_lost",
        "Somebody else holds the lease by now; what was done under the old one was not written.",
        (
            "a scheduler stood still for longer than its lease",
            "two schedulers run, and the other has taken over",
        ),
        ("None, as a rule: the scheduler acquires it anew, and a run goes on where it was.",),
        """\
recollect.protocol.errors.LeaseLost: The lease 'scheduler' is not held by the token 7 any …""",
    ),
    Explanation(
        "idempotency_conflict",
        "The same idempotency key came with another operation or payload.",
        ("a key was used for two different writes",),
        (
            "Use a new key for a new write; the same key is for trying the same write again.",
            "Without a key of yours, the client makes one for every call.",
        ),
        """\
>>> memory.add_memory("Something else", idempotency_key="note-1")
recollect.protocol.errors.IdempotencyConflict: The idempotency key 'note-1' was used before …""",
    ),
    Explanation(
        "changes_gone",
        "The changes after the one you know were trimmed, so they cannot be told one by one.",
        ("a subscriber was away for longer than changes are kept",),
        ("Read anew what you follow, then go on from the number in the message.",),
        """\
$ recollect feed --from 12
Error: The changes up to 5,000 were trimmed, and you have seen those up to 12: read anew …
(changes_gone)""",
    ),
    Explanation(
        "changes_ahead",
        "The store has not come so far as the change that you know.",
        ("the number is of another store", "the store was restored from an older backup"),
        ("Read anew what you follow, then go on from the number in the message.",),
        """\
$ recollect feed --from 99999
Error: The last change of this store is 120, and 99,999 is none of its numbers: …
(changes_ahead)""",
    ),
)
