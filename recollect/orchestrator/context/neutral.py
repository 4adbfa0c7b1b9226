"""Makes a text harmless to quote: it stays readable, and means nothing to a chat template.

What cannot be seen goes: escapes of terminals, controls of direction, characters without width.
What a template takes for a role or the end of a turn is written a little differently. Doing it
twice changes nothing more.
"""

from __future__ import annotations

import re

MARK = "\N{REPLACEMENT CHARACTER}"
OPENING, CLOSING = (
    "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}",
    ("\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"),
)
BAR = "\N{BROKEN BAR}"
ATTRIBUTE_CHARS_MAX = 120

# Sequences of a terminal: with parameters, with a text up to its end, and of two characters.
_ESCAPES = re.compile(
    "\x1b\\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b[\\]PX^_][^\x07\x1b]{0,1024}(?:\x07|\x1b\\\\)"
    "|\x1b[ -/]{0,8}[0-~]?"
)
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufff9-\ufffb]")
# Without width or a sign of their own: soft hyphen, marks and overrides of direction, joiners of
# words, fillers, selectors of variants, and tags, which spell whole hidden texts.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# These two shape letters and join emoji, and how a sign is drawn; elsewhere they only hide.
_JOINERS = re.compile("(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])")
_STYLES = re.compile("(?<![^\x00-\x22\x24-\x29\x2b-\x2f\x3a-\x7f\ufe0e\ufe0f])[\ufe0e\ufe0f]")

# <|im_start|> and its kind, also with the wide bar.
_BARRED = re.compile("<[|\uff5c](?=[\\w/\u2581])")
# Our own fences, however they are spelled.
_FENCES = re.compile(
    "[<\uff1c\ufe64\u02c2\u1438\u2039\u2329\u27e8\u276c\u276e\u3008]"
    "(?=[\\s/\uff0f\u2044\u2215\\\\]*data[\\s]*[-_\u2010-\u2015\u2212\ufe63\uff0d])",
    re.IGNORECASE,
)
# </s>, <start_of_turn>: tokens of control that are spelled as tags.
_TOKENS = re.compile(
    r"<(?=\s*/?\s*(?:s|bos|eos|sop|eop|pad|unk|mask|cls|sep|begin_of_text|end_of_text|endoftext|"
    r"start_of_turn|end_of_turn|start_of_image|im_start|im_end)\s*/?>)",
    re.IGNORECASE,
)
# Tags in which prompts are often wrapped. Only what ends one stands behind a word: elsewhere
# `List<User>` is code.
_TAGS = re.compile(
    r"(?:(?<!\w)<|<(?=\s*/))(?=\s*/?\s*(?:\w{1,16}:)?(?:"
    r"system|user|assistant|human|developer|bot|ai|model|tool|turn|message|prompt|"
    r"system[-_]?(?:prompt|message|reminder)|instructions?|context|memory|memories|data|"
    r"documents?|search_results?|results?|tool_(?:call|calls|use|response|result|results)|"
    r"function(?:_calls?|_results?)?|invoke|parameter|think(?:ing)?|answer)(?:[\s>/]|\Z))",
    re.IGNORECASE,
)
_SYS = re.compile(r"<<(?=\s*/?\s*SYS\s*>>)", re.IGNORECASE)
_BRACKETED = re.compile(
    r"\[(\s*/?\s*(?:INST|SYS|SYSTEM|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|"
    r"TOOL_CONTENT|USER|ASSISTANT|HUMAN|gMASK|sMASK|BOS|EOS|CLS|SEP|MASK|PAD|UNK)\s*)\]",
    re.IGNORECASE,
)
# A line that begins as a turn does: quoted, as a mail quotes.
_ROLES = re.compile(
    r"^(?=[ \t*_\-\[({\"'`]{0,12}(?:system|user|human|assistant|developer|tool|bot|ai|gpt|claude|"
    r"chatgpt)(?: (?:prompt|message|instructions?))?[\])}*_\"'` ]{0,6}[:\uff1a\ufe55\ua789\u2236]"
    r"|[ \t]{0,12}#{1,6}[ \t*_]{0,6}(?:system|user|human|assistant|instructions?|input|output|"
    r"response|context|tool)[*_ ]{0,6}[:\uff1a\n])",
    re.IGNORECASE | re.MULTILINE,
)
_BLANKS = re.compile(r"\s+")


def neutral(text: str) -> str:
    """A text as it may stand between fences."""
    text = _ESCAPES.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _CONTROLS.sub(MARK, text).strip()
    if not text.isascii():
        text = _seen(text)
    if "<" in text or not text.isascii():
        text = _FENCES.sub(OPENING, text)
        text = _BARRED.sub(f"<{BAR}", text)
        text = _SYS.sub(OPENING * 2, text)
        text = _TOKENS.sub(OPENING, text)
        text = _TAGS.sub(OPENING, text)
    if "[" in text:
        text = _BRACKETED.sub(r"(\1)", text)
    return _ROLES.sub("> ", text)


def _seen(text: str) -> str:
    """A text without what cannot be seen; taking some away can bare more."""
    while True:
        left = _JOINERS.sub("", _STYLES.sub("", _UNSEEN.sub("", text))).strip()
        if left == text:
            return left
        text = left


def attribute(text: str) -> str:
    """A text as it may stand between quotation marks within a fence: short, and on one line."""
    text = _BLANKS.sub(" ", neutral(text[: 4 * ATTRIBUTE_CHARS_MAX])).strip()
    text = text.replace('"', "'").replace("<", OPENING).replace(">", CLOSING)
    return text if len(text) <= ATTRIBUTE_CHARS_MAX else f"{text[: ATTRIBUTE_CHARS_MAX - 1]}…"
