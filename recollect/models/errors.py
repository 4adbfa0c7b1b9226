"""What can go wrong with a model before it embeds anything.

RecollectError
└── ModelError
    ├── UnknownModel           model_unknown          the catalogue has no model of that name
    ├── ModelUnavailable       model_unavailable      no source gave the files
    ├── ChecksumMismatch       model_checksum         a source gave other files than the known ones
    ├── InstallBusy            model_busy             another process installs it and does not end
    ├── ModelDamaged           model_damaged          the files are there, but cannot be used
    └── ExtraMissing           extra_missing          a package that runs models is not installed
"""

from __future__ import annotations

from recollect.protocol.errors import RecollectError


class ModelError(RecollectError):
    """A model cannot be had or used."""

    code = "model"


class UnknownModel(ModelError):
    code = "model_unknown"


class ModelUnavailable(ModelError):
    code = "model_unavailable"
    retryable = True


class ChecksumMismatch(ModelError):
    code = "model_checksum"


class InstallBusy(ModelError):
    code = "model_busy"
    retryable = True


class ModelDamaged(ModelError):
    code = "model_damaged"


class ExtraMissing(ModelError):
    code = "extra_missing"


class SourceFailed(Exception):
    """One source did not give the files; the message says why, and the next source is tried."""


class WrongContent(SourceFailed):
    """The source gave something, but not the known files."""
