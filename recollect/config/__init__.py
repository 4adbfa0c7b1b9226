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
    DecaySettings,
    DocumentsSettings,
    EmbeddingSettings,
    ErrorsSettings,
    IndexSettings,
    LimitsSettings,
    LoggingSettings,
    NetworkSettings,
    RecallSettings,
    RedisSettings,
    SessionsSettings,
    Settings,
    StorageSettings,
    TrustSettings,
)

__all__ = [
    "AccessSettings",
    "CircuitBreakerSettings",
    "ClientSettings",
    "ConfigError",
    "ConsolidationSettings",
    "DecaySettings",
    "DocumentsSettings",
    "EmbeddingSettings",
    "ErrorsSettings",
    "IndexSettings",
    "LimitsSettings",
    "LoggingSettings",
    "NetworkSettings",
    "Problem",
    "RecallSettings",
    "RedisSettings",
    "SessionsSettings",
    "Settings",
    "StorageSettings",
    "TrustSettings",
    "find_config",
    "load",
]
