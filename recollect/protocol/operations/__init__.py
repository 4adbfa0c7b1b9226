"""All operations, one file a domain. Importing this package fills the registry."""

from recollect.protocol.operation import REGISTRY
from recollect.protocol.operations.batches import BatchAddMemories, BatchGetMemories
from recollect.protocol.operations.embedding import Reembed
from recollect.protocol.operations.groups import AddToGroup, CreateContextGroup, GetMemoriesByGroup
from recollect.protocol.operations.memories import (
    AddMemory,
    Count,
    DeleteMemory,
    GetChildren,
    GetMemory,
    History,
    ListMemories,
    Purge,
    ReinforceMemory,
    Restore,
    UpdateMemory,
)
from recollect.protocol.operations.relationships import AddRelationship, GetRelatedMemories
from recollect.protocol.operations.search import Recall, SearchMemory, SemanticSearch
from recollect.protocol.operations.sessions import CreateSession
from recollect.protocol.operations.system import (
    Backup,
    ErrorReport,
    Ping,
    RecentErrors,
    ReportErrors,
    Stats,
)

__all__ = [
    "REGISTRY",
    "AddMemory",
    "AddRelationship",
    "AddToGroup",
    "Backup",
    "BatchAddMemories",
    "BatchGetMemories",
    "Count",
    "CreateContextGroup",
    "CreateSession",
    "DeleteMemory",
    "ErrorReport",
    "GetChildren",
    "GetMemoriesByGroup",
    "GetMemory",
    "GetRelatedMemories",
    "History",
    "ListMemories",
    "Ping",
    "Purge",
    "Recall",
    "RecentErrors",
    "Reembed",
    "ReinforceMemory",
    "ReportErrors",
    "Restore",
    "SearchMemory",
    "SemanticSearch",
    "Stats",
    "UpdateMemory",
]
