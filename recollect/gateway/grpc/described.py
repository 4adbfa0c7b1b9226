"""What is written in the code below a record's fields: Python itself does not keep it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any, is_typeddict


def docs_of_fields(record: Any) -> dict[str, str]:
    """The docstring below each field of a TypedDict, also of those that it inherits."""
    docs: dict[str, str] = {}
    for cls in reversed([record, *getattr(record, "__orig_bases__", ())]):
        if is_typeddict(cls):
            if cls is not record:
                docs |= docs_of_fields(cls)
            else:
                docs |= _own_docs(cls)
    return docs


def _own_docs(cls: Any) -> dict[str, str]:
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    docs = {}
    for before, here in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(here, ast.Expr)
            and isinstance(here.value, ast.Constant)
        ):
            docs[before.target.id] = inspect.cleandoc(str(here.value.value))
    return docs
