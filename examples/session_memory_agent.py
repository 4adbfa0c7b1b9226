"""A conversation that goes on where it was, after the agent and the server were restarted.

    python examples/session_memory_agent.py

It shows: turns kept as events of a session; what was said of the user kept beyond the session;
a new process that knows both. With asyncio.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Any

from own_orchestrator import endpoint_given, orchestrator

from recollect import AsyncMemoryClient

NAME = re.compile(r"my name is (\w+)", re.I)
FACT = re.compile(r"remember that (.+)", re.I)


class SessionMemoryAgent:
    """Talks with one user; all that it knows is in the memory, nothing in the agent."""

    def __init__(self, memory: AsyncMemoryClient, user_id: str) -> None:
        self._memory = memory
        self._user_id = user_id
        self._session_id = ""

    async def resume(self) -> int:
        """Take up the open conversation with the user, or begin one; how many turns it has."""
        open_ones = await self._memory.list_active_sessions(self._user_id, limit=1)
        if open_ones["sessions"]:
            self._session_id = open_ones["sessions"][0]["id"]
        else:
            begun = await self._memory.create_session(self._user_id, "chat")
            self._session_id = begun["session_id"]
        # What is remembered from now on belongs to the conversation.
        self._memory.set_session_id(self._session_id)
        return len(await self.turns())

    async def turns(self) -> list[dict[str, Any]]:
        """The conversation so far, from its beginning."""
        turns: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = await self._memory.list_events(self._session_id, cursor=cursor)
            turns += [event["event"] for event in page["events"]]
            cursor = page["cursor"]
            if cursor is None:
                return turns

    async def hear(self, text: str) -> str:
        """Answer the user; both turns are kept before the answer is given."""
        learned: dict[str, Any] = {}
        if named := NAME.search(text):
            # State with this prefix is the user's, in whatever session.
            learned["user:name"] = named[1]
        await self._memory.append_event(self._session_id, {"role": "user", "text": text}, learned)
        answer = await self._answer(text)
        await self._memory.append_event(self._session_id, {"role": "agent", "text": answer})
        return answer

    async def _answer(self, text: str) -> str:
        state = (await self._memory.get_state(self._session_id))["state"]
        name = state.get("user:name", "stranger")
        if fact := FACT.search(text):
            await self._memory.add_memory(fact[1], namespace=f"user:{self._user_id}")
            return f"I will remember that, {name}."
        if not text.endswith("?"):
            return f"Nice to meet you, {name}."
        if "my name" in text.lower():
            return f"You are {name}."
        found = await self._memory.recall(text, 1, namespace=f"user:{self._user_id}")
        if not found["results"]:
            return "You have not told me."
        return f"You told me: {found['results'][0]['content']}."

    async def end(self) -> None:
        """Close the conversation; what was learned of the user stays."""
        await self._memory.terminate_session(self._session_id)


async def talk(endpoint: str, user_id: str, *said: str) -> None:
    """One life of the agent: it starts, knows what it knows, talks, and is gone."""
    async with AsyncMemoryClient(endpoint, agent_id="companion") as memory:
        agent = SessionMemoryAgent(memory, user_id)
        print(f"  (the conversation has {await agent.resume()} turns)")
        for text in said:
            print(f"you    {text}\nagent  {await agent.hear(text)}")


def main() -> None:
    with orchestrator(endpoint_given(__doc__)) as serving:
        user_id = f"traveller-{uuid.uuid4().hex[:8]}"
        asyncio.run(
            talk(
                serving.endpoint,
                user_id,
                "My name is Ines",
                "Remember that my train to Lisbon leaves at 7:40",
            )
        )
        again = "the agent and the server" if serving.restart() else "the agent"
        print(f"\n  ({again} were started anew)" if serving.own else f"\n  ({again} is new)")
        asyncio.run(
            talk(serving.endpoint, user_id, "What is my name?", "When does my train leave?")
        )


if __name__ == "__main__":
    main()
