"""Taking memories along: files of the export format, and what other programs have written.

The format is described in docs/export-format.md. Everything here is a client of the orchestrator.
"""
