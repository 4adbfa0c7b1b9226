"""The settings of Recollect, and what loads them.

Settings are read at the edge, by the command line and `__main__`, and passed inward as values.
"""

from recollect.config.loading import find_config, load
from recollect.config.problems import ConfigError, Problem
from recollect.config.settings import (
    AccessSettings,
    CircuitBreakerSettings,
    ClientSettings,
    ConsolidationSettings,
    ContextSettings,
    DecaySettings,
    DocumentsSettings,
    EmbeddingSettings,
    ErrorsSettings,
    IndexSettings,
    LearningSettings,
    LimitsSettings,
    LoggingSettings,
    NetworkSettings,
    OperationalSettings,
    RecallSettings,
    RedisSettings,
    SessionsSettings,
    Settings,
    StorageSettings,
    TiersSettings,
    TrustSettings,
    WorkflowSettings,
)

__all__ = [
    "AccessSettings",
    "CircuitBreakerSettings",
    "ClientSettings",
    "ConfigError",
    "ConsolidationSettings",
    "ContextSettings",
    "DecaySettings",
    "DocumentsSettings",
    "EmbeddingSettings",
    "ErrorsSettings",
    "IndexSettings",
    "LearningSettings",
    "LimitsSettings",
    "LoggingSettings",
    "NetworkSettings",
    "OperationalSettings",
    "Problem",
    "RecallSettings",
    "RedisSettings",
    "SessionsSettings",
    "Settings",
    "StorageSettings",
    "TiersSettings",
    "TrustSettings",
    "WorkflowSettings",
    "find_config",
    "load",
]
