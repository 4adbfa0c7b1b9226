"""Where models lie, and what is known of one that is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from recollect.models.catalogue import CATALOGUE, MODEL_FILE, TOKENIZER_FILE, Entry, Pooling
from recollect.models.errors import ModelDamaged

MANIFEST_FILE = "recollect-model.json"
TOKENS_MAX = 256


class Traits(msgspec.Struct, frozen=True):
    """How a model wants to be used; the installer leaves this in the model's folder."""

    name: str
    dimensions: int = 0
    """0 where only running the model would tell."""
    licence: str = ""
    query_prefix: str = ""
    document_prefix: str = ""
    pooling: Pooling = "mean"
    tokens_max: int = TOKENS_MAX


class Installed(msgspec.Struct, frozen=True):
    """A model on this machine."""

    folder: Path
    traits: Traits

    @property
    def name(self) -> str:
        return self.traits.name


def models_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where models are installed, by the environment; it need not exist yet."""
    given = os.environ if environ is None else environ
    if chosen := given.get("RECOLLECT_MODELS"):
        return Path(os.path.expanduser(chosen)).absolute()
    # A relative XDG_DATA_HOME is to be ignored, says its specification.
    shared = Path(given.get("XDG_DATA_HOME", ""))
    if not shared.is_absolute():
        shared = Path(given.get("HOME") or Path.home()) / ".local" / "share"
    return shared / "recollect" / "models"


def find(name_or_folder: str, environ: Mapping[str, str] | None = None) -> Installed | None:
    """The model of that name among the installed ones, or else in that folder; None if absent."""
    if not name_or_folder:
        return None
    if Path(name_or_folder).name == name_or_folder and not name_or_folder.startswith("."):
        installed = in_folder(models_folder(environ) / name_or_folder)
        if installed is not None:
            return installed
    # Unlike Path.expanduser, this leaves the home of a user that there is not as it is.
    return in_folder(Path(os.path.expanduser(name_or_folder)).absolute())


def in_folder(folder: Path) -> Installed | None:
    """The model whose files lie in the folder; None if they do not."""
    try:
        if not ((folder / MODEL_FILE).is_file() and (folder / TOKENIZER_FILE).is_file()):
            return None
    except (OSError, ValueError):  # a name that no file can have
        return None
    return Installed(folder, _traits_in(folder))


def installed_in(folder: Path) -> Iterator[Installed]:
    """Every model installed in a folder of models, by name."""
    if folder.is_dir():
        for inside in sorted(folder.iterdir()):
            found = None if inside.name.startswith(".") else in_folder(inside)
            if found is not None:
                yield found


def traits_of(entry: Entry) -> Traits:
    """The traits of a model of the catalogue."""
    return Traits(
        name=entry.name,
        dimensions=entry.dimensions,
        licence=entry.licence,
        query_prefix=entry.query_prefix,
        document_prefix=entry.document_prefix,
        pooling=entry.pooling,
        tokens_max=entry.tokens_max,
    )


def _traits_in(folder: Path) -> Traits:
    """What the folder says of itself; if it says nothing, what is known by its name."""
    try:
        return msgspec.json.decode((folder / MANIFEST_FILE).read_bytes(), type=Traits)
    except FileNotFoundError:
        known = CATALOGUE.get(folder.name)
        return Traits(folder.name) if known is None else traits_of(known)
    except msgspec.DecodeError as error:
        # To go on with other prefixes than those meant would make vectors that fit nothing.
        raise ModelDamaged(
            f"{folder / MANIFEST_FILE} cannot be read: {error}.", folder=str(folder)
        ) from error
