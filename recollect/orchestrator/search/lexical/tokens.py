"""The words of a text as FTS5 itself takes them, stems included."""

from __future__ import annotations

import threading

import apsw

TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2")
"""As the table in the schema declares it."""


class Tokens:
    """FTS5's own tokenizer, so that no stem is ever guessed."""

    def __init__(self) -> None:
        # A connection belongs to one thread at a time.
        self._lock = threading.Lock()
        self._connection = apsw.Connection(":memory:")
        name, *options = TOKENIZER
        self._stemming = self._connection.fts5_tokenizer(name, options)
        self._plain = self._connection.fts5_tokenizer(options[0], options[1:])

    def stems(self, text: str) -> list[str]:
        """The words of a text as they stand in the index, in order."""
        return self._run(self._stemming, text)

    def folded(self, text: str) -> list[str]:
        """The words of a text in small letters without accents, with their endings."""
        return self._run(self._plain, text)

    def _run(self, tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
        data = text.encode("utf-8", "replace")
        with self._lock:
            found = tokenizer(
                data, apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
            )
        return [str(token) for token in found]
