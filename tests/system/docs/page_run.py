"""One page followed from its beginning to its end, as a reader would, in a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from recollect import MemoryClient
from tests.harness.commands_on_path import CommandsOnPath
from tests.harness.forks import ROOT
from tests.harness.pages import Block, Page
from tests.harness.ports import free_port
from tests.harness.processes import LIGHT, OrchestratorProcess
from tests.system.docs.page_python import PagePython

ENDS_WITHIN_S = 110
USUAL_PORTS = (7331, 7332, 7333, 7334)
QUICK = {
    "RECOLLECT_HEALTH_DASHBOARD": "false",
    "RECOLLECT_GATEWAY_MCP": "false",
    "RECOLLECT_GATEWAY_GRPC": "false",
}
"""What takes long to import, and has tests of its own."""
WITHOUT = {
    "docs/access.md": ("scheduler", "gateway", "health"),
    "docs/operating.md": ("scheduler", "gateway"),
    "docs/quickstart.md": ("scheduler", "gateway"),
}
"""Processes that a page starts by `recollect up` and then asks for nothing."""
FILE_NAMED = re.compile(r"# (\S+\.yaml)\n")


class PageRun:
    """A folder, an environment and commands, in which the blocks of a page are run in order."""

    def __init__(self, page: Page, folder: Path, **settings: str) -> None:
        self.page = page
        self.folder = folder
        self.data = folder / "recollect-data"
        self.ports = {usual: free_port() for usual in USUAL_PORTS}
        self.placeholders: dict[str, Callable[[], str]] = {}
        """Words in commands that a reader replaces, with what to put there."""
        self._commands = CommandsOnPath(WITHOUT.get(page.name, ()))
        self._python: PagePython | None = None
        self.open = ExitStack()
        self.open.callback(self._commands.close)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")}
        self.env = {
            **inherited,
            **LIGHT,
            **QUICK,
            "RECOLLECT_ENDPOINT": self.endpoint,
            "RECOLLECT_NETWORK_BIND": self.endpoint,
            "RECOLLECT_HEALTH_PORT": str(self.ports[7332]),
            "RECOLLECT_GATEWAY_PORT": str(self.ports[7333]),
            "RECOLLECT_GATEWAY_GRPC_PORT": str(self.ports[7334]),
            "PYTHONPATH": str(ROOT),
            "PATH": self._commands.path,
            "COLUMNS": "200",
            "NO_COLOR": "1",
            **settings,
        }
        for block in page.blocks:
            # A configuration that says which file it is, is that file.
            if block.language == "yaml" and (file := FILE_NAMED.match(block.source)):
                (folder / file[1]).write_text(block.source)
        # `make` would have put it there.
        (folder / ".venv" / "bin").mkdir(parents=True)
        (folder / ".venv" / "bin" / "recollect").symlink_to(self._commands.folder / "recollect")

    @property
    def endpoint(self) -> str:
        return f"tcp://127.0.0.1:{self.ports[7331]}"

    def start_orchestrator(self) -> OrchestratorProcess:
        """What a reader has running by `recollect up`, as far as most pages need it."""
        settings = {k: v for k, v in self.env.items() if k.startswith("RECOLLECT_")}
        process = OrchestratorProcess(self.data, port=self.ports[7331], env=settings)
        self.open.callback(process.close)
        return process.start()

    def start_everything(self) -> None:
        """`recollect up`, whole."""
        self.stop_at_the_end()
        self.shell("recollect up --detach")

    def stop_at_the_end(self) -> None:
        """See to it that what the page itself starts ends with it."""
        self.open.callback(self.shell, "recollect down || true")

    def client(self) -> MemoryClient:
        return self.open.enter_context(MemoryClient(self.endpoint))

    def run(self, *languages: str) -> str:
        """Run all blocks of some languages in their order; what they printed."""
        return "".join(
            self._run_block(block)
            for block in self.page.blocks
            if block.not_run is None and block.language in languages
        )

    def _run_block(self, block: Block) -> str:
        source = self._here(block.source)
        if block.language == "python":
            if self._python is None:
                self._python = PagePython(self.page.name, self.folder, self.env)
                self.open.callback(self._python.close)
            return self._python.run(block, source)
        return self.shell(source, f"{self.page.name}:{block.line}")

    def _here(self, source: str) -> str:
        """The source with the ports and names of this run."""
        for usual, port in self.ports.items():
            source = re.sub(rf"\b(127\.0\.0\.1|localhost):{usual}\b", rf"127.0.0.1:{port}", source)
        for word, found in self.placeholders.items():
            if re.search(rf"\b{word}\b", source):
                source = re.sub(rf"\b{word}\b", found(), source)
        return source

    def shell(self, source: str, name: str = "") -> str:
        """Run commands; the first that fails ends them and the test."""
        if "curl" in source and not shutil.which("curl"):
            (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no curl")
        ended = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", source],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ENDS_WITHIN_S,
            cwd=self.folder,
            env=self.env,
        )
        assert ended.returncode == 0, f"{name}\n{source}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def __enter__(self) -> PageRun:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.open.close()
