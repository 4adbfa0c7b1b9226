"""One context for an agent across its sessions: kept at hand, and made anew when something changed.

    python examples/context_manager_agent.py

It shows: a context within a number of tokens, with goals, decisions and what was learned in other
sessions; the same one again without asking for it; a new one once something was written; and an old
one replayed by its receipt.
"""

from __future__ import annotations

import uuid

from own_orchestrator import endpoint_given, orchestrator

from recollect import MemoryClient
from recollect.protocol.records import ContextAssembled

MAX_TOKENS = 1_500
CONTEXTS_KEPT = 32


class ContextManagerAgent:
    """Hands out contexts of one namespace; asks for one only if it could be another than before."""

    def __init__(self, memory: MemoryClient, namespace: str) -> None:
        self._memory = memory
        self.namespace = namespace
        # By task: the last change that a context knows of, and the context. Bounded.
        self._kept: dict[str, tuple[int, ContextAssembled]] = {}
        self.assembled = 0

    def context(self, task: str) -> ContextAssembled:
        """What to have in view for a task."""
        seq = self._last_change()
        kept = self._kept.pop(task, None)
        if kept is None or kept[0] != seq:
            answer = self._memory.assemble_context(task, MAX_TOKENS, namespace=self.namespace)
            self.assembled += 1
            kept = (seq, answer)
        self._kept[task] = kept
        if len(self._kept) > CONTEXTS_KEPT:
            self._kept.pop(next(iter(self._kept)))
        return kept[1]

    def _last_change(self) -> int:
        """The number of the last change in the namespace: one small read by an index."""
        entries = self._memory.audit_log(namespace=self.namespace, limit=1)["entries"]
        return entries[0]["seq"] if entries else 0


def first_session(memory: MemoryClient, namespace: str) -> None:
    """What another agent left behind."""
    goal = memory.store_goal("Move the shop to the new payment provider", 0.9, namespace=namespace)
    memory.log_decision(
        "How to move customers to the new payment provider",
        ["all at once", "in steps of ten percent"],
        "in steps of ten percent",
        "a step back must be possible",
        0.8,
        goal["goal_id"],
        namespace=namespace,
    )
    memory.add_memory(
        "The new payment provider refuses amounts below one euro",
        memory_tier="medium",
        namespace=namespace,
        source="integration test",
    )


def main() -> None:
    with (
        orchestrator(endpoint_given(__doc__)) as serving,
        MemoryClient(serving.endpoint, agent_id="architect") as memory,
    ):
        namespace = f"project:shop-{uuid.uuid4().hex[:8]}"
        first_session(memory, namespace)

        print("Another session, another agent, the same memory:")
        memory.set_agent_id("builder")
        agent = ContextManagerAgent(memory, namespace)
        task = "Take the next step of the move to the new payment provider"
        first = agent.context(task)
        for chunk in first["chunks"]:
            about = " ".join(chunk["text"].split())[:80]
            print(f"  {chunk['tier']:<12} {chunk['collection']:<10} {about}")
        print(f"  {first['tokens']} of {first['max_tokens']} tokens\n")

        agent.context(task)
        print(f"asked twice, assembled {agent.assembled} time: nothing has changed")

        memory.add_memory(
            "Twenty percent of the customers pay by the new payment provider",
            memory_tier="medium",
            namespace=namespace,
        )
        second = agent.context(task)
        news = "Twenty percent" in second["context"]
        print(f"written to, assembled {agent.assembled} times; the news is in it: {news}")

        if first["receipt_id"] is not None:
            replayed = memory.replay_context(first["receipt_id"])
            same = replayed["context"] == first["context"]
            print(f"replayed by its receipt, the first one is the same as then: {same}")


if __name__ == "__main__":
    main()
