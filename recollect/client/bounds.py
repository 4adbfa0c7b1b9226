"""What a client may be set to; anything else would fail later, far from where it was said."""

from __future__ import annotations

from recollect.client.settings import Breaker, Pool, Retry, Timeouts
from recollect.protocol.errors import InvalidArgument

SECONDS_MAX = 365 * 24 * 3600
COUNT_MAX = 1_000_000_000
PAUSE_MS_MAX = 24 * 3600 * 1000


def check_settings(timeouts: Timeouts, retry: Retry, breaker: Breaker, pool: Pool) -> None:
    """Refuse settings that no client can follow."""
    given = {"timeouts": timeouts, "retry": retry, "breaker": breaker, "pool": pool}
    for name, kind in _KINDS.items():
        if not isinstance(given[name], kind):
            raise InvalidArgument(
                f"{name} must be a {kind.__name__}, not {given[name]!r}.", field=name
            )
    check_seconds("timeouts.call_s", timeouts.call_s)
    check_seconds("timeouts.connect_s", timeouts.connect_s)
    _check_count("retry.attempts_max", retry.attempts_max)
    _check_pause("retry.backoff_ms", retry.backoff_ms)
    _check_pause("retry.backoff_ms_max", retry.backoff_ms_max)
    _check_count("breaker.fail_max", breaker.fail_max)
    check_seconds("breaker.reset_timeout_s", breaker.reset_timeout_s)
    _check_count("pool.connections_max", pool.connections_max)
    _check_count("pool.in_flight_max", pool.in_flight_max)


_KINDS: dict[str, type] = {"timeouts": Timeouts, "retry": Retry, "breaker": Breaker, "pool": Pool}


def check_seconds(name: str, value: object) -> None:
    """Refuse what is not a positive number of seconds, or more than a year."""
    if not _is_number(value) or not 0 < value <= SECONDS_MAX:  # type: ignore[operator]
        raise InvalidArgument(
            f"{name} must be a positive number of seconds, {SECONDS_MAX:,} at most, not {value!r}.",
            field=name,
        )


def _check_pause(name: str, value: object) -> None:
    if not _is_number(value) or not 0 <= value <= PAUSE_MS_MAX:  # type: ignore[operator]
        raise InvalidArgument(
            f"{name} must be a number of milliseconds, 0 to {PAUSE_MS_MAX:,}, not {value!r}.",
            field=name,
        )


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= COUNT_MAX:
        raise InvalidArgument(
            f"{name} must be a whole number, 1 to {COUNT_MAX:,}, not {value!r}.", field=name
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
