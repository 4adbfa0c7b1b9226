"""Arrays of numbers as PostgreSQL takes them: whole numbers as BIGINT[], others as pgvector's type.

They travel in binary. Of what type a parameter is, the server infers from the statement.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

INT8 = 20
FIND_TYPE = "SELECT CAST(to_regtype('vector') AS oid)"
_array_heading = struct.Struct(">iiiii")
"""One dimension, no NULLs, the type of its items, how many they are, and where they begin."""
_vector_heading = struct.Struct(">HH")
_item = np.dtype([("bytes", ">i4"), ("value", ">i8")])


class ArrayDumper(Dumper):
    """An array on its way in."""

    format = Format.BINARY

    def dump(self, obj: Any) -> Buffer:
        if obj.dtype.kind == "i":
            items = np.empty(len(obj), dtype=_item)
            items["bytes"], items["value"] = 8, obj
            return _array_heading.pack(1, 0, INT8, len(obj), 1) + bytes(items)
        items = obj.astype(">f4")
        return _vector_heading.pack(obj.size, 0) + bytes(items)


class VectorLoader(Loader):
    """A vector on its way out, as the bytes of 32-bit floats that every storage gives."""

    def load(self, data: Buffer) -> bytes:
        text = bytes(data).decode()
        return np.fromstring(text[1:-1], dtype=np.float32, sep=",").tobytes()


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Have a connection take arrays, and vectors if the database knows that type already."""
    connection.adapters.register_dumper(np.ndarray, ArrayDumper)
    [(oid,)] = connection.execute(FIND_TYPE).fetchall()
    if oid is not None:
        connection.adapters.register_loader(oid, VectorLoader)
