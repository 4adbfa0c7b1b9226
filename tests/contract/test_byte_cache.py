"""Caches of bytes: in process and in Redis, under one contract."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from redis import Redis

from recollect.config.settings import CircuitBreakerSettings, RedisSettings, Settings
from recollect.orchestrator.cache.in_process import InProcessCache
from recollect.orchestrator.cache.interface import ByteCache
from recollect.orchestrator.cache.redis import RedisCache
from recollect.orchestrator.redis.link import RedisLink
from tests.harness.redis import RedisServer

HOUR_S = 3600.0
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


def link_of(url: str) -> RedisLink:
    settings = Settings(
        redis=RedisSettings(url, timeout_ms=5_000),
        circuit_breaker=CircuitBreakerSettings(fail_max=2, reset_timeout_s=0.01),
    )
    return RedisLink(settings, time.monotonic)


def named(link: RedisLink, store_id: str | None = None) -> RedisCache:
    cache = RedisCache(link, HOUR_S)
    cache.name(store_id or f"store-{next(_numbers)}", "vectors")
    return cache


@pytest.fixture(params=["process", "redis"])
def cache(request: pytest.FixtureRequest) -> Iterator[ByteCache]:
    if request.param == "process":
        yield InProcessCache(100)
        return
    in_redis = named(link_of(request.getfixturevalue("server").url))
    yield in_redis
    in_redis.close()


def test_what_was_kept_is_found_and_the_rest_is_not(cache: ByteCache) -> None:
    cache.keep({b"one": b"1", b"\x00\xff*": b"\x00" * 4_000})
    assert cache.get([b"other", b"one", b"\x00\xff*"]) == [None, b"1", b"\x00" * 4_000]
    assert (cache.hits, cache.misses) == (2, 1)
    assert cache.get([]) == []
    cache.keep({})


def test_the_last_value_of_a_key_is_the_one(cache: ByteCache) -> None:
    cache.keep({b"one": b"1"})
    cache.keep({b"one": b"2"})
    assert cache.get([b"one"]) == [b"2"]


def test_after_clearing_nothing_is_found_and_more_can_be_kept(cache: ByteCache) -> None:
    cache.keep({str(number).encode(): b"x" for number in range(90)})
    assert cache.clear()
    assert cache.get([b"1", b"89"]) == [None, None]
    cache.keep({b"1": b"y"})
    assert cache.get([b"1"]) == [b"y"]


def test_in_process_the_least_recently_used_makes_room() -> None:
    cache = InProcessCache(2)
    cache.keep({b"a": b"1", b"b": b"2"})
    assert cache.get([b"a"]) == [b"1"]
    cache.keep({b"c": b"3"})
    assert cache.get([b"a", b"b", b"c"]) == [b"1", None, b"3"]
    nothing = InProcessCache(0)
    nothing.keep({b"a": b"1"})
    assert nothing.get([b"a"]) == [None]


def test_in_redis_everything_expires_and_stores_are_apart(server: RedisServer) -> None:
    link = link_of(server.url)
    one, other = named(link), named(link)
    one.keep({b"k": b"1"})
    other.keep({b"k": b"2"})
    with Redis.from_url(server.url) as client:
        left_ms = [client.pttl(key) for key in client.scan_iter("*:vectors:k")]
    assert len(left_ms) == 2 and all(0 < left <= 1000 * HOUR_S for left in left_ms)
    assert one.clear()
    assert (one.get([b"k"]), other.get([b"k"])) == ([None], [b"2"])
    one.close()
    other.close()


def test_without_redis_all_is_a_miss_and_a_clearing_is_made_up_for() -> None:
    with RedisServer() as server:
        link = link_of(server.url)
        cache = named(link, "away")
        cache.keep({b"k": b"1"})
        assert cache.get([b"k"]) == [b"1"]
        server.kill()
        assert cache.get([b"k"]) == [None]
        cache.keep({b"k": b"2"})
        assert cache.errors == 2 and not link.usable()
        assert not cache.clear()
        server.start()
        with Redis.from_url(server.url) as client:
            client.set("recollect:{away}:vectors:k", b"of before")
            link.succeeded()
            assert cache.get([b"k"]) == [None], "nothing is told before all is cleared"
            assert cache.clear_if_need_be()
            assert client.dbsize() == 0
        cache.keep({b"k": b"3"})
        assert cache.get([b"k"]) == [b"3"]
        cache.close()
