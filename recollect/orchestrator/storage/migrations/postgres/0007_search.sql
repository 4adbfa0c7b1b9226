-- The words of the memories that are searched: our own words with their places, and how many there
-- are of them.
CREATE TABLE memory_words (
    num BIGINT PRIMARY KEY,
    length BIGINT NOT NULL,
    words tsvector NOT NULL
);
-- A long list of what is not sorted in yet would have to be looked through by every search.
CREATE INDEX memory_words_by_word ON memory_words USING gin (words)
    WITH (fastupdate = on, gin_pending_list_limit = 512);

-- How many texts there are, and words in all of them.
CREATE TABLE word_totals (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    texts BIGINT NOT NULL,
    words BIGINT NOT NULL
);
INSERT INTO word_totals (id, texts, words) VALUES (1, 0, 0);

-- Vectors as vectors of pgvector, so that the database itself finds the nearest. That the database
-- has it is seen to before.
-- They were kept as the bytes of 32-bit floats, the lowest byte first.
CREATE FUNCTION pg_temp.floats (packed BYTEA) RETURNS REAL[] LANGUAGE sql AS $$
    SELECT array_agg(
        CASE WHEN (bits >> 23) & 255 = 0 THEN 0
        ELSE (CASE WHEN bits >> 31 = 1 THEN -1 ELSE 1 END)
            * power(2::float8, (((bits >> 23) & 255) - 127)::float8)
            * (1 + (bits & 8388607) / 8388608::float8)
        END::real ORDER BY at
    ) FROM (
        SELECT at, get_byte(packed, 4 * at)::bigint | (get_byte(packed, 4 * at + 1)::bigint << 8)
            | (get_byte(packed, 4 * at + 2)::bigint << 16)
            | (get_byte(packed, 4 * at + 3)::bigint << 24) AS bits
        FROM generate_series(0, length(packed) / 4 - 1) AS at
    ) AS read
$$;
-- What is no row of floats is made anew.
INSERT INTO unembedded (num) SELECT num FROM vectors WHERE length(vector) % 4 <> 0
    OR length(vector) = 0 ON CONFLICT (num) DO NOTHING;
DELETE FROM vectors WHERE length(vector) % 4 <> 0 OR length(vector) = 0;
DELETE FROM shadow_vectors WHERE length(vector) % 4 <> 0 OR length(vector) = 0;
ALTER TABLE vectors ALTER COLUMN vector TYPE vector USING pg_temp.floats(vector)::vector;
ALTER TABLE shadow_vectors ALTER COLUMN vector TYPE vector USING pg_temp.floats(vector)::vector;
DROP FUNCTION pg_temp.floats (BYTEA);
-- As long as its bytes are elsewhere; asked by statements that all storages share.
CREATE FUNCTION length (vector) RETURNS INTEGER LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS 'SELECT 4 * vector_dims($1)';
