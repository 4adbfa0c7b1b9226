"""A store taken to another storage, table by table, with all that it holds."""
