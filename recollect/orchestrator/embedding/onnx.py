"""An embedder that runs a model here: any folder with `model.onnx` and `tokenizer.json`.

A text longer than the model can read at once is read in windows, and its vector is the mean over
the tokens of all of them, up to a bound. The vectors of its passages are means over their tokens in
the same windows.

Texts are run in small batches of similar length, so that hardly any padding is computed. A model
with 8-bit weights scales a batch as a whole, so the vector of a text depends on its company: alone
and among others, a sentence has a cosine of about 0.99 with itself, and a text of a word or two
sometimes as little as 0.95. Whoever asks whether two texts are the same must compare the texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recollect.models.catalogue import MODEL_FILE, TOKENIZER_FILE, Pooling
from recollect.models.errors import ExtraMissing, ModelDamaged
from recollect.orchestrator.embedding.interface import Kind, Vectors
from recollect.orchestrator.embedding.passages import (
    Labels,
    PassageSums,
    Spans,
    Split,
    labels_of,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BATCH_TEXTS_MAX = 8  # more are no faster on one thread, and disturb each other more
BATCH_TOKENS_MAX = 2048  # padding included; what a batch computes stays in the processor's cache
WINDOWS_MAX = 8
CHARS_PER_TOKEN_MAX = 16  # what lies beyond this many is not even tokenized
FINGERPRINT_CHARS = 12
PAD_TOKENS = ("[PAD]", "<pad>")
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")

Tokens = npt.NDArray[np.int64]


class _Window(NamedTuple):
    """As many tokens of a text as the model reads at once, and the number of that text."""

    text: int
    ids: list[int]
    labels: Labels | None = None
    """The passage of each token; None if the text is not looked at by its passages."""


class OnnxEmbedder:
    """Vectors of meaning from a local model, by onnxruntime."""

    inline = False

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        query_prefix: str = "",
        document_prefix: str = "",
        pooling: Pooling = "mean",
        tokens_max: int = 256,
        windows_max: int = WINDOWS_MAX,
        threads: int = 1,
        split: Split | None = None,
    ) -> None:
        """With `split`, documents have vectors of their passages too."""
        self._prefixes: dict[Kind, str] = {"query": query_prefix, "document": document_prefix}
        self._pooling = pooling
        self._windows_max = windows_max
        self._chars_max = tokens_max * windows_max * CHARS_PER_TOKEN_MAX
        # Neither is changed once made, and both may be used by several threads at once.
        self._session: Any = _session_of(folder, threads)
        self._tokenizer, self._pad_id = _tokenizer_of(folder, tokens_max)
        self._inputs = {given.name for given in self._session.get_inputs()}
        offered = [given.name for given in self._session.get_outputs()]
        self._output = next((name for name in OUTPUTS if name in offered), offered[0])
        try:
            probe, _ = self._run([_Window(0, [self._pad_id])])
            self.dimensions = int(probe.shape[-1])
        except Exception as error:
            raise ModelDamaged(
                f"The model in {folder} loads, but does not embed: {error}", folder=str(folder)
            ) from error
        traits = (query_prefix, document_prefix, pooling, str(tokens_max), str(windows_max))
        self.model = f"{name}/{self.dimensions}@{_fingerprint(folder, traits)}"
        # Only a mean over tokens can be taken over some of them.
        self._split = split if probe.ndim == 3 and pooling == "mean" else None

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        """One row a text; a text without any word has a vector too."""
        return self._embed(texts, kind, PassageSums({}, self.dimensions))

    def embed_with_passages(self, texts: Sequence[str]) -> tuple[Vectors, list[bytes]]:
        """The rows of documents, and what is kept of the passages of those that have several."""
        spans_by_text: dict[int, Spans] = {}
        if self._split is not None:
            for number, text in enumerate(texts):
                spans = self._split(text[: self._chars_max])
                if len(spans) > 1:
                    spans_by_text[number] = spans
        passages = PassageSums(spans_by_text, self.dimensions)
        vectors = self._embed(texts, "document", passages)
        return vectors, passages.kept(len(texts))

    def _embed(self, texts: Sequence[str], kind: Kind, passages: PassageSums) -> Vectors:
        windows = self._windows(texts, self._prefixes[kind], passages.spans_by_text)
        sums = np.zeros((len(texts), self.dimensions), np.float32)
        for batch in _batches(windows):
            output, mask = self._run(batch)
            np.add.at(sums, [window.text for window in batch], self._summed(output, mask))
            passages.add([(window.text, window.labels) for window in batch], output)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        vectors: Vectors = sums / np.maximum(norms, np.finfo(np.float32).tiny)
        return vectors

    def close(self) -> None:
        """Free the model once nobody computes with it any more."""
        self._session = None

    def _windows(
        self, texts: Sequence[str], prefix: str, spans_by_text: Mapping[int, Spans]
    ) -> list[_Window]:
        cut = [prefix + _encodable(text[: self._chars_max]) for text in texts]
        if len(cut) == 1:
            encodings = [self._tokenizer.encode(cut[0])]
        elif spans_by_text:
            encodings = self._tokenizer.encode_batch(cut)
        else:  # without the places of the tokens
            encodings = self._tokenizer.encode_batch_fast(cut)
        windows: list[_Window] = []
        for number, encoding in enumerate(encodings):
            read = (encoding, *encoding.overflowing[: self._windows_max - 1])
            labels: Sequence[Labels | None] = [None] * len(read)
            if number in spans_by_text:
                spans = [(a + len(prefix), b + len(prefix)) for a, b in spans_by_text[number]]
                labels = labels_of([window.offsets for window in read], spans)
            for window, of_window in zip(read, labels, strict=True):
                # A tokenizer without marks for begin and end has no token for an empty text.
                windows.append(_Window(number, window.ids or [self._pad_id], of_window))
        return windows

    def _run(self, batch: Sequence[_Window]) -> tuple[Vectors, Tokens]:
        """What the model says of each window, or of each of its tokens; and where tokens are."""
        lengths = np.array([len(window.ids) for window in batch])
        mask: Tokens = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        ids: Tokens = np.full(mask.shape, self._pad_id, np.int64)
        ids[mask.astype(bool)] = np.concatenate([window.ids for window in batch])
        offered = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feeds = {key: tokens for key, tokens in offered.items() if key in self._inputs}
        (output,) = self._session.run([self._output], feeds)
        return output, mask

    def _summed(self, output: Vectors, mask: Tokens) -> Vectors:
        """One vector a window, as often as it has tokens."""
        if output.ndim == 3 and self._pooling == "mean":
            summed: Vectors = np.matmul(mask[:, None].astype(np.float32), output)[:, 0]
            return summed
        means = output if output.ndim == 2 else output[:, 0]
        weighted: Vectors = means * mask.sum(axis=1, keepdims=True).astype(np.float32)
        return weighted


def _batches(windows: list[_Window]) -> Iterator[list[_Window]]:
    """The windows by length, in batches that bound both how many they are and what they cost."""
    batch: list[_Window] = []
    for window in sorted(windows, key=lambda window: len(window.ids)):
        # They come in order of length, so this one is the width of the batch that it joins.
        cost = (len(batch) + 1) * len(window.ids)
        if batch and (len(batch) == BATCH_TEXTS_MAX or cost > BATCH_TOKENS_MAX):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _session_of(folder: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise _missing("onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait for work must not spin: the same cores serve requests.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            str(folder / MODEL_FILE), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise _damaged(folder / MODEL_FILE, error) from error


def _tokenizer_of(folder: Path, tokens_max: int) -> tuple[Tokenizer, int]:
    """The tokenizer, set to make windows of so many tokens, and the id of its padding."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _missing("tokenizers") from error
    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    except Exception as error:
        raise _damaged(folder / TOKENIZER_FILE, error) from error
    known = (tokenizer.token_to_id(token) for token in PAD_TOKENS)
    pad_id = next((token for token in known if token is not None), 0)
    # The file brings settings of its own; batches are padded here, no wider than they need.
    tokenizer.no_padding()
    tokenizer.enable_truncation(tokens_max)
    return tokenizer, pad_id


def _fingerprint(folder: Path, traits: tuple[str, ...]) -> str:
    """A short hash over everything that a vector depends on."""
    whole = hashlib.sha256("\0".join(traits).encode())
    for path in sorted(folder.glob(f"{MODEL_FILE}*")):
        with path.open("rb") as content:
            whole.update(hashlib.file_digest(content, "sha256").digest())
    # The same tokenizer is about with either kind of line ends.
    whole.update((folder / TOKENIZER_FILE).read_bytes().replace(b"\r\n", b"\n"))
    return whole.hexdigest()[:FINGERPRINT_CHARS]


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced, which a tokenizer would refuse."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _missing(package: str) -> ExtraMissing:
    return ExtraMissing(
        f"A local model needs {package}: pip install 'recollect[server]'", package=package
    )


def _damaged(path: Path, error: Exception) -> ModelDamaged:
    return ModelDamaged(
        f"{path} cannot be used: {error} Install the model anew with `recollect models install`, "
        "or name another.",
        path=str(path),
    )
