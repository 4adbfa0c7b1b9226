"""Commands over what agents do: their context, goals, tasks, decisions, lessons and events."""
