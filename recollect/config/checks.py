"""Rules that a type and its bounds cannot say: forms of addresses, and keys that must agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from recollect.config.cron import EXAMPLE, BadSchedule, read_schedule
from recollect.config.declarations import KEYS, value_of
from recollect.config.phases import BadPhases, read_phases
from recollect.config.problems import did_you_mean, nearest
from recollect.config.settings import Settings

PORT_MAX = 65_535


class Finding(Struct, frozen=True):
    """A rule that the settings break, and the keys that break it together."""

    keys: tuple[str, ...]
    message: str
    suggestion: str = ""


# Each pair reads: the first may not be larger than the second.
ORDERED: tuple[tuple[str, str], ...] = (
    ("storage.group_commit_max", "storage.write_queue_max"),
    ("limits.content_chars_max", "limits.payload_bytes_max"),
    ("limits.metadata_bytes_max", "limits.payload_bytes_max"),
    ("limits.value_bytes_max", "limits.payload_bytes_max"),
    ("decay.half_life_days_short", "decay.half_life_days_medium"),
    ("decay.half_life_days_medium", "decay.half_life_days_long"),
    ("decay.half_life_days_long", "decay.stability_days_max"),
)


def check(settings: Settings) -> Iterator[Finding]:
    """Every rule that the settings break."""
    for key, rule in _ADDRESSES.items():
        if complaint := rule(str(value_of(settings, key))):
            message, suggestion = complaint
            yield Finding((key,), message, suggestion)
    for key, rule in _LISTS.items():
        for text in value_of(settings, key):
            if complaint := rule(text):
                yield Finding((key,), *complaint)
    hook = settings.health.webhook_url
    if hook is not None and (complaint := _webhook_url(hook)):
        yield Finding(("health.webhook_url",), *complaint)
    try:
        read_phases(settings.workflow.phases)
    except BadPhases as bad:
        yield Finding(("workflow.phases",), str(bad), bad.advice)
    for lesser, greater in ORDERED:
        low, high = value_of(settings, lesser), value_of(settings, greater)
        if low > high:
            yield Finding((lesser, greater), f"is {low}, but `{greater}` is only {high}")


def _schedule(text: str) -> _Complaint:
    try:
        read_schedule(text)
    except BadSchedule as bad:
        return str(bad), EXAMPLE
    return None


def _timezone(name: str) -> _Complaint:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "is not a time zone that this machine knows", "write it as `UTC` or `Europe/Berlin`"
    return None


# A complaint is a message and a suggestion. It never quotes an address, which may hold a password.
_Complaint = tuple[str, str] | None


def _scheme_hint(url: str, known: tuple[str, ...]) -> str:
    scheme, separator, _ = url.partition("://")
    return did_you_mean(nearest(f"{scheme}://" if separator else url[:20], known))


def _storage_url(url: str) -> _Complaint:
    if url == "sqlite" or url.startswith("postgresql://"):
        return None
    if url.startswith("sqlite:"):
        suggestion = "write `sqlite`, and name the folder in `storage.data`"
    else:
        suggestion = _scheme_hint(url, ("sqlite", "postgresql://"))
    return "must be `sqlite` or begin with `postgresql://`", suggestion


def _redis_url(url: str) -> _Complaint:
    known = ("off", "embedded", "redis://", "rediss://", "unix://")
    if url in known[:2]:
        return None
    if any(url.startswith(scheme) and url != scheme for scheme in known[2:]):
        try:
            _ = urlsplit(url).port
        except ValueError:
            message = f"is no address; a port in it must be a number from 0 to {PORT_MAX}"
            return message, "write it as `redis://127.0.0.1:6379/0`"
        return None
    message = "must be `off`, `embedded`, or an address such as `redis://127.0.0.1:6379/0`"
    return message, _scheme_hint(url, known)


def _webhook_url(url: str) -> _Complaint:
    suggestion = "write it as `https://example.org/alerts`"
    if not url.startswith(("http://", "https://")):
        return "must begin with `http://` or `https://`", suggestion
    if any(not char.isprintable() or char.isspace() for char in url):
        return "has a space, or an end of a line, in it", "take it out"
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host:
        return f"needs a host, and a port from 1 to {PORT_MAX} if it names one", suggestion
    return None


def _bind(address: str) -> _Complaint:
    scheme, _, rest = address.partition("://")
    if scheme == "ipc" and rest:
        return None
    if scheme == "ipc":
        return "needs a path", "write it as `ipc:///run/recollect.sock`"
    if scheme != "tcp" or not rest:
        message = "must begin with `tcp://` or `ipc://`"
        return message, _scheme_hint(address, ("tcp://", "ipc://"))
    host, colon, port = rest.rpartition(":")
    if not colon or not host or (host.startswith("[") != host.endswith("]")):
        return "needs a host and a port", "write it as `tcp://127.0.0.1:7331`"
    if ":" in host and not host.startswith("["):
        return "needs brackets around an IPv6 host", "write it as `tcp://[::1]:7331`"
    if port != "*" and not (port.isascii() and port.isdigit() and int(port[:6]) <= PORT_MAX):
        return f"needs a port from 0 to {PORT_MAX}", "write it as `tcp://127.0.0.1:7331`"
    return None


def _origin(text: str) -> _Complaint:
    if text == "null" or _ORIGIN.fullmatch(text):  # "null" is that of a file, or of a sandbox
        return None
    return (
        "must each be an origin: a scheme, a host and perhaps a port, and nothing behind them",
        "write them as `https://app.example.org`",
    )


def _namespace(text: str) -> _Complaint:
    if _NAMESPACE.fullmatch(text):
        return None
    message = f"must each be a namespace or the beginning of one, not {text[:80]!r}"
    return message, "write them as `user:alice` or `project:harbour:docs`"


def _namespace_and_folder(text: str) -> _Complaint:
    namespace, separator, folder = text.partition("=")
    if separator and folder and ":" in namespace and _namespace(namespace) is None:
        return None
    message = f"must each be a namespace and a folder, not {text[:80]!r}"
    return message, "write them as `project:harbour=/srv/docs`"


# As the gateway compares them, and as the orchestrator checks them.
_ORIGIN = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#@]+")
_NAMESPACE = re.compile(r"(temp|session|user|app|project)(:[^:\s\x00]+)*")

_LISTS: dict[str, Callable[[str], _Complaint]] = {
    "client.endpoints": _bind,
    "gateway.origins_allowed": _origin,
    "jobs.consolidation.namespaces": _namespace,
    "jobs.document_sync.folders": _namespace_and_folder,
}

_ADDRESSES: dict[str, Callable[[str], _Complaint]] = {
    "storage.url": _storage_url,
    "network.bind": _bind,
    "redis.url": _redis_url,
    "scheduler.timezone": _timezone,
    **{key: _schedule for key in KEYS if key.endswith(".schedule")},
}
