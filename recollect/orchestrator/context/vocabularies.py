"""Counting tokens by a real vocabulary, where there is one on this machine.

Nothing here ever goes to the network. `auto` takes what tiktoken has on disk, and else the
estimate; not the vocabulary of the embedding model, which is another kind: it drops line ends and
indentation, and counts a whole word of a script that it does not know as one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.protocol.errors import RecollectError
from recollect.tokens import Estimate, TokenCounter, up_to_a_word

if TYPE_CHECKING:
    from tiktoken import Encoding
    from tokenizers import Tokenizer

TIKTOKEN = "tiktoken:"
TIKTOKEN_URL = "https://openaipublic.blob.core.windows.net/encodings/{file}.tiktoken"
# The file of each encoding, and its SHA-256. tiktoken takes a file from its cache only if it is
# the right one and would fetch it anew otherwise, so both are looked at before.
TIKTOKEN_FILES = {
    "o200k_base": (
        "o200k_base",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "o200k_harmony": (
        "o200k_base",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "cl100k_base",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "p50k_base": (
        "p50k_base",
        "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    ),
}
AUTO = ("o200k_base", "cl100k_base")
FINGERPRINT_CHARS = 8


class TokenizerUnusable(RecollectError):
    """The configured tokenizer is not there, or cannot be read."""

    code = "tokenizer_unusable"


def counter_of(chosen: str) -> TokenCounter:
    """The counter that is set: auto, estimate, `tiktoken:` and an encoding, or a file."""
    if chosen == "estimate":
        return Estimate()
    if chosen == "auto":
        return next((TiktokenCounter(name) for name in AUTO if _on_disk(name)), Estimate())
    if chosen.startswith(TIKTOKEN):
        return TiktokenCounter(chosen.removeprefix(TIKTOKEN))
    return FileCounter(Path(chosen))


class TiktokenCounter:
    """Counts by one of tiktoken's encodings, if its vocabulary was fetched before."""

    def __init__(self, encoding: str) -> None:
        if encoding not in TIKTOKEN_FILES:
            raise TokenizerUnusable(
                f"context.tokenizer names the encoding {encoding!r}; known are "
                f"{', '.join(TIKTOKEN_FILES)}."
            )
        try:
            import tiktoken
        except ImportError:
            raise TokenizerUnusable(
                f"context.tokenizer is {TIKTOKEN}{encoding}, and tiktoken is not installed: "
                "`pip install tiktoken`, or set it to estimate."
            ) from None
        if not _on_disk(encoding):
            raise TokenizerUnusable(
                f"The vocabulary of {encoding} is not in tiktoken's folder {_folder()}: run "
                f"`python -c \"import tiktoken; tiktoken.get_encoding('{encoding}')\"` once on a "
                "machine with a network, with the same TIKTOKEN_CACHE_DIR, and bring the folder "
                "here; or set context.tokenizer to estimate."
            )
        self.name = f"{TIKTOKEN}{encoding}"
        self._encoding: Encoding = tiktoken.get_encoding(encoding)

    def count(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(text))

    def cut(self, text: str, tokens_max: int) -> str:
        tokens = self._encoding.encode_ordinary(text)
        if len(tokens) <= tokens_max:
            return text
        for kept in range(tokens_max, 0, -1):
            beginning = self._encoding.decode_bytes(tokens[:kept]).decode(errors="ignore")
            cut = up_to_a_word(text, len(beginning))
            # A word that ends elsewhere may be put together from other tokens.
            if self.count(cut) <= tokens_max:
                return cut
        return ""


class FileCounter:
    """Counts by a `tokenizer.json`, as many models bring it with them."""

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise TokenizerUnusable(
                "context.tokenizer names a file, and tokenizers is not installed: "
                "`pip install 'recollect[server]'`."
            ) from None
        try:
            content = path.read_bytes()
            tokenizer: Tokenizer = Tokenizer.from_buffer(content)
        except OSError as error:
            raise TokenizerUnusable(
                f"context.tokenizer is {str(path)!r}, which is neither auto, estimate or "
                f"tiktoken:ENCODING nor a file that can be read: {error.strerror}."
            ) from None
        except Exception as error:
            # What the package raises for a file that it does not understand is a bare Exception.
            raise TokenizerUnusable(
                f"context.tokenizer is {str(path)!r}, which is no tokenizer.json: {error}."
            ) from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # A text that spells a token of control is a text.
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        unknown = getattr(tokenizer.model, "unk_token", None)
        self._unknown = None if unknown is None else tokenizer.token_to_id(unknown)
        self.name = f"{path.name}:{hashlib.sha256(content).hexdigest()[:FINGERPRINT_CHARS]}"

    def count(self, text: str) -> int:
        return sum(cost for cost, _ in self._costs(text))

    def cut(self, text: str, tokens_max: int) -> str:
        costs = self._costs(text)
        spent, end = 0, 0
        for cost, here in costs:
            spent += cost
            if spent > tokens_max:
                break
            end = here
        else:
            return text
        while end:
            cut = up_to_a_word(text, end)
            if self.count(cut) <= tokens_max:
                return cut
            end = len(cut) - 1
        return ""

    def _costs(self, text: str) -> list[tuple[int, int]]:
        """What each token costs, and where it ends in the text."""
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        if self._unknown is None or self._unknown not in encoded.ids:
            return [(1, end) for _, end in encoded.offsets]
        # What this vocabulary cannot say, another says byte by byte.
        return [
            (1 if token != self._unknown else len(text[start:end].encode()), end)
            for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True)
        ]


def _folder() -> str:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable]
    return os.path.join(tempfile.gettempdir(), "data-gym-cache")


def _on_disk(encoding: str) -> bool:
    """Whether tiktoken is installed and has the vocabulary of an encoding."""
    try:
        import tiktoken  # noqa: F401
    except ImportError:
        return False
    if not (folder := _folder()):
        return False
    file, expected = TIKTOKEN_FILES[encoding]
    kept_as = hashlib.sha1(TIKTOKEN_URL.format(file=file).encode()).hexdigest()
    try:
        content = Path(folder, kept_as).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content).hexdigest() == expected
