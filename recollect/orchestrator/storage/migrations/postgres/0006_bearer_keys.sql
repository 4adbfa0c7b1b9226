-- Keys that are shown with each request instead of by a connection. Only the SHA-256 of one is kept,
-- in hexadecimal; an identity may have several, beside its public key or without one.
CREATE TABLE bearer_keys (
    hash TEXT COLLATE "C" PRIMARY KEY,
    identity TEXT NOT NULL,
    label TEXT,
    created_us BIGINT NOT NULL,
    revoked_us BIGINT
);
CREATE INDEX bearer_keys_by_identity ON bearer_keys (identity, created_us);
