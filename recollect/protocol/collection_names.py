"""The collections: what kinds of things are remembered, beside plain memories.

A search may be narrowed to some of them; nothing is ever stored in any other.
"""

from __future__ import annotations

MEMORIES = "memories"
GOALS = "goals"
TASKS = "tasks"
STEPS = "steps"
EVENTS = "events"
DECISIONS = "decisions"
PROCEDURES = "procedures"
INCIDENTS = "incidents"
CONFIG_CHANGES = "config_changes"
KNOWLEDGE = "knowledge"
DOCUMENTS = "documents"
EXECUTIONS = "executions"
PATTERNS = "patterns"
SUMMARIES = "summaries"
PREFERENCES = "preferences"
PERSONAS = "personas"
AGENT_STATES = "agent_states"

COLLECTIONS = (
    MEMORIES,
    GOALS,
    TASKS,
    STEPS,
    EVENTS,
    DECISIONS,
    PROCEDURES,
    INCIDENTS,
    CONFIG_CHANGES,
    KNOWLEDGE,
    DOCUMENTS,
    EXECUTIONS,
    PATTERNS,
    SUMMARIES,
    PREFERENCES,
    PERSONAS,
    AGENT_STATES,
)
