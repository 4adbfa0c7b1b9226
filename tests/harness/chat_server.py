"""A real HTTP server that speaks OpenAI's chat protocol, answers as it is told and fails likewise.

Without anything told, it answers with the first of the memories that it is asked about.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from tests.harness.embedding_server import EmbeddingServer, Reply


class ChatServer(EmbeddingServer):
    """Listens on loopback from `with` to its end."""

    path = "/v1/chat/completions"

    def __init__(self, *, key: str | None = None) -> None:
        super().__init__(key=key)
        self._answers: deque[str] = deque()

    def answer(self, *answers: str | dict[str, Any]) -> None:
        """What to say to the next requests, one each: text as it is, or an object as JSON."""
        self._answers.extend(a if isinstance(a, str) else json.dumps(a) for a in answers)

    def asked(self) -> list[list[str]]:
        """The texts of the memories that each request was about."""
        return [_texts(request.body) for request in self.received]

    def _reply(self, body: dict[str, Any]) -> Reply:
        if self._answers:
            content = self._answers.popleft()
        else:
            content = json.dumps({"settled": True, "content": _texts(body)[0]})
        message = {"role": "assistant", "content": content, "refusal": None}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }


def _texts(body: dict[str, Any]) -> list[str]:
    asked = json.loads(body["messages"][-1]["content"])
    return [memory["text"] for memory in asked["memories"]]
