"""Decisions: their columns, how they read as a text, and how they are found."""
