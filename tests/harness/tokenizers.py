"""Small tokenizers, made on the spot."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from recollect.orchestrator.context.vocabularies import FileCounter


def bpe_file(texts: Iterable[str], folder: Path) -> Path:
    """A vocabulary of bytes and what they are merged to in some texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def bpe_counter(texts: Iterable[str]) -> FileCounter:
    """Counts by such a vocabulary."""
    with tempfile.TemporaryDirectory() as folder:
        return FileCounter(bpe_file(texts, Path(folder)))
