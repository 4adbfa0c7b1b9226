-- What else an entry of the journal says: for which task, whether it was denied, and why.
ALTER TABLE journal ADD COLUMN task_id TEXT;
ALTER TABLE journal ADD COLUMN outcome TEXT;
ALTER TABLE journal ADD COLUMN detail TEXT;
-- Namespaces are compared as ranges, byte by byte, whatever the language of the database.
ALTER TABLE journal ALTER COLUMN namespace TYPE TEXT COLLATE "C";
CREATE INDEX journal_by_subject ON journal (subject, seq);
CREATE INDEX journal_by_time ON journal (at_us, seq);
CREATE INDEX journal_by_task ON journal (task_id, seq) WHERE task_id IS NOT NULL;
CREATE INDEX journal_by_trace ON journal (trace, seq) WHERE trace IS NOT NULL;
CREATE INDEX journal_by_outcome ON journal (outcome, seq) WHERE outcome IS NOT NULL;

-- Where the changes of a write were, so that its answer is repeated only to those who may see it.
ALTER TABLE idempotency ADD COLUMN namespaces TEXT;

-- For taking back what a source wrote.
CREATE INDEX memories_by_source ON memories (source, num) WHERE source IS NOT NULL;
-- With what tells the living from the rest, so that they are counted without reading them.
DROP INDEX memories_by_namespace;
CREATE INDEX memories_by_namespace ON memories
    (namespace, num, deleted_us, archived_us, expires_us);
-- For what a key held last.
CREATE INDEX memories_by_any_key ON memories (namespace, key, deleted_us) WHERE key IS NOT NULL;

-- Sessions: whose they are by the namespace, and how many events they have.
ALTER TABLE sessions ADD COLUMN namespace TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN app TEXT NOT NULL DEFAULT 'default';
ALTER TABLE sessions ADD COLUMN events BIGINT NOT NULL DEFAULT 0;
-- Colons and whitespace have no place in a part of a namespace; others than these are as rare as
-- they are harmless, since nobody had grants when these sessions were made.
UPDATE sessions SET namespace =
    'user:' || replace(replace(replace(user_id, '%', '%25'), ':', '%3A'), ' ', '%20');
DROP INDEX sessions_by_user;
CREATE INDEX sessions_by_user ON sessions (user_id, created_us, id);
CREATE INDEX sessions_by_age ON sessions (created_us, id);
CREATE INDEX sessions_by_status ON sessions (status, created_us, id);
CREATE INDEX sessions_open ON sessions (created_us, id)
    WHERE status NOT IN ('terminated', 'archived');

-- What happened in a session; positions count from 1 without a gap.
CREATE TABLE session_events (
    session_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    at_us BIGINT NOT NULL,
    author TEXT,
    event TEXT NOT NULL,
    PRIMARY KEY (session_id, position)
);

-- State by key: of a session (owner is its id), a user or an app. `temp:` keys are never here.
CREATE TABLE session_state (
    scope TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (scope, owner, key)
);

-- Who may come in, by which key, and how much they may do.
CREATE TABLE identities (
    name TEXT PRIMARY KEY,
    public_key TEXT,
    requests_per_s DOUBLE PRECISION,
    memories_max BIGINT,
    memories BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL,
    revoked_us BIGINT
);
CREATE UNIQUE INDEX identities_by_public_key ON identities (public_key)
    WHERE public_key IS NOT NULL;
CREATE TABLE grants (
    identity TEXT NOT NULL,
    pattern TEXT NOT NULL,
    access TEXT NOT NULL,
    PRIMARY KEY (identity, pattern)
);

-- Memories of identities that may only have so many.
CREATE TABLE owned (
    num BIGINT PRIMARY KEY,
    identity TEXT NOT NULL
);

-- Files and texts whose chunks are memories. Of the text itself only the memories hold anything.
CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    namespace TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    root TEXT,
    title TEXT NOT NULL,
    -- Whether somebody gave the title; one that was found changes with the document.
    titled INTEGER NOT NULL,
    document_type TEXT NOT NULL,
    trust DOUBLE PRECISION NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    content_hash TEXT NOT NULL,
    -- The rules by which its chunks were cut.
    cut_by TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    modified_ns BIGINT,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX documents_by_source ON documents (namespace, source);
CREATE TABLE document_chunks (
    document_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    num BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    -- Where it begins: a line of the document, or of one of its pages.
    line BIGINT NOT NULL,
    page BIGINT,
    PRIMARY KEY (document_id, position)
);
CREATE INDEX document_chunks_by_memory ON document_chunks (num);

-- Runs that changed many memories and can be undone, with what each did to which.
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    namespace TEXT COLLATE "C",
    status TEXT NOT NULL,
    started_us BIGINT NOT NULL,
    -- When it was last seen at work: one that has stopped is taken back.
    beat_us BIGINT NOT NULL,
    ended_us BIGINT,
    started_by TEXT,
    -- Where its changes are, a line each: who may not see one of them sees nothing of the run.
    namespaces TEXT NOT NULL,
    -- Which request it answers, so that the same one again is answered alike and not done again.
    identity TEXT NOT NULL,
    request_key TEXT,
    payload_hash BYTEA,
    -- Ids and counts; nothing of what memories say, which a purge could not take away here.
    report TEXT NOT NULL
);
CREATE INDEX runs_by_age ON runs (started_us, id);
CREATE UNIQUE INDEX runs_by_request ON runs (identity, request_key)
    WHERE request_key IS NOT NULL;
CREATE INDEX runs_unfinished ON runs (status) WHERE status IN ('running', 'undoing');
CREATE TABLE run_items (
    run_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    num BIGINT NOT NULL,
    action TEXT NOT NULL,
    version_before BIGINT,
    version_after BIGINT,
    undone BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, position)
);
CREATE INDEX run_items_by_memory ON run_items (num);
