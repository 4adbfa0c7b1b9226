-- Keys that are shown with each request instead of by a connection. Only the SHA-256 of one is kept,
-- in hexadecimal; an identity may have several, beside its public key or without one.
CREATE TABLE bearer_keys (
    hash TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    label TEXT,
    created_us INTEGER NOT NULL,
    revoked_us INTEGER
) WITHOUT ROWID;
CREATE INDEX bearer_keys_by_identity ON bearer_keys (identity, created_us);
