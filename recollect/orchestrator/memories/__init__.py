"""A memory: its row, its words, its strength, and how it is written and shown."""
