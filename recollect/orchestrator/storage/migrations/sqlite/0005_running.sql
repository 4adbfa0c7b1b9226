-- Who may do the work that only one may do at a time. The token grows with every new holder; what
-- is done in the name of a lease is refused once a larger one was given.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    token INTEGER NOT NULL,
    acquired_us INTEGER NOT NULL,
    renewed_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
) WITHOUT ROWID;

-- What the scheduler that holds the lease said of its jobs.
CREATE TABLE jobs (
    name TEXT PRIMARY KEY,
    description TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    schedule TEXT NOT NULL,
    limits TEXT NOT NULL,
    next_us INTEGER,
    announced_us INTEGER NOT NULL
) WITHOUT ROWID;

-- One row a run of a job: requested, running, then done, failed, timed_out, skipped or lost.
CREATE TABLE job_runs (
    id TEXT PRIMARY KEY,
    job TEXT NOT NULL,
    cause TEXT NOT NULL,
    status TEXT NOT NULL,
    dry_run INTEGER NOT NULL,
    requested_by TEXT,
    -- The moment of the schedule that it is for; a moment has one run that is not lost.
    scheduled_us INTEGER,
    requested_us INTEGER NOT NULL,
    started_us INTEGER,
    ended_us INTEGER,
    token INTEGER,
    holder TEXT,
    progress TEXT NOT NULL,
    counts TEXT NOT NULL,
    error TEXT
) WITHOUT ROWID;
CREATE INDEX job_runs_by_age ON job_runs (requested_us, id);
CREATE INDEX job_runs_by_job ON job_runs (job, requested_us, id);
CREATE UNIQUE INDEX job_runs_by_moment ON job_runs (job, scheduled_us)
    WHERE scheduled_us IS NOT NULL AND status <> 'lost';
CREATE INDEX job_runs_open ON job_runs (status, requested_us)
    WHERE status IN ('requested', 'running');

-- The error bus: one row a kind of error, found by the digest of what makes it one.
CREATE TABLE errors_seen (
    kind TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    identity TEXT NOT NULL,
    context TEXT NOT NULL,
    count INTEGER NOT NULL,
    first_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX errors_seen_by_age ON errors_seen (last_us, kind);

-- Where the journal begins since its oldest entries were trimmed: the number and hash of the last
-- one that is gone.
ALTER TABLE ledger ADD COLUMN trimmed_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN trimmed_head BLOB;

-- Of what was trimmed: who wrote which version of a memory under another name than their own, which
-- nothing else tells.
CREATE TABLE trimmed_writers (
    num INTEGER NOT NULL,
    version INTEGER NOT NULL,
    identity TEXT NOT NULL,
    PRIMARY KEY (num, version, identity)
) WITHOUT ROWID;
CREATE INDEX trimmed_writers_by_identity ON trimmed_writers (identity, num);

-- What was deleted or archived long ago, and what has expired and is not deleted yet.
CREATE INDEX memories_by_deletion ON memories (deleted_us) WHERE deleted_us IS NOT NULL;
CREATE INDEX memories_by_archiving ON memories (archived_us)
    WHERE archived_us IS NOT NULL AND deleted_us IS NULL;
DROP INDEX memories_by_expiry;
CREATE INDEX memories_by_expiry ON memories (expires_us)
    WHERE expires_us IS NOT NULL AND deleted_us IS NULL;

-- With the tier as well, so that the living are counted by namespace and tier without reading them.
DROP INDEX memories_by_namespace;
CREATE INDEX memories_by_namespace ON memories
    (namespace, num, deleted_us, archived_us, expires_us, tier);
