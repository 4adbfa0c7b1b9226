"""Meaning as vectors: the interface, and a light embedder that needs no weights."""
