"""Which words say what was done, and which of them are one word in other forms.

It knows English. In another language every word counts, and only what is said alike is found.
"""

from __future__ import annotations

import re

_word = re.compile(r"[^\W_]\w*(?:[-'\u2019.]\w+)*")
_vowel = re.compile(r"[aeiouy]")
# A number, a version, a date, a ticket, a part of a hash: they name one thing and tell nothing of
# others. What has a digit or two may be a name, such as s3 or us-east-1.
_one_thing = re.compile(r"v?\d.*|(?:[^\d]*\d){3}.*", re.DOTALL)


def split(text: str) -> list[str]:
    """The words of a text, as they are written."""
    return _word.findall(text)


def names_one_thing(word: str) -> bool:
    """Whether a word is a number or an id."""
    return _one_thing.fullmatch(word) is not None


def stem(word: str) -> str:
    """A word in small letters and without its ending: checks, checked and checking are check."""
    word = word.lower().replace("\u2019", "'")
    if len(word) > 4 and word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "'s")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 2 and _vowel.search(root) and not word.endswith("eed"):
            doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz"
            word = root[:-1] if doubled else root
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


STOP_WORDS = _listed("""
    a about again all also although always am an any anything are as at be because been being both
    by could did do does doing done during each else even ever everything for from further had has
    have having he her here hers him his how however i if in into is it its itself just may me
    might more most much must my of on once only or other our own per please quite rather really
    same shall she should since so some something still such than that the their them these they
    this those through to too until upon us use used using very via was we were what when where
    whether which while who whom why will with within would yet you your went well task ok okay
    """)
# Here one thing that was done ends, and another begins.
BETWEEN = _listed("although and because but hence however or since so then thus which")
# Without a backup is not a backup, and one that was skipped was not made.
DENYING = _stems(
    "no not never without none nobody nothing neither nor cannot skip forgot forget forgotten omit "
    "lack instead"
)
# Alone these tell nothing: what everybody does, where and when. "Switched over" is more than
# "switched", and before is not after.
VAGUE = _stems("""
    after before off out over under up down back away together
    add began begin bring brought call came change come first get give gave go got kept keep last
    later let look made make need new next now old one put ran run second see seem set start take
    taken took tried try turn two three want way
    bit day few hour little long lot minute month several time today tomorrow week while year
    yesterday
    """)
# How it went is known; what is looked for is why.
OUTCOMES = _stems("""
    abort break broke broken complete correct crash end error fail failure fine finish good green
    happen issue ok outcome pass perfect problem result revert roll rollback stable succeed
    succeeded success successful successfully trouble work wrong
    """)
EMPTY = VAGUE | OUTCOMES


def denies(stemmed: str) -> bool:
    """Whether what comes after is said not to be."""
    return stemmed in DENYING or stemmed.endswith("n't")
