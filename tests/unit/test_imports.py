"""Imports point one way, and the client is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import recollect
from recollect.protocol.errors import NotFound

ROOT = Path(recollect.__file__).parent

# What each package may import of our own code.
ALLOWED = {
    "protocol": {"protocol"},
    "config": {"config"},
    "client": {"client", "protocol", "_version"},
    "models": {"models", "protocol"},
    "orchestrator": {
        *("orchestrator", "models", "protocol", "config"),
        *("event_loop", "tokens", "_version"),
    },
    "scheduler": {"scheduler", "client", "protocol", "config", "_version"},
    "health": {"health", "web", "client", "protocol", "config", "_version"},
    "gateway": {
        *("gateway", "web", "client", "protocol", "config"),
        *("event_loop", "tokens", "_version"),
    },
    "web": {"web"},
    "integrations": {"integrations", "client", "protocol", "_version"},
    "exchange": {"exchange", "client", "protocol", "_version"},
    "cli": {
        *("cli", "orchestrator", "scheduler", "health", "gateway", "exchange", "client"),
        *("models", "protocol", "config", "logs", "_version"),
    },
    "logs": {"config"},
    "event_loop": set(),
    "tokens": set(),
    "_version": set(),
    "__main__": {"cli"},
    "__init__": {"client", "errors", "_version"},
    "errors": {"protocol"},
    "testing": {"client"},
}
THIRD_PARTY = {
    "protocol": {"msgspec"},
    "config": {"msgspec", "yaml"},
    "client": {"msgspec", "zmq", "pybreaker"},
    "models": {"msgspec"},
}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def sources() -> list[tuple[str, Path]]:
    found = []
    for path in ROOT.rglob("*.py"):
        inside = path.relative_to(ROOT)
        found.append((inside.parts[0] if len(inside.parts) > 1 else inside.stem, path))
    return found


def test_imports_point_one_way() -> None:
    wrong = []
    for package, path in sources():
        assert package in ALLOWED, f"say in ALLOWED what {package} may import"
        for name in imported(path):
            if name.startswith("recollect.") and name.split(".")[1] not in ALLOWED[package]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_the_inner_packages_need_only_their_own_dependencies() -> None:
    wrong = []
    for package, path in sources():
        if package in THIRD_PARTY:
            for name in imported(path):
                top = name.split(".")[0]
                if top != "recollect" and top not in sys.stdlib_module_names | THIRD_PARTY[package]:
                    wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_importing_the_client_brings_nothing_of_the_server() -> None:
    script = "import sys, recollect.client; print('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = set(run.stdout.split())
    heavy = {
        "apsw",
        "faiss",
        "numpy",
        "httpx",
        "yaml",
        "structlog",
        "typer",
        "rich",
        "psycopg",
        "redis",
    }
    assert not modules & heavy
    assert not {name for name in modules if name.startswith("recollect.orchestrator")}


def test_what_is_exported_is_what_is_there() -> None:
    assert sorted(recollect.__all__) == recollect.__all__ == dir(recollect)
    assert recollect.__all__ == [
        *("AsyncMemoryClient", "Breaker", "MemoryClient", "Pool", "RecollectError", "Retry"),
        *("Timeouts", "__version__", "errors"),
    ]
    for name in recollect.__all__:
        assert hasattr(recollect, name)
    assert recollect.errors.NotFound is NotFound
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        recollect.nothing  # noqa: B018
