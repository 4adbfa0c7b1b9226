"""Sessions: their rows, statuses, events and state."""
