"""The services by which memories are kept, read one by one, and grouped."""

from __future__ import annotations

from recollect.orchestrator.assembly.parts import Parts
from recollect.orchestrator.services.batches import BatchService
from recollect.orchestrator.services.changing import Changing
from recollect.orchestrator.services.groups import GroupService
from recollect.orchestrator.services.keyed import KeyedService
from recollect.orchestrator.services.keyed_reads import KeyedReadService
from recollect.orchestrator.services.listing import ListingService
from recollect.orchestrator.services.memories import MemoryService
from recollect.orchestrator.services.namespaces import NamespaceService
from recollect.orchestrator.services.relationships import RelationshipService
from recollect.orchestrator.services.session_reading import SessionReadingService
from recollect.orchestrator.services.sessions import SessionService
from recollect.orchestrator.services.squashing import SquashingService


def memory_services(parts: Parts) -> tuple[object, ...]:
    """Memories by their id and by their key, namespaces, relationships, groups and sessions."""
    storage, store, validator = parts.storage, parts.store, parts.validator
    changing = Changing(storage, store, parts.drafting)
    listing = ListingService(storage, store, parts.scoping, validator)
    return (
        MemoryService(
            storage, store, parts.drafting, changing, parts.fading, parts.accesses, parts.echoes
        ),
        parts.deletion,
        KeyedService(store, parts.keys, parts.drafting, changing, parts.deletion, validator),
        KeyedReadService(storage, parts.keys, listing, parts.accesses),
        NamespaceService(storage, validator),
        SquashingService(storage, validator),
        BatchService(storage, store, parts.drafting, validator, parts.echoes),
        listing,
        RelationshipService(storage, store, validator),
        GroupService(storage, store, validator, parts.ids),
        SessionService(parts.states, store, validator, parts.ids),
        SessionReadingService(storage, parts.states, validator),
    )
