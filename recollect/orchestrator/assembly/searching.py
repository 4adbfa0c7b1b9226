"""The services that find: by words, by meaning, in documents, for a context."""

from __future__ import annotations

import random

import msgspec

from recollect.config.settings import RecallSettings
from recollect.orchestrator.assembly.parts import Parts
from recollect.orchestrator.context.tier_search import TierSearch
from recollect.orchestrator.documents.indexing import Indexing
from recollect.orchestrator.documents.places import Roots
from recollect.orchestrator.documents.store import DocumentStore
from recollect.orchestrator.documents.syncing import Workshop
from recollect.orchestrator.search.candidates import Gathering
from recollect.orchestrator.search.ranking import Weights
from recollect.orchestrator.services.analytics import AnalyticsService
from recollect.orchestrator.services.context import ContextService
from recollect.orchestrator.services.document_sync import DocumentSyncService
from recollect.orchestrator.services.documents import DocumentService
from recollect.orchestrator.services.recalling import RecallService
from recollect.orchestrator.services.searching import SearchService


def search_services(parts: Parts) -> tuple[object, ...]:
    """Search, recall, context, documents and what is told of the whole."""
    settings, storage, store = parts.settings, parts.storage, parts.store
    scoping, validator, accesses = parts.scoping, parts.validator, parts.accesses
    gathering = Gathering(
        store, parts.lexical, parts.nearest, turns_around=settings.recall.turns_around
    )
    weights = weights_of(settings.recall)
    recalling = RecallService(
        storage,
        store,
        gathering,
        settings.recall.candidates,
        parts.past,
        parts.authors,
        scoping,
        weights,
        validator,
        accesses,
        parts.questions,
    )
    return (
        SearchService(
            storage,
            store,
            parts.lexical,
            parts.nearest,
            parts.past,
            scoping,
            validator,
            accesses,
            parts.questions,
        ),
        recalling,
        ContextService(
            storage,
            store,
            TierSearch(
                storage,
                store,
                gathering,
                settings.recall.candidates,
                parts.authors,
                scoping,
                weights,
                parts.questions,
            ),
            parts.operational_reading,
            parts.counter,
            validator,
            accesses,
            parts.event_ids,
            random.SystemRandom(),
            settings.context.receipts_max,
        ),
        *_document_services(parts, recalling),
        AnalyticsService(storage, store, scoping),
    )


def _document_services(parts: Parts, recalling: RecallService) -> tuple[object, ...]:
    chosen, validator = parts.settings.documents, parts.validator
    roots = Roots(chosen.roots)
    documents = DocumentStore(parts.store, validator, parts.ids)
    indexing = Indexing(
        parts.storage,
        parts.writes,
        parts.store,
        documents,
        parts.readers,
        parts.drafting,
        validator,
        chosen,
    )
    workshop = Workshop(
        parts.storage, parts.writes, documents, indexing, parts.clock, parts.draining
    )
    return (
        DocumentService(
            parts.storage, documents, indexing, roots, recalling, parts.scoping, validator, chosen
        ),
        DocumentSyncService(workshop, roots, validator, chosen),
    )


def weights_of(settings: RecallSettings) -> Weights:
    """The weights of the ranking, as they are set."""
    given = msgspec.structs.asdict(settings)
    return Weights(**{name: given[name] for name in Weights.__struct_fields__})
