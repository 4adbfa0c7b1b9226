"""Which model a store works with when it starts, and which one it is to move to.

A store knows the model of its vectors. The settings may ask for another: then the store starts with
its own, and embeds everything anew in the background. What was chosen by `reembed` stands until the
settings change.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import structlog

from recollect.orchestrator.embedding.absent import AbsentEmbedder
from recollect.orchestrator.embedding.interface import VECTOR_ITEM_BYTES, Embedder
from recollect.orchestrator.embedding.specs import EmbedderSpec, hashed, spec_of_stored
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.storage.properties import get_property, set_property
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

ACTIVE = "embedding"
TARGET = "embedding_target"
CONFIGURED = "embedding_configured"
MODEL = "embedding_model"
"""Properties of a store: the model in use, the one it is moving to, what the settings asked for
when this was last decided, and the name that the vectors of the model in use go by."""

STORED = "SELECT model, length(vector) FROM vectors ORDER BY num LIMIT 1"
SHADOW = "SELECT length(vector) FROM shadow_vectors ORDER BY num LIMIT 1"
ANY = "SELECT 1 FROM memories LIMIT 1"

Make = Callable[[EmbedderSpec, int | None], Embedder]
"""Makes an embedder, given how long its vectors are known to be."""


class Known(msgspec.Struct, frozen=True):
    """What a store says of its models."""

    active: EmbedderSpec | None
    target: EmbedderSpec | None
    configured: EmbedderSpec | None
    stored_model: str | None
    stored_dimensions: int
    empty: bool


class Choice(msgspec.Struct, frozen=True):
    """What to start with, and what to move to."""

    active: EmbedderSpec
    embedder: Embedder
    target: EmbedderSpec | None
    configured: EmbedderSpec
    fallback_reason: str | None = None
    """Why the model that should be in use is not, if it is not."""
    provisional: bool = False
    """Whether the light embedder stands in for what was asked for: the next start looks again."""


def read_known(session: Session) -> Known:
    """What the store says."""
    stored = session.execute(STORED)
    model, length = stored[0] if stored else (None, 0)
    specs = [
        None if text is None else EmbedderSpec.from_text(text)
        for text in (get_property(session, name) for name in (ACTIVE, TARGET, CONFIGURED))
    ]
    active = specs[0] or (spec_of_stored(model) if model else None)
    return Known(
        active, specs[1], specs[2], model, length // VECTOR_ITEM_BYTES, not session.execute(ANY)
    )


def shadow_dimensions(session: Session) -> int | None:
    """How long the vectors are that were made so far of the model the store is moving to."""
    found = session.execute(SHADOW)
    return int(found[0][0]) // VECTOR_ITEM_BYTES if found else None


def choose(known: Known, configured: EmbedderSpec, make: Make) -> Choice:
    """Decide; models are loaded on the way."""
    active, target = known.active, known.target
    if known.empty and known.configured != configured:
        active = target = None  # nothing is lost by beginning with another
    if active is None:
        return _first(configured, make)
    if known.configured != configured:
        target = configured if active != configured else None
    reason = None
    try:
        embedder = make(active, known.stored_dimensions or None)
    except RecollectError as error:
        reason = error.message
        if known.stored_model is None:
            return _first(configured, make)
        embedder = AbsentEmbedder(known.stored_model, known.stored_dimensions, reason)
    return Choice(active, embedder, target, configured, reason)


def _first(configured: EmbedderSpec, make: Make) -> Choice:
    """The configured model, or the light one where it cannot be had."""
    try:
        return Choice(configured, make(configured, None), None, configured)
    except RecollectError as error:
        light = hashed()
        return Choice(light, make(light, None), None, configured, error.message, provisional=True)


def remember(known: Known, choice: Choice, transaction: WriteTransaction) -> bool:
    """Keep what was decided; False if the store says something else by now than when it was."""
    if read_known(transaction) != known:
        return False
    set_property(transaction, MODEL, choice.embedder.model)
    set_property(transaction, ACTIVE, choice.active.to_text())
    asked = None if choice.provisional else choice.configured
    set_property(transaction, CONFIGURED, asked.to_text() if asked else None)
    set_property(transaction, TARGET, choice.target.to_text() if choice.target else None)
    return True
