"""How passwords, keys and tokens look.

First come the shapes that providers gave their keys, so that leaked ones are found. What has no
shape of its own is taken for a secret by what stands before it, and only if it does not read like a
word, a path, a call or a placeholder: text about passwords is no secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple


class Found(NamedTuple):
    """A secret in a text: where it stands, and what it seems to be."""

    start: int
    end: int
    kind: str


class Shape(NamedTuple):
    """A pattern whose group `secret`, or the whole of it, is a secret if the test agrees."""

    kind: str
    pattern: re.Pattern[str]
    agrees: Callable[[str], bool] = lambda text: True


MASK = "[masked {kind}]"
ENTROPY_BITS_MIN = 3.0
LONG_CHARS_MIN = 20

_EDGE = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9_-])"
_PASSWORD_WORDS = r"pass[_-]?(?:word|wd|phrase|code)|passwd|pwd"
_TOKEN_WORDS = (
    r"secrets?|tokens?|credentials?|api[ _-]?keys?|access[ _-]?keys?|private[ _-]?keys?|"
    r"secret[ _-]?(?:access[ _-]?)?keys?|auth[ _-]?keys?|encryption[ _-]?keys?|signing[ _-]?keys?"
)
_LITERAL = r"""(?P<quote>["'`])(?P<secret>[^"'`\n]{4,512})(?P=quote)"""
_BARE = r"""(?P<secret>[^\s"'`,;()<>{}\[\]]{6,512})"""

# What stands where a secret would, and is none.
_PLACEHOLDER = re.compile(
    r"""(?ix)
    [<\[{($%].* | .*[>\]})] | .*\$\{.* | .*\(.* |
    (.)\1* | x{3,}.* | \*+ | \.{2,} | …+ |
    (?:your|my|the|some|any|new|old|example|sample|dummy|fake|test|changeme|change[_-]?me|redacted|
       masked|hidden|none|null|nil|true|false|undefined|empty|unset|todo|tbd|required|optional|
       string|str|bytes|int|text|value|pass|password|passwd|passphrase|secret|token|key|apikey|
       api[_-]key|credentials?|username|user|env|environ|prompt|input|getpass|vault|keychain)
    (?:[\s_.-].*)?
    """
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{20,}={0,2}")
_PATH = re.compile(r"(?:~|\.{0,2})/[\w./ -]*")
"""A file or folder: `pwd` is also what tells where one is."""
_NAME = re.compile(r"[A-Za-z_]+(?:[._/:-][A-Za-z_]+)*\d{0,2}")
"""A word, or several joined: an identifier, a path, a host."""


def is_placeholder(text: str) -> bool:
    """Whether a text only stands where a secret would."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def looks_made(text: str) -> bool:
    """Whether a text looks made by a generator or for a password: no word, name or plain number."""
    text = text.strip().rstrip(".,;:!?")
    if len(text) < 6 or is_placeholder(text) or _UUID.fullmatch(text):
        return False
    digits = sum(character.isdigit() for character in text)
    letters = sum(character.isalpha() for character in text)
    if not letters or "://" in text:
        return False
    if text.count("/") > 1 and not (digits > 2 and _BASE64.fullmatch(text) and _is_random(text)):
        return False  # a path
    if _NAME.fullmatch(text):
        # Words are written in one case, or with capitals at their beginnings.
        return len(text) >= LONG_CHARS_MIN and _is_random(text)
    signs = sum(not character.isalnum() for character in text)
    return (digits >= 1 and letters >= 2) or signs >= 2


def _is_random(text: str) -> bool:
    """Whether a long text has about as many different characters as chance would give."""
    counts = Counter(text)
    entropy = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    kinds = (
        any(c.islower() for c in text)
        + any(c.isupper() for c in text)
        + any(c.isdigit() for c in text)
    )
    switches = sum(a.isupper() != b.isupper() for a, b in pairwise(text))
    return entropy >= ENTROPY_BITS_MIN and kinds >= 2 and (kinds == 3 or switches >= len(text) / 4)


def _long_and_random(text: str) -> bool:
    return (
        len(text) >= LONG_CHARS_MIN
        and not is_placeholder(text)
        and not _UUID.fullmatch(text)
        and any(character.isdigit() for character in text)
        and _is_random(text)
    )


def _is_password(text: str) -> bool:
    return not is_placeholder(text) and not _PATH.fullmatch(text)


def _shape(
    kind: str, pattern: str, agrees: Callable[[str], bool] = lambda text: True, flags: int = 0
) -> Shape:
    return Shape(kind, re.compile(pattern, flags), agrees)


SHAPES: tuple[Shape, ...] = (
    _shape(
        "private key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:.*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|.*)",
        flags=re.S,
    ),
    _shape("Anthropic key", rf"{_EDGE}sk-ant-[A-Za-z0-9_-]{{16,}}"),
    _shape(
        "OpenAI key",
        rf"{_EDGE}sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{{16,}}|[A-Za-z0-9]{{32,}})",
    ),
    _shape("AWS key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _shape(
        "AWS key",
        r"""secret_?(?:access_?)?key["']?\s{0,3}[=:]\s{0,3}["']?"""
        r"(?P<secret>[A-Za-z0-9+][A-Za-z0-9/+]{39})(?![A-Za-z0-9/+=])",
        _is_random,
        re.I,
    ),
    _shape("GitHub token", rf"{_EDGE}(?:gh[oprsu]_[A-Za-z0-9]{{36,}}|github_pat_\w{{22,}})"),
    _shape("GitLab token", rf"{_EDGE}gl(?:pat|dt|rt|ptt|cbt|soat|agent|ft)-[A-Za-z0-9_-]{{20,}}"),
    _shape("Slack token", rf"{_EDGE}(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{{10,}}"),
    _shape("Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
    _shape("Stripe key", rf"{_EDGE}(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{{16,}}"),
    _shape("Recollect key", rf"{_EDGE}rk_[A-Za-z0-9_-]{{43}}{_END}"),
    _shape(
        "Google key",
        rf"{_EDGE}(?:AIza[A-Za-z0-9_-]{{35}}{_END}|GOCSPX-[A-Za-z0-9_-]{{20,}}"
        r"|ya29\.[A-Za-z0-9_-]{20,})",
    ),
    _shape("Hugging Face token", rf"{_EDGE}hf_[A-Za-z0-9]{{30,}}"),
    _shape("npm token", rf"{_EDGE}npm_[A-Za-z0-9]{{36}}{_END}"),
    _shape("PyPI token", rf"{_EDGE}pypi-[A-Za-z0-9_-]{{50,}}"),
    _shape("SendGrid key", rf"{_EDGE}SG\.[A-Za-z0-9_-]{{16,}}\.[A-Za-z0-9_-]{{16,}}"),
    _shape("Telegram token", rf"{_EDGE}\d{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}"),
    _shape(
        "JSON web token",
        rf"{_EDGE}eyJ[A-Za-z0-9_-]{{6,}}\.eyJ[A-Za-z0-9_-]{{6,}}\.[A-Za-z0-9_-]{{6,}}",
    ),
    _shape(
        "authorization header",
        r"\b(?:bearer|basic|token)[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{16,}=*)",
        lambda text: any(character.isdigit() for character in text) and looks_made(text),
        re.I,
    ),
    _shape(
        "password in an address",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@'\"]{0,100}:(?P<secret>[^\s/@'\"]{1,200})@(?=[\w\[])",
        _is_password,
        re.I,
    ),
    _shape(
        "password",
        rf"""(?:{_PASSWORD_WORDS})["'`]?\]?\s{{0,3}}(?::=|=>|=|:)\s{{0,3}}{_LITERAL}""",
        _is_password,
        re.I,
    ),
    _shape(
        "password",
        rf"^[ \t]*(?:export )?[A-Z0-9_]*(?:PASSWORD|PASSWD|PWD)={_BARE}",
        _is_password,
        re.M,
    ),
    _shape(
        "password",
        rf"(?:{_PASSWORD_WORDS})\s{{0,3}}(?::=|=>|=|:|\bis\b:?|\bwas\b|\bto\b)\s{{0,3}}{_BARE}",
        looks_made,
        re.I,
    ),
    _shape(
        "password",
        rf"(?:{_PASSWORD_WORDS})\s{{0,3}}(?:\bis\b:?|\bwas\b|\bto\b)\s{{0,3}}{_LITERAL}",
        _is_password,
        re.I,
    ),
    _shape(
        "token",
        rf"""(?:{_TOKEN_WORDS})["'`]?\]?\s{{0,3}}(?::=|=>|=|:|\bis\b:?)\s{{0,3}}{_LITERAL}""",
        lambda text: len(text) >= 8 and " " not in text and looks_made(text),
        re.I,
    ),
    _shape(
        "token",
        rf"(?:{_TOKEN_WORDS})\s{{0,3}}(?::=|=>|=|:|\bis\b:?)\s{{0,3}}{_BARE}",
        lambda text: len(text.rstrip(".,;:!?")) >= 8 and looks_made(text),
        re.I,
    ),
    _shape(
        "token",
        rf"\b(?:{_TOKEN_WORDS}|{_PASSWORD_WORDS})\b[^\n]{{0,40}}?"
        r"(?<![A-Za-z0-9+/_=.-])(?P<secret>[A-Za-z0-9+/_-]{20,512}={0,2})(?![A-Za-z0-9+/_=-])",
        _long_and_random,
        re.I,
    ),
)

_PASSWORD_KEY = re.compile(rf"(?:.*[_. -])?(?:{_PASSWORD_WORDS})", re.I)
_TOKEN_KEY = re.compile(rf"(?:.*[_. -])?(?:{_TOKEN_WORDS})|.*(?:secret|token|api_?key)", re.I)


def find_secrets(text: str) -> list[Found]:
    """The secrets in a text, in order, none within another."""
    found = sorted(_matches(text), key=lambda one: (one.start, -one.end))
    apart: list[Found] = []
    for one in found:
        if apart and one.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = Found(last.start, max(last.end, one.end), last.kind)
        else:
            apart.append(one)
    return apart


def _matches(text: str) -> Iterator[Found]:
    for kind, pattern, agrees in SHAPES:
        group = "secret" if "secret" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            secret = match[group]
            if not agrees(secret) or secret.startswith("[masked "):
                continue
            end = match.end(group)
            if group and not match.groupdict().get("quote"):
                end -= len(secret) - len(secret.rstrip(".,;:!?"))
            yield Found(match.start(group), end, kind)


def secret_by_name(name: str, text: str) -> str | None:
    """What kind of secret a text is by the name that it goes by, if it is one."""
    if text.startswith("[masked ") or len(text) < 4 or is_placeholder(text):
        return None
    if _PASSWORD_KEY.fullmatch(name):
        return None if _PATH.fullmatch(text) else "password"
    if _TOKEN_KEY.fullmatch(name) and len(text) >= 8 and " " not in text and looks_made(text):
        return "token"
    return None


def masked(text: str, found: list[Found]) -> str:
    """The text with the secrets blotted out."""
    parts, end = [], 0
    for one in found:
        parts += [text[end : one.start], MASK.format(kind=one.kind)]
        end = one.end
    return "".join((*parts, text[end:]))
