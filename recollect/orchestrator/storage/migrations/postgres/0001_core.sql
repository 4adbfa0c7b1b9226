-- The end of the journal: the last sequence number and the hash of its entry.
CREATE TABLE ledger (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    seq BIGINT NOT NULL,
    head BYTEA NOT NULL
);
INSERT INTO ledger (id, seq, head) VALUES (1, 0, decode(repeat('00', 32), 'hex'));

-- Audit and change feed: one row a change, chained by hash.
CREATE TABLE journal (
    seq BIGINT PRIMARY KEY,
    at_us BIGINT NOT NULL,
    identity TEXT NOT NULL,
    agent TEXT,
    operation TEXT NOT NULL,
    subject TEXT NOT NULL,
    namespace TEXT,
    version_before BIGINT,
    version_after BIGINT,
    session_id TEXT,
    trace TEXT,
    request_key TEXT,
    hash BYTEA NOT NULL
);

-- Everything that can be recalled. num is the sequence number of the change that created it, and is
-- what indexes and links refer to; id is what callers see.
CREATE TABLE memories (
    num BIGINT PRIMARY KEY,
    id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    key TEXT,
    version BIGINT NOT NULL,
    collection TEXT NOT NULL,
    memory_type TEXT NOT NULL,
    tier TEXT NOT NULL,
    content TEXT NOT NULL,
    value TEXT,
    metadata TEXT NOT NULL,
    tags TEXT NOT NULL,
    importance DOUBLE PRECISION NOT NULL,
    stability_s DOUBLE PRECISION NOT NULL,
    access_count BIGINT NOT NULL,
    last_access_us BIGINT NOT NULL,
    fades_us BIGINT NOT NULL,
    parent_id TEXT,
    session_id TEXT,
    created_by TEXT,
    updated_by TEXT,
    source TEXT,
    trust DOUBLE PRECISION NOT NULL,
    valid_from_us BIGINT,
    valid_to_us BIGINT,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    expires_us BIGINT,
    archived_us BIGINT,
    deleted_us BIGINT,
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
    num BIGINT NOT NULL,
    version BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    superseded_us BIGINT NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (num, version)
);

-- The meaning of a memory as a vector, with the model that made it.
CREATE TABLE vectors (
    num BIGINT PRIMARY KEY,
    model TEXT NOT NULL,
    vector BYTEA NOT NULL
);

CREATE TABLE relationships (
    source_num BIGINT NOT NULL,
    relationship_type TEXT NOT NULL,
    target_num BIGINT NOT NULL,
    strength DOUBLE PRECISION NOT NULL,
    created_us BIGINT NOT NULL,
    created_by TEXT,
    PRIMARY KEY (source_num, relationship_type, target_num)
);
CREATE INDEX relationships_by_target ON relationships (target_num, relationship_type, source_num);

CREATE TABLE context_groups (
    id TEXT PRIMARY KEY,
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    created_us BIGINT NOT NULL,
    created_by TEXT
);
CREATE TABLE group_members (
    group_id TEXT NOT NULL,
    num BIGINT NOT NULL,
    joined_seq BIGINT NOT NULL,
    PRIMARY KEY (group_id, num)
);
CREATE INDEX group_members_in_order ON group_members (group_id, joined_seq, num);
CREATE INDEX group_members_by_memory ON group_members (num);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_type TEXT NOT NULL,
    metadata TEXT NOT NULL,
    status TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    created_by TEXT
);
CREATE INDEX sessions_by_user ON sessions (user_id, created_us);

-- Answers of writes by their idempotency key, kept in the write's own transaction.
CREATE TABLE idempotency (
    identity TEXT NOT NULL,
    key TEXT NOT NULL,
    operation TEXT NOT NULL,
    payload_hash BYTEA NOT NULL,
    reply BYTEA NOT NULL,
    at_us BIGINT NOT NULL,
    PRIMARY KEY (identity, key)
);
CREATE INDEX idempotency_by_age ON idempotency (at_us);
