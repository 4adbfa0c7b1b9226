"""`recollect backup` and `restore`: of a data folder, and of a database on a server."""
