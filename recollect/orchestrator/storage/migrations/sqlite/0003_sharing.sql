-- What else an entry of the journal says: for which task, whether it was denied, and why.
ALTER TABLE journal ADD COLUMN task_id TEXT;
ALTER TABLE journal ADD COLUMN outcome TEXT;
ALTER TABLE journal ADD COLUMN detail TEXT;
CREATE INDEX journal_by_subject ON journal (subject, seq);

-- Where the changes of a write were, so that its answer is repeated only to those who may see it.
ALTER TABLE idempotency ADD COLUMN namespaces TEXT;

-- For taking back what a source wrote.
CREATE INDEX memories_by_source ON memories (source, num) WHERE source IS NOT NULL;
-- For what a key held last.
CREATE INDEX memories_by_any_key ON memories (namespace, key, deleted_us) WHERE key IS NOT NULL;

-- Sessions: whose they are by the namespace, and how many events they have.
ALTER TABLE sessions ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN app TEXT NOT NULL DEFAULT 'default';
ALTER TABLE sessions ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
-- Colons and whitespace have no place in a part of a namespace; others than these are as rare as
-- they are harmless, since nobody had grants when these sessions were made.
UPDATE sessions SET namespace =
    'user:' || replace(replace(replace(user_id, '%', '%25'), ':', '%3A'), ' ', '%20');
DROP INDEX sessions_by_user;
CREATE INDEX sessions_by_user ON sessions (user_id, created_us, id);
CREATE INDEX sessions_by_age ON sessions (created_us, id);
CREATE INDEX sessions_by_status ON sessions (status, created_us, id);
CREATE INDEX sessions_open ON sessions (created_us, id)
    WHERE status IN ('created', 'active', 'paused');

-- What happened in a session; positions count from 1 without a gap.
CREATE TABLE session_events (
    session_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    author TEXT,
    event TEXT NOT NULL,
    PRIMARY KEY (session_id, position)
) WITHOUT ROWID;

-- State by key: of a session (owner is its id), a user or an app. `temp:` keys are never here.
CREATE TABLE session_state (
    scope TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (scope, owner, key)
) WITHOUT ROWID;

-- Who may come in, by which key, and how much they may do.
CREATE TABLE identities (
    name TEXT PRIMARY KEY,
    public_key TEXT,
    requests_per_s REAL,
    memories_max INTEGER,
    memories INTEGER NOT NULL DEFAULT 0,
    created_us INTEGER NOT NULL,
    revoked_us INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX identities_by_public_key ON identities (public_key)
    WHERE public_key IS NOT NULL;
CREATE TABLE grants (
    identity TEXT NOT NULL,
    pattern TEXT NOT NULL,
    access TEXT NOT NULL,
    PRIMARY KEY (identity, pattern)
) WITHOUT ROWID;

-- Memories of identities that may only have so many.
CREATE TABLE owned (
    num INTEGER PRIMARY KEY,
    identity TEXT NOT NULL
);

-- Files and texts whose chunks are memories.
CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    source TEXT NOT NULL,
    root TEXT,
    title TEXT NOT NULL,
    document_type TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    content_hash TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    modified_ns INTEGER,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX documents_by_source ON documents (namespace, source);
CREATE INDEX documents_by_root ON documents (root, source) WHERE root IS NOT NULL;
CREATE TABLE document_chunks (
    document_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    num INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (document_id, position)
) WITHOUT ROWID;
CREATE INDEX document_chunks_by_memory ON document_chunks (num);

-- Runs that changed many memories and can be undone, with what each did to which.
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    namespace TEXT,
    status TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    -- When it was last seen at work: one that has stopped is taken back.
    beat_us INTEGER NOT NULL,
    ended_us INTEGER,
    started_by TEXT,
    report TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_by_age ON runs (started_us, id);
CREATE INDEX runs_unfinished ON runs (status) WHERE status IN ('running', 'undoing');
CREATE TABLE run_items (
    run_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    num INTEGER NOT NULL,
    action TEXT NOT NULL,
    version_before INTEGER,
    version_after INTEGER,
    undone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, position)
) WITHOUT ROWID;
CREATE INDEX run_items_by_memory ON run_items (num);
