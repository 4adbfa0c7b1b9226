-- Since when a vector stands, so that a saved index can be compared with the vectors themselves.
-- Only living memories have one.
ALTER TABLE vectors ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
-- Vectors of the passages of a text that has several, if the model gives any: one after another, as
-- 8-bit numbers.
ALTER TABLE vectors ADD COLUMN passages BYTEA;
DELETE FROM vectors WHERE num IN (SELECT num FROM memories WHERE deleted_us IS NOT NULL);
CREATE INDEX vectors_by_seq ON vectors (seq);

-- Vectors of the model that the memories are being embedded with anew; it takes the place of the
-- other table when it is complete.
CREATE TABLE shadow_vectors (
    num BIGINT PRIMARY KEY,
    model TEXT NOT NULL,
    vector BYTEA NOT NULL,
    seq BIGINT NOT NULL DEFAULT 0,
    passages BYTEA
);
CREATE INDEX shadow_vectors_by_seq ON shadow_vectors (seq);

-- Living memories whose vector is still to be made.
CREATE TABLE unembedded (
    num BIGINT PRIMARY KEY
);

-- For questions about the past: what was superseded since then.
CREATE INDEX versions_by_superseded ON versions (superseded_us);

-- What the store knows of itself: its embedding model, the version of its full text.
CREATE TABLE properties (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Who has written into a namespace, so that a question that names one of them is understood.
CREATE TABLE authors (
    namespace TEXT COLLATE "C" NOT NULL,
    author TEXT NOT NULL,
    PRIMARY KEY (namespace, author)
);
INSERT INTO authors (namespace, author)
    SELECT DISTINCT namespace, created_by FROM memories WHERE created_by IS NOT NULL;
