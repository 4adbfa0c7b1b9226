-- Typed columns of memories that are more than a text. `num` is always the number of the memory;
-- what is deleted, archived or expired says the memory alone. A purge empties these as well.

CREATE TABLE goals (
    num INTEGER PRIMARY KEY,
    status TEXT NOT NULL,
    priority REAL NOT NULL,
    progress REAL NOT NULL,
    due_us INTEGER,
    parent_num INTEGER,
    ended_us INTEGER
);
CREATE INDEX goals_active ON goals (priority DESC, coalesce(due_us, 9223372036854775807), num)
    WHERE status = 'active';

-- A task's own name is the key of its memory, after `task/`.
CREATE TABLE tasks (
    num INTEGER PRIMARY KEY,
    goal_num INTEGER,
    task_type TEXT NOT NULL,
    status TEXT NOT NULL,
    phase TEXT NOT NULL,
    -- Why it is in that phase.
    phase_reason TEXT NOT NULL,
    assigned_to TEXT,
    description TEXT NOT NULL,
    summary TEXT NOT NULL,
    steps INTEGER NOT NULL,
    started_us INTEGER,
    ended_us INTEGER
);
CREATE INDEX tasks_by_goal ON tasks (goal_num, num) WHERE goal_num IS NOT NULL;
CREATE INDEX tasks_summed_up ON tasks (ended_us, num) WHERE ended_us IS NOT NULL AND summary <> '';

CREATE TABLE steps (
    num INTEGER PRIMARY KEY,
    task_num INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    tool_name TEXT NOT NULL,
    parameters TEXT NOT NULL,
    output TEXT NOT NULL,
    truncated INTEGER NOT NULL,
    success INTEGER NOT NULL,
    duration_ms REAL NOT NULL
);
CREATE INDEX steps_by_task ON steps (task_num, num);
CREATE INDEX preferences_by_key ON memories (namespace, key) WHERE collection = 'preferences';

-- Events that were critical. The id of such an event is that of its memory.
CREATE TABLE events (
    num INTEGER PRIMARY KEY,
    category TEXT NOT NULL,
    data TEXT NOT NULL,
    task_id TEXT
);

CREATE TABLE decisions (
    num INTEGER PRIMARY KEY,
    task_id TEXT,
    goal_num INTEGER,
    receipt_id TEXT,
    context TEXT NOT NULL,
    options TEXT NOT NULL,
    choice TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    confidence REAL NOT NULL,
    outcome TEXT,
    success INTEGER,
    outcome_us INTEGER,
    outcome_by TEXT
);
CREATE INDEX decisions_by_task ON decisions (task_id, num) WHERE task_id IS NOT NULL;
CREATE INDEX decisions_by_goal ON decisions (goal_num, num) WHERE goal_num IS NOT NULL;

-- The name of a procedure is the key of its memory, after `procedure/`.
CREATE TABLE procedures (
    num INTEGER PRIMARY KEY,
    description TEXT NOT NULL,
    steps TEXT NOT NULL
);

CREATE TABLE incidents (
    num INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    severity TEXT NOT NULL,
    cause TEXT NOT NULL,
    resolution TEXT NOT NULL,
    occurred_us INTEGER,
    resolved_us INTEGER
);

CREATE TABLE config_changes (
    num INTEGER PRIMARY KEY,
    component TEXT NOT NULL,
    parameter TEXT NOT NULL,
    old_value TEXT NOT NULL,
    new_value TEXT NOT NULL,
    reason TEXT NOT NULL
);
-- Each name in an index of its own: both together may be longer than an entry of one can be.
CREATE INDEX config_changes_by_parameter ON config_changes (parameter, num);
CREATE INDEX config_changes_by_component ON config_changes (component, num);

CREATE TABLE executions (
    num INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    task_type TEXT NOT NULL,
    task_description TEXT NOT NULL,
    summary TEXT NOT NULL,
    success INTEGER NOT NULL,
    error_patterns TEXT NOT NULL,
    duration_ms REAL,
    reuse_count INTEGER NOT NULL
);
CREATE INDEX executions_by_task ON executions (task_id, num);
CREATE INDEX executions_by_type ON executions (task_type, num);

CREATE TABLE patterns (
    num INTEGER PRIMARY KEY,
    pattern_type TEXT NOT NULL,
    task_type TEXT NOT NULL,
    -- Executions for and against it, then what those who used it said.
    successes REAL NOT NULL,
    failures REAL NOT NULL,
    helped REAL NOT NULL,
    misled REAL NOT NULL,
    usage_count INTEGER NOT NULL,
    -- What follows from these: how far it is trusted, and the same less what is not known.
    confidence REAL NOT NULL,
    standing REAL NOT NULL
);
CREATE INDEX patterns_by_type ON patterns (task_type, num);
CREATE INDEX patterns_by_standing ON patterns (standing, num);
-- What a pattern was learned from.
CREATE TABLE pattern_evidence (
    pattern_num INTEGER NOT NULL,
    execution_num INTEGER NOT NULL,
    PRIMARY KEY (pattern_num, execution_num)
) WITHOUT ROWID;
CREATE INDEX pattern_evidence_by_execution ON pattern_evidence (execution_num);

-- Contexts that were given: which memories in which versions, nothing of their texts.
CREATE TABLE receipts (
    id TEXT PRIMARY KEY,
    at_us INTEGER NOT NULL,
    identity TEXT NOT NULL,
    agent TEXT,
    namespace TEXT,
    task_id TEXT,
    task_description TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    tokens_max INTEGER NOT NULL,
    tokenizer TEXT NOT NULL,
    -- What makes its fences its own, and how things stood, which no memory tells.
    frame TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX receipts_by_age ON receipts (at_us, id);
CREATE INDEX receipts_by_identity ON receipts (identity, at_us, id);
CREATE TABLE receipt_items (
    receipt_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    num INTEGER NOT NULL,
    -- Named even when the memory is purged.
    memory_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    tier TEXT NOT NULL,
    score REAL NOT NULL,
    tokens INTEGER NOT NULL,
    -- How much of its text was given; all of it if absent.
    chars INTEGER,
    PRIMARY KEY (receipt_id, position)
) WITHOUT ROWID;
CREATE INDEX receipt_items_by_num ON receipt_items (num);

-- Some runs are gone on with when they were broken off, by the next that is about the same.
ALTER TABLE runs ADD COLUMN scope TEXT;
-- How often that was; who had the run before no longer has it.
ALTER TABLE runs ADD COLUMN resumed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_broken_off ON runs (identity, kind, scope, started_us)
    WHERE status = 'interrupted';
-- What may be due to move on to the next tier, the oldest first.
CREATE INDEX memories_by_tier ON memories (tier, updated_us, num, namespace, expires_us)
    WHERE tier <> 'long' AND deleted_us IS NULL AND archived_us IS NULL
        AND collection NOT IN ('agent_states', 'documents', 'personas', 'preferences');

-- Memories that are more than a text are few beside those that are not.
CREATE INDEX memories_by_collection ON memories (collection, namespace, num)
    WHERE collection <> 'memories';
-- Chunks of documents are a collection of their own from now on.
UPDATE memories SET collection = 'documents' WHERE num IN (SELECT num FROM document_chunks);
