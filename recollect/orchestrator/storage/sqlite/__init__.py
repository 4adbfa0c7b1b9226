"""SQLite, embedded: a database file in the data folder."""
