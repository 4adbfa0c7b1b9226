"""A knowledge base that is asked in plain words, and notices when two facts cannot both be true.

    python examples/knowledge_base_agent.py

It shows: facts found by meaning; a contradiction noticed the moment it is learned; the conflict
settled by a run, and the run undone.
"""

from __future__ import annotations

import uuid

from own_orchestrator import endpoint_given, orchestrator

from recollect import MemoryClient

FACTS = (
    ("The staging cluster is hosted in Frankfurt", "runbook", 0.9),
    ("Backups are taken every night at two o'clock", "runbook", 0.9),
    ("Mara leads the platform team", "directory", 1.0),
    ("The deploy freeze begins on 20 December", "calendar", 1.0),
)


class KnowledgeBaseAgent:
    """Learns facts, answers questions, and keeps its facts free of contradictions."""

    def __init__(self, memory: MemoryClient, namespace: str) -> None:
        self._memory = memory
        self.namespace = namespace

    def learn(self, fact: str, source: str, trust: float = 1.0) -> list[str]:
        """Remember a fact; what it contradicts, in words."""
        learned = self._memory.add_memory(
            fact,
            "semantic",
            "long",
            namespace=self.namespace,
            source=source,
            trust=trust,
        )
        conflicts = self._memory.find_conflicts(self.namespace)["conflicts"]
        return [
            f"{conflict['reason']} ({other['content']!r}, from {other['source']})"
            for conflict in conflicts
            if any(side["memory_id"] == learned["memory_id"] for side in conflict["memories"])
            for other in conflict["memories"]
            if other["memory_id"] != learned["memory_id"]
        ]

    def ask(self, question: str) -> str:
        """The fact that answers a question best, with whom it is from."""
        found = self._memory.recall(question, 1, namespace=self.namespace)["results"]
        if not found:
            return "I do not know."
        return f"{found[0]['content']} (from {found[0]['source']}, trust {found[0]['trust']:g})"

    def settle(self) -> str | None:
        """Keep of contradicting facts the most trusted one; the run that did it."""
        return self._memory.consolidate(self.namespace, "keep_most_trusted")["run_id"]

    def undo(self, run_id: str) -> int:
        """Take a settling back; how many facts are there again."""
        return self._memory.undo(run_id)["restored"]


def main() -> None:
    with (
        orchestrator(endpoint_given(__doc__)) as serving,
        MemoryClient(serving.endpoint, agent_id="librarian") as memory,
    ):
        agent = KnowledgeBaseAgent(memory, f"project:handbook-{uuid.uuid4().hex[:8]}")
        for fact, source, trust in FACTS:
            agent.learn(fact, source, trust)
            print(f"learned    {fact}")

        print("\nAsked in other words than it was told:")
        for question in ("where is the staging cluster?", "who leads the platform team?"):
            print(f"ask        {question}\nanswer     {agent.ask(question)}")

        print("\nSomebody says something else:")
        rumour = "The staging cluster is hosted in Dublin"
        for contradiction in agent.learn(rumour, "chat", 0.4):
            print(f"noticed    {rumour!r} contradicts: {contradiction}")

        run_id = agent.settle()
        print(f"settled    {agent.ask('where is the staging cluster?')}")
        if run_id is not None:
            print(f"undone     {agent.undo(run_id)} fact is there again, nothing was lost")


if __name__ == "__main__":
    main()
