"""When Redis counts as away, and what is said of it."""

from __future__ import annotations

from recollect.config.settings import CircuitBreakerSettings, RedisSettings, Settings
from recollect.orchestrator.redis.link import RedisLink


def test_it_is_away_once_it_fails_in_a_row_and_back_with_the_first_answer() -> None:
    settings = Settings(
        redis=RedisSettings("redis://user:hunter2@cache/0"),
        circuit_breaker=CircuitBreakerSettings(fail_max=3, reset_timeout_s=5.0),
    )
    link = RedisLink(settings, lambda: 0.0)
    for _ in range(2):
        link.failed(TimeoutError("cache did not answer"))
        assert link.usable() and link.describe()["state"] == "ok"
    link.succeeded()
    for _ in range(3):
        link.failed(TimeoutError("cache did not answer"))
    described = link.describe()
    assert not link.usable()
    assert (described["mode"], described["state"]) == ("url", "degraded")
    assert described["reason"] == "Redis does not answer (TimeoutError)."
    link.succeeded()
    assert link.usable()
    assert (link.describe()["state"], link.describe()["reason"]) == ("ok", None)


def test_without_one_it_is_off() -> None:
    link = RedisLink(Settings(redis=RedisSettings("off")), lambda: 0.0)
    assert not link.usable()
    assert (link.describe()["mode"], link.describe()["state"]) == ("off", "off")
