"""Who may look, and who may change something.

There is one token, in a file that only its owner reads. On loopback everybody on the machine may
look, without it; to change anything one signs in with it. Beyond loopback nothing is shown without.
A browser that signed in has a cookie: the moment until which it holds, signed with the token. So a
session outlives a restart, and ends when the token is exchanged. One that was signed out is known
by its cookie until a restart, for the pages that are still open with it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.requests import cookie_parser

from recollect.web.hosts import is_loopback

TOKEN_BYTES = 32
COOKIE = "recollect_session"
SIGNING = b"recollect session v1"
SIGNED_OUT_MAX = 1_000


def token_in(path: Path) -> str:
    """The token in a file, which is made if it is not there."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        token = path.read_text().strip()
        if token:
            return token
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return token


class Doorkeeper:
    """Knows the token, and tells who has signed in."""

    def __init__(
        self,
        token: str,
        *,
        host: str,
        session_s: float,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """`host` is what the process is bound to."""
        self._token = token.encode()
        self._key = hmac.digest(self._token, SIGNING, hashlib.sha256)
        self._session_s = session_s
        self._now_s = now_s
        # Those that would hold still, the longest signed out first.
        self._signed_out: OrderedDict[str, None] = OrderedDict()
        self.viewing_is_free = is_loopback(host)

    @property
    def session_s(self) -> int:
        """How long a cookie holds."""
        return int(self._session_s)

    def accepts(self, token: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(token.encode(), self._token)

    def new_cookie(self) -> str:
        """What a browser that signed in is given; under the name `COOKIE`."""
        until = str(int(self._now_s() + self._session_s))
        # Two who sign in within a second do not have one session.
        said = f"{until}-{secrets.token_hex(8)}"
        return f"{said}.{self._signature(said)}"

    def knows(self, cookie: str) -> bool:
        """Whether a cookie is one of ours and still holds."""
        said, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(said).encode()):
            return False
        until = said.partition("-")[0]
        return until.isdigit() and int(until) > self._now_s() and cookie not in self._signed_out

    def sign_out(self, headers: Mapping[str, str]) -> None:
        """Know the session of a request no longer."""
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        if self.knows(cookie):
            self._signed_out[cookie] = None
            if len(self._signed_out) > SIGNED_OUT_MAX:
                self._signed_out.popitem(last=False)

    def signed_in(self, headers: Mapping[str, str]) -> bool:
        """Whether a request comes from somebody who has signed in, by cookie or by token."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.accepts(given.strip()):
            return True
        # Other programs on this machine leave cookies too, in forms that stop a stricter reader.
        return self.knows(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))

    def may_view(self, headers: Mapping[str, str]) -> bool:
        """Whether a request may be shown anything."""
        return self.viewing_is_free or self.signed_in(headers)

    def may_change(self, headers: Mapping[str, str]) -> bool:
        """Whether a request may change anything: only after signing in, wherever it comes from."""
        return self.signed_in(headers)

    def _signature(self, until: str) -> str:
        return hmac.new(self._key, until.encode(), hashlib.sha256).hexdigest()
