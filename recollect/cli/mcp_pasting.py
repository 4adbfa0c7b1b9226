"""What to paste into the settings of MCP clients, with the command of this installation."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

NAME = "recollect"


def own_command(folder: Path | None) -> list[str]:
    """The command that starts the server from anywhere, on a data folder if there is one."""
    script = Path(sys.executable).with_name("recollect")
    started = [str(script)] if script.is_file() else [sys.executable, "-m", "recollect"]
    found = ["--data", str(folder.resolve())] if folder is not None and folder.is_dir() else []
    return [*started, "mcp", *found]


def pasted(command: list[str]) -> str:
    """The lines for each client, and where they go."""
    started: dict[str, Any] = {"command": command[0], "args": command[1:]}
    typed = {"type": "stdio", **started}
    parts = (
        ("Claude Desktop, in claude_desktop_config.json:", {"mcpServers": {NAME: started}}),
        ("Claude Code, in .mcp.json of a project:", {"mcpServers": {NAME: typed}}),
        ("Cursor, in ~/.cursor/mcp.json or .cursor/mcp.json:", {"mcpServers": {NAME: started}}),
        ("VS Code, in .vscode/mcp.json:", {"servers": {NAME: typed}}),
    )
    told = [f"{where}\n\n{json.dumps(lines, indent=2)}\n" for where, lines in parts]
    added = f"claude mcp add --scope user {NAME} -- {shlex.join(command)}"
    told.insert(2, f"or, for all projects:\n\n{added}\n")
    return "\n".join(told)
