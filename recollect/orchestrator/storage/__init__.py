"""Rows and transactions: the interface, SQLite embedded, PostgreSQL for a fleet."""
