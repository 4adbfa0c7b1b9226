"""Who may look, and who may change something."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.health.signing_in import COOKIE, Doorkeeper, token_in


def doorkeeper(host: str = "127.0.0.1", now_s: float = 1000.0, token: str = "s3cret") -> Doorkeeper:
    return Doorkeeper(token, host=host, session_s=60.0, now_s=lambda: now_s)


def test_the_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = token_in(path)
    assert len(token) > 32
    assert token_in(path) == token
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_cookie_holds_for_its_time_and_cannot_be_made_up() -> None:
    cookie = doorkeeper().new_cookie()
    assert doorkeeper(now_s=1059.0).knows(cookie)
    assert not doorkeeper(now_s=1061.0).knows(cookie)
    assert not doorkeeper(token="another").knows(cookie)
    until, _, signature = cookie.partition(".")
    for forged in (f"9{until}.{signature}", f"{until}.", "", ".", f"{until}.{'0' * 64}", "ü.ü"):
        assert not doorkeeper().knows(forged)


def test_who_signed_out_is_out_on_every_page_that_is_still_open() -> None:
    keeper = doorkeeper()
    opened, other = ({"cookie": f"{COOKIE}={keeper.new_cookie()}"} for _ in range(2))
    assert keeper.may_change(opened)
    keeper.sign_out(opened)
    assert not keeper.may_change(opened)
    assert keeper.may_change(other)


@pytest.mark.parametrize(
    ("host", "headers", "views", "changes"),
    [
        ("127.0.0.1", {}, True, False),
        ("::1", {"authorization": "Bearer s3cret"}, True, True),
        ("0.0.0.0", {}, False, False),
        ("0.0.0.0", {"authorization": "Bearer wrong"}, False, False),
        ("0.0.0.0", {"authorization": "bearer s3cret"}, True, True),
        ("0.0.0.0", {"cookie": f"a=b; {COOKIE}={doorkeeper().new_cookie()}"}, True, True),
        (
            "0.0.0.0",
            {"cookie": f'prefs={{"a":1}}; {COOKIE}={doorkeeper().new_cookie()}; b'},
            True,
            True,
        ),
        ("10.0.0.1", {"cookie": f"{COOKIE}=s3cret"}, False, False),
    ],
)
def test_looking_is_free_on_loopback_and_changing_never(
    host: str, headers: dict[str, str], views: bool, changes: bool
) -> None:
    keeper = doorkeeper(host)
    assert (keeper.may_view(headers), keeper.may_change(headers)) == (views, changes)
