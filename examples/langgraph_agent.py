"""A LangGraph agent whose long-term memory is Recollect: one line of it says so.

    pip install 'recollect[server,langgraph]'
    python examples/langgraph_agent.py

It shows: what a user tells in one thread, known in another; what belongs to another user, not
known; all of it there again after the agent and the server were restarted. It needs no model and
no key: in place of a model, two rules decide what to do.
"""

from __future__ import annotations

import uuid
from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from own_orchestrator import endpoint_given, orchestrator

from recollect.integrations.langgraph import RecollectStore


class Turn(TypedDict, total=False):
    """What goes through the graph: one turn of a conversation."""

    user: str
    said: str
    answer: str


class NotingAgent:
    """Notes what users tell and answers questions from the notes."""

    def __init__(self, store: BaseStore) -> None:
        builder = StateGraph(Turn)
        builder.add_node("note", self._note)
        builder.add_node("look_up", self._look_up)
        builder.add_conditional_edges(START, self._choose)
        builder.add_edge("note", END)
        builder.add_edge("look_up", END)
        self._graph = builder.compile(store=store)

    def hear(self, user: str, said: str) -> str:
        """Answer a user."""
        turn = self._graph.invoke({"user": user, "said": said})
        answer: str = turn["answer"]
        return answer

    @staticmethod
    def _choose(state: Turn) -> Literal["note", "look_up"]:
        return "look_up" if state["said"].endswith("?") else "note"

    @staticmethod
    def _note(state: Turn, *, store: BaseStore) -> dict[str, Any]:
        note = {"text": state["said"], "kind": "fact"}
        store.put(("users", state["user"], "notes"), str(uuid.uuid4()), note)
        return {"answer": "Noted."}

    @staticmethod
    def _look_up(state: Turn, *, store: BaseStore) -> dict[str, Any]:
        notes = ("users", state["user"], "notes")
        found = store.search(notes, query=state["said"], filter={"kind": "fact"}, limit=1)
        return {"answer": found[0].value["text"] if found else "You have not told me."}


def talk(endpoint: str, *turns: tuple[str, str]) -> None:
    """One life of the agent: it starts, knows what it knows, talks, and is gone."""
    with RecollectStore(endpoint, agent_id="noting") as store:  # instead of InMemoryStore()
        agent = NotingAgent(store)
        for user, said in turns:
            name = user.partition("-")[0]
            print(f"{name:6} {said}\nagent  {agent.hear(user, said)}")


def main() -> None:
    with orchestrator(endpoint_given(__doc__)) as serving:
        mark = uuid.uuid4().hex[:8]
        ines, omar = f"ines-{mark}", f"omar-{mark}"
        talk(
            serving.endpoint,
            (ines, "My train to Lisbon leaves at 7:40"),
            (ines, "I am allergic to peanuts"),
            (omar, "When does my train leave?"),
        )
        again = serving.restart()
        print("\n  (the agent and the server were started anew)" if again else "\n  (a new agent)")
        talk(
            serving.endpoint, (ines, "When does my train leave?"), (ines, "What am I allergic to?")
        )


if __name__ == "__main__":
    main()
