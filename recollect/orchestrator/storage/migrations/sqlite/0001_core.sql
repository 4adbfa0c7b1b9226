-- The end of the journal: the last sequence number and the hash of its entry.
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL,
    head BLOB NOT NULL
);
INSERT INTO ledger (id, seq, head) VALUES (1, 0, zeroblob(32));

-- Audit and change feed: one row a change, chained by hash.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    identity TEXT NOT NULL,
    agent TEXT,
    operation TEXT NOT NULL,
    subject TEXT NOT NULL,
    namespace TEXT,
    version_before INTEGER,
    version_after INTEGER,
    session_id TEXT,
    trace TEXT,
    request_key TEXT,
    hash BLOB NOT NULL
);

-- Everything that can be recalled. num is the sequence number of the change that created it, and is
-- what indexes and links refer to; id is what callers see.
CREATE TABLE memories (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT,
    version INTEGER NOT NULL,
    collection TEXT NOT NULL,
    memory_type TEXT NOT NULL,
    tier TEXT NOT NULL,
    content TEXT NOT NULL,
    value TEXT,
    metadata TEXT NOT NULL,
    tags TEXT NOT NULL,
    importance REAL NOT NULL,
    stability_s REAL NOT NULL,
    access_count INTEGER NOT NULL,
    last_access_us INTEGER NOT NULL,
    fades_us INTEGER NOT NULL,
    parent_id TEXT,
    session_id TEXT,
    created_by TEXT,
    updated_by TEXT,
    source TEXT,
    trust REAL NOT NULL,
    valid_from_us INTEGER,
    valid_to_us INTEGER,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    expires_us INTEGER,
    archived_us INTEGER,
    deleted_us INTEGER,
    operation TEXT NOT NULL
);
CREATE UNIQUE INDEX memories_by_id ON memories (id);
CREATE UNIQUE INDEX memories_by_key ON memories (namespace, key)
    WHERE key IS NOT NULL AND deleted_us IS NULL;
CREATE INDEX memories_by_namespace ON memories (namespace, num);
CREATE INDEX memories_by_parent ON memories (parent_id, created_us, num) WHERE parent_id IS NOT NULL;
CREATE INDEX memories_by_session ON memories (session_id, num) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_fading ON memories (fades_us)
    WHERE deleted_us IS NULL AND archived_us IS NULL;
CREATE INDEX memories_by_expiry ON memories (expires_us) WHERE expires_us IS NOT NULL;

-- What a memory was before its present version.
CREATE TABLE versions (
    num INTEGER NOT NULL,
    version INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    superseded_us INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (num, version)
) WITHOUT ROWID;

-- The meaning of a memory as a vector, with the model that made it.
CREATE TABLE vectors (
    num INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
);

-- Words of the living memories; fed once a batch, see search/lexical.py.
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    content,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE relationships (
    source_num INTEGER NOT NULL,
    relationship_type TEXT NOT NULL,
    target_num INTEGER NOT NULL,
    strength REAL NOT NULL,
    created_us INTEGER NOT NULL,
    created_by TEXT,
    PRIMARY KEY (source_num, relationship_type, target_num)
) WITHOUT ROWID;
CREATE INDEX relationships_by_target ON relationships (target_num, relationship_type, source_num);

CREATE TABLE context_groups (
    id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    created_us INTEGER NOT NULL,
    created_by TEXT
);
CREATE TABLE group_members (
    group_id TEXT NOT NULL,
    num INTEGER NOT NULL,
    joined_seq INTEGER NOT NULL,
    PRIMARY KEY (group_id, num)
) WITHOUT ROWID;
CREATE INDEX group_members_in_order ON group_members (group_id, joined_seq, num);
CREATE INDEX group_members_by_memory ON group_members (num);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_type TEXT NOT NULL,
    metadata TEXT NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    created_by TEXT
);
CREATE INDEX sessions_by_user ON sessions (user_id, created_us);

-- Answers of writes by their idempotency key, kept in the write's own transaction.
CREATE TABLE idempotency (
    identity TEXT NOT NULL,
    key TEXT NOT NULL,
    operation TEXT NOT NULL,
    payload_hash BLOB NOT NULL,
    reply BLOB NOT NULL,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (identity, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (at_us);
