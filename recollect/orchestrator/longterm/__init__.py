"""Long-term memory: columns of procedures, incidents and changes, and how they read as a text."""
