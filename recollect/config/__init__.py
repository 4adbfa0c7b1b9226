"""The settings of Recollect, and what loads them.

Settings are read at the edge, by the command line and `__main__`, and passed inward as values.
"""

from recollect.config.loading import find_config, load
from recollect.config.problems import ConfigError, Problem
from recollect.config.settings import (
    CircuitBreakerSettings,
    ClientSettings,
    DecaySettings,
    EmbeddingSettings,
    ErrorsSettings,
    IndexSettings,
    LimitsSettings,
    LoggingSettings,
    NetworkSettings,
    RecallSettings,
    RedisSettings,
    Settings,
    StorageSettings,
)

__all__ = [
    "CircuitBreakerSettings",
    "ClientSettings",
    "ConfigError",
    "DecaySettings",
    "EmbeddingSettings",
    "ErrorsSettings",
    "IndexSettings",
    "LimitsSettings",
    "LoggingSettings",
    "NetworkSettings",
    "Problem",
    "RecallSettings",
    "RedisSettings",
    "Settings",
    "StorageSettings",
    "find_config",
    "load",
]
