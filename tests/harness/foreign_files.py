"""Small files as other programs write them, made up for tests."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from pathlib import Path
from typing import Any


def mem0_file(folder: Path) -> Path:
    """What mem0's get_all() gives, graph included."""
    results = [
        {
            "id": "5b7a1c9e-0001",
            "memory": "Prefers window seats on night trains",
            "hash": "ab12",
            "metadata": {"topic": "travel"},
            "created_at": "2024-03-01T09:30:00+00:00",
            "updated_at": None,
            "user_id": "alice",
            "categories": ["travel"],
        },
        {
            "id": "5b7a1c9e-0002",
            "memory": "Is allergic to walnuts",
            "hash": "cd34",
            "metadata": None,
            "created_at": "2024-05-01T00:00:00Z",
            "updated_at": "2024-06-01T00:00:00Z",
            "user_id": "alice",
            "agent_id": "cook",
        },
    ]
    relations = [{"source": "alice", "relationship": "allergic_to", "target": "walnuts"}]
    path = folder / "mem0.json"
    path.write_text(json.dumps({"results": results, "relations": relations}))
    return path


def mcp_memory_file(folder: Path) -> Path:
    """The file of the MCP memory server; a relation stands before what it relates."""
    lines = [
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": []},
        {"type": "relation", "from": "Ada", "to": "Engine", "relationType": "programs"},
        {
            "type": "entity",
            "name": "Engine",
            "entityType": "machine",
            "observations": ["Weaves algebraic patterns", "Stands in London"],
        },
    ]
    path = folder / "memory.json"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def langgraph_items() -> list[dict[str, Any]]:
    """Items of a LangGraph store."""
    return [
        {
            "namespace": ["memories", "alice b"],
            "key": "tea",
            "value": {"text": "Likes green tea", "score": 0.5},
            "created_at": "2024-01-02T03:04:05+00:00",
            "updated_at": "2024-01-02T03:04:05+00:00",
        },
        {
            "namespace": ["memories", "bob"],
            "key": "tea",
            "value": {"likes": ["oolong"]},
            "created_at": "2024-01-02T03:04:05+00:00",
            "updated_at": "2024-02-02T03:04:05+00:00",
        },
    ]


def langgraph_json(folder: Path) -> Path:
    """The items as a list."""
    path = folder / "store.json"
    path.write_text(json.dumps(langgraph_items()))
    return path


def langgraph_database(folder: Path) -> Path:
    """The database of a SqliteStore with the same items."""
    path = folder / "store.db"
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value text NOT NULL, "
        "created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, "
        "updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, "
        "expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key))"
    )
    for item in langgraph_items():
        values = (".".join(item["namespace"]), item["key"], json.dumps(item["value"]))
        database.execute(
            "INSERT INTO store (prefix, key, value, created_at) VALUES (?, ?, ?, ?)",
            (*values, "2024-01-02 03:04:05"),
        )
    database.commit()
    database.close()
    return path


def chatgpt_conversation() -> dict[str, Any]:
    """A conversation in which an answer was asked for twice, with a hidden message before it."""

    def node(name: str, parent: str | None, children: list[str], message: Any) -> dict[str, Any]:
        return {"id": name, "parent": parent, "children": children, "message": message}

    def said(name: str, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
        return {
            "id": f"m-{name}",
            "author": {"role": role, "name": None},
            "create_time": 1_700_000_000.5,
            "content": {"content_type": "text", "parts": list(parts)},
            "metadata": {},
            "recipient": "all",
            **more,
        }

    hidden = said("system", "system", "Be kind.")
    return {
        "title": "Sailing to the lighthouse",
        "create_time": 1_700_000_000.0,
        "conversation_id": "c-1",
        "current_node": "again",
        "mapping": {
            "root": node("root", None, ["system"], None),
            "system": node("system", "root", ["asked"], hidden),
            "asked": node(
                "asked", "system", ["first", "again"], said("asked", "user", "Which way?")
            ),
            "first": node("first", "asked", [], said("first", "assistant", "South.")),
            "again": node(
                "again",
                "asked",
                [],
                said(
                    "again", "assistant", "North by east.", {"content_type": "image_asset_pointer"}
                ),
            ),
        },
    }


def chatgpt_zip(folder: Path) -> Path:
    """ChatGPT's export."""
    path = folder / "chatgpt.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", json.dumps([chatgpt_conversation()]))
    return path


def claude_file(folder: Path) -> Path:
    """Claude's conversations, unpacked."""
    (folder / "claude").mkdir()
    path = folder / "claude" / "conversations.json"
    conversation = {
        "uuid": "0a-1",
        "name": "",
        "created_at": "2024-07-01T10:00:00.000000Z",
        "updated_at": "2024-07-01T10:05:00.000000Z",
        "account": {"uuid": "someone"},
        "chat_messages": [
            {
                "uuid": "m-1",
                "text": "Read this.",
                "content": [{"type": "text", "text": "Read this."}],
                "sender": "human",
                "created_at": "2024-07-01T10:00:00.000000Z",
                "attachments": [{"file_name": "tides.txt", "extracted_content": "low"}],
                "files": [],
            },
            {
                "uuid": "m-2",
                "text": "The tide is low at noon.",
                "content": [],
                "sender": "assistant",
                "created_at": "2024-07-01T10:01:00.000000Z",
            },
        ],
    }
    path.write_text(json.dumps([conversation], indent=1))
    return path
