"""Finding memories that say the same or contradict one another, and settling that."""
