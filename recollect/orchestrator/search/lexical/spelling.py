"""How odd words are spelled out, in the same way in what is indexed and in what is asked.

FTS5 takes a run of letters and digits for one word and everything else for a gap. That serves most
languages. Three kinds of text need help:

- Scripts without gaps (Chinese, Japanese, Thai, …): each pair of neighbouring characters becomes a
  word, and so does the last character of a run. Any part of a run is then found by its pairs, and
  a single character by the words that begin with it. Korean is spelled so too, for its endings.
- Names in code: `parseHttpRequest`, `sha256` and `E0502` are words as they stand, and their parts
  become words beside them.
- Emoji: each gets a word made of its code points.
"""

from __future__ import annotations

import re

WORD_CHARS_MAX = 64
"""A longer run of letters and digits is a key or a digest: its parts mean nothing."""
PARTS_MAX = 8

GAPLESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U00020000-\U0003ffff"
)
EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}|"  # two letters make a flag
    "[\u203c\u2049\u231a-\u23ff\u25a0-\u27bf\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)

# Where small letters, capitals and digits meet inside a word, but for one leading capital. The
# pattern starts with one set of characters, because a scan for that is fast.
has_parts = re.compile(
    "[A-Z0-9](?:(?<=[a-z].)|(?<=[A-Z][0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Z]{2})(?=[a-z]))"
).search
find_words = re.compile("[A-Za-z0-9]+").findall
find_parts = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+").findall
find_gapless = re.compile(f"[{GAPLESS}]+").findall
has_gapless = re.compile(f"[{GAPLESS}]").search
find_emoji = re.compile(EMOJI).findall
find_mixed = re.compile(f"[^\\W{GAPLESS}]+(?=[{GAPLESS}])|(?<=[{GAPLESS}])[^\\W{GAPLESS}]+").findall


def parts_of(word: str) -> list[str]:
    """The parts of a name in code; none if the word has no parts worth finding."""
    if len(word) > WORD_CHARS_MAX:
        return []
    parts: list[str] = find_parts(word)
    if not 2 <= len(parts) <= PARTS_MAX or max(map(len, parts)) < 2:
        return []
    return parts


def pairs_of(run: str) -> list[str]:
    """The words that stand for a run of characters without gaps: its pairs, then its last one."""
    # Marks that belong to a letter are gaps to FTS5.
    letters = "".join(filter(str.isalnum, run))
    return [letters[at : at + 2] for at in range(len(letters))]


def word_of_emoji(emoji: str) -> str:
    """A word that FTS5 keeps whole."""
    return "emoji" + "x".join(f"{ord(character):x}" for character in emoji)


def spelled_out(text: str) -> list[str]:
    """The words to be indexed beside a text so that its odd words are found."""
    added: list[str] = []
    if has_parts(text):
        for word in dict.fromkeys(find_words(text)):
            if has_parts(word):
                added += parts_of(word)
    if not text.isascii():
        if has_gapless(text):
            added += find_mixed(text)
            for run in dict.fromkeys(find_gapless(text)):
                added += pairs_of(run)
        added += map(word_of_emoji, dict.fromkeys(find_emoji(text)))
    return added
