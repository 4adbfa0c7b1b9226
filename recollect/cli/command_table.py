"""Every command by name: what it is for, in a line, and where it lives.

Nothing is imported for this, so the help of the whole comes at once, and a command waits for no
other. The line is also the first of the command's own help; a test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One command, or one group of commands."""

    name: str
    place: str
    """Its module below `recollect.cli`, a colon, and its function or group there."""
    summary: str


PANELS: dict[str, tuple[Entry, ...]] = {
    "Run": (
        Entry(
            "demo",
            "demo_command:demo",
            "See it remember, forget and survive a crash, on sample data; nothing is left of it.",
        ),
        Entry(
            "up",
            "process_commands:up",
            "Start everything on this machine, and keep it running until Ctrl-C.",
        ),
        Entry(
            "down",
            "process_commands:down",
            "Stop everything that `recollect up` started on a data folder.",
        ),
        Entry(
            "logs",
            "logs_command:logs",
            "Show what the processes wrote into their logs, in order of time.",
        ),
        Entry(
            "orchestrator",
            "process_commands:orchestrator",
            "Run the orchestrator in the foreground; `recollect up` is the usual way.",
        ),
        Entry(
            "gateway",
            "companion_commands:gateway",
            "Speak REST, MCP and gRPC for whoever does not speak ZeroMQ; `recollect up` starts it "
            "too.",
        ),
        Entry(
            "health",
            "companion_commands:health",
            "Watch everything, tell how it is, and serve the dashboard; `recollect up` starts it "
            "too.",
        ),
        Entry(
            "scheduler",
            "companion_commands:scheduler",
            "Run the scheduler in the foreground; `recollect up` starts one.",
        ),
        Entry(
            "mcp",
            "mcp_command:served",
            "Serve the memory as MCP tools to an AI client that starts this command.",
        ),
    ),
    "Remember": (
        Entry("add", "memory_commands:add", "Store a memory."),
        Entry(
            "put",
            "keyed_commands:put",
            "Store a value under a key: new, or as the next version of what is there.",
        ),
        Entry(
            "get",
            "memory_commands:get",
            "Show one memory, whole: by its id, or by its namespace and key.",
        ),
        Entry(
            "recall",
            "search_commands:recall",
            "Find what helps with a question: by words, by meaning, and by who said it and when.",
        ),
        Entry(
            "search",
            "search_commands:search",
            "Find memories by their words alone, or with --semantic by their meaning alone.",
        ),
        Entry("list", "memory_commands:list_", "List memories, the newest first."),
        Entry(
            "history",
            "memory_commands:history",
            "Show the versions of a memory, the newest first, also of a deleted one.",
        ),
        Entry(
            "namespaces",
            "keyed_commands:namespaces",
            "List the namespaces that hold memories.",
        ),
        Entry(
            "sessions",
            "sessions_command:sessions",
            "Look at sessions, their events and their state, and end them.",
        ),
        Entry(
            "documents",
            "documents_command:documents",
            "Read files and texts into the memory, keep them up to date, and search them.",
        ),
    ),
    "Work": (
        Entry(
            "context",
            "agents.context_commands:context",
            "Print what to have in view for a task: how things stand, and what is remembered of "
            "it.",
        ),
        Entry(
            "replay",
            "agents.context_commands:replay",
            "Print a context as it was given before: the same memories in the same versions.",
        ),
        Entry(
            "goals",
            "agents.goals_command:goals",
            "Show the goals that are active, the most urgent first.",
        ),
        Entry(
            "decisions",
            "agents.decision_commands:decisions",
            "Show what was decided, why, and what came of it: the latest, or with --similar the "
            "nearest.",
        ),
        Entry(
            "patterns",
            "agents.pattern_commands:patterns",
            "Show what was learned from how tasks went, the most certain first; or what fits a "
            "task.",
        ),
        Entry(
            "events",
            "agents.operational_commands:events",
            "Show the last events, the newest first.",
        ),
        Entry(
            "snapshot",
            "agents.operational_commands:snapshot",
            "Show how things stand: goals, active tasks, metrics and the last events.",
        ),
        Entry(
            "tasks",
            "agents.tasks_command:tasks",
            "Look at tasks: how they stand, their steps, and what came of them.",
        ),
    ),
    "Settle": (
        Entry(
            "conflicts",
            "run_commands:conflicts",
            "Show memories that nearly repeat one another, or contradict one another.",
        ),
        Entry(
            "consolidate",
            "run_commands:consolidate",
            "Settle what repeats or contradicts. What is given up is archived, and can be undone.",
        ),
        Entry(
            "migrate",
            "run_commands:migrate",
            "Move old memories on to the next tier, and sum up those that belong together.",
        ),
        Entry(
            "forget-source",
            "run_commands:forget_source",
            "Take back all that a source wrote, and all that was made from it.",
        ),
        Entry("runs", "run_commands:runs", "Show runs, the latest first."),
        Entry(
            "undo",
            "run_commands:undo",
            "Undo a run: what it archived or deleted is back, what it wrote is gone.",
        ),
    ),
    "Look after it": (
        Entry(
            "status",
            "status_command:status",
            "Show how everything is; exits with 0 if healthy, 1 if degraded, 2 if down.",
        ),
        Entry(
            "ping",
            "ping_commands:ping",
            "Ask whether the orchestrator is there, and how fast it answers.",
        ),
        Entry("stats", "ping_commands:stats", "Show counts, sizes, queues and rates."),
        Entry(
            "whoami",
            "ping_commands:whoami",
            "Show who you are to the orchestrator, and what you may do.",
        ),
        Entry(
            "doctor",
            "doctor_command:doctor",
            "Look for trouble, and say what to do about it. Changes nothing; works while all runs.",
        ),
        Entry(
            "explain",
            "explain_command:explain",
            "Say what an error code means, why it happens, and what to do about it.",
        ),
        Entry(
            "audit",
            "audit_commands:audit",
            "Show who did what, the latest first; or verify that nobody changed the log.",
        ),
        Entry(
            "feed",
            "feed_commands:feed",
            "Follow the changes as they come, until Ctrl-C; over restarts too.",
        ),
        Entry("errors", "feed_commands:errors", "Show what went wrong lately, in any process."),
        Entry(
            "backup",
            "backups.commands:backup",
            "Copy the whole store, as it is at one moment, also while it is in use.",
        ),
        Entry(
            "restore",
            "backups.commands:restore",
            "Make a data folder, or fill a database, from a backup that is found whole.",
        ),
        Entry(
            "migrate-storage",
            "storage_command:migrate_storage",
            "Copy a stopped store from SQLite to PostgreSQL, or back, with everything in it.",
        ),
        Entry(
            "export",
            "exchange_commands:export",
            "Write all memories, sessions and records to a file: complete, with all versions.",
        ),
        Entry(
            "import",
            "exchange_commands:import_",
            "Take an export in, or what another program has remembered. Again, it adds nothing "
            "twice.",
        ),
        Entry(
            "reembed",
            "reembed_command:reembed",
            "Embed all memories anew with another model, in the background; searches go on "
            "meanwhile.",
        ),
        Entry(
            "version",
            "ping_commands:version",
            "Show the version of Recollect and of what it stands on.",
        ),
        Entry(
            "models",
            "models_command:models",
            "Install and find the models that turn text into vectors.",
        ),
        Entry(
            "jobs",
            "jobs_command:jobs",
            "Look at the jobs of the scheduler and at what they did, and run one now.",
        ),
        Entry("keys", "keys.commands:keys", "Make keys, and say what their holders may do."),
    ),
}

BY_NAME = {entry.name: entry for entries in PANELS.values() for entry in entries}

EXIT_CODES = {
    0: "it is done",
    1: "it failed or was refused: the error says why, and `recollect explain CODE` tells more",
    2: "the command line, the configuration or the installation is wrong; nothing was begun",
    130: "it was interrupted, by Ctrl-C",
}
"""What every command ends with; one that says more by its code says so in its help."""
