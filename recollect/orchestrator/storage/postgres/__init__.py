"""PostgreSQL: the same rows for any number of orchestrators."""

try:
    import psycopg as _psycopg  # noqa: F401
    import psycopg_pool as _psycopg_pool  # noqa: F401
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError(
        "PostgreSQL storage needs psycopg: pip install 'recollect[postgres]'", name="psycopg"
    ) from missing
