"""What kind of document a file or a text is: told from its name, and if that says nothing, from how
it begins."""

from __future__ import annotations

import re

BY_ENDING = {
    "markdown": "md markdown mdown mkd mdx",
    "html": "html htm xhtml",
    "pdf": "pdf",
    "text": "txt text rst adoc asciidoc org log csv tsv srt vtt tex",
    "code": (
        "py pyi js mjs cjs ts tsx jsx java kt kts scala groovy go rs c h cc cpp cxx hpp hh m mm "
        "swift cs fs vb rb php pl pm lua r jl dart ex exs erl hrl hs ml mli clj cljs elm nim zig v "
        "sql sh bash zsh fish ps1 bat cmake mk gradle proto thrift graphql vue svelte css scss "
        "sass less toml yaml yml json jsonc ini cfg conf properties xml tf hcl nix"
    ),
}
_KINDS = {ending: kind for kind, endings in BY_ENDING.items() for ending in endings.split()}
_NAMES = {
    "readme": "text",
    "license": "text",
    "licence": "text",
    "copying": "text",
    "notice": "text",
    "authors": "text",
    "changelog": "text",
    "changes": "text",
    "makefile": "code",
    "dockerfile": "code",
    "jenkinsfile": "code",
    "rakefile": "code",
    "gemfile": "code",
}
_html = re.compile(r"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.I | re.S)
_markdown = re.compile(r"^(#{1,6} \S|```|~~~)", re.M)
LOOKED_AT_CHARS = 4096
PDF_SIGN = b"%PDF-"


def kind_of_name(name: str) -> str | None:
    """The kind that a file's name tells; None if it tells nothing that we read."""
    name = name.rsplit("/", 1)[-1].lower()
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem:
        return _NAMES.get(name)
    return _KINDS.get(ending)


def kind_of_text(text: str) -> str:
    """The kind that a text's beginning tells."""
    head = text[:LOOKED_AT_CHARS]
    if _html.match(head):
        return "html"
    return "markdown" if _markdown.search(head) else "text"
