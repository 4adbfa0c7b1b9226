"""An agent that gets better: it looks back before each step, and writes down what came of it.

    python examples/agent_loop.py

It shows the whole loop: assemble the context, see what was decided before in such a situation and
how that went, decide and say why, act, keep the outcome and the execution, learn a pattern. The
first attempt fails. The second is another agent that was never told what to do; it succeeds because
of what is in the memory. No language model takes part: the policy is thirty lines, and the world is
simulated.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from own_orchestrator import endpoint_given, orchestrator

from recollect import MemoryClient

OPTIONS = ("restart at once", "migrate the schema, then restart", "drain, then restart")


class Outcome(NamedTuple):
    """What the world answered."""

    success: bool
    said: str


class DeployWorld:
    """A service whose new version needs a new schema, which nobody tells."""

    def attempt(self, choice: str) -> Outcome:
        if choice == "migrate the schema, then restart":
            return Outcome(True, "all checks are green")
        return Outcome(False, "column orders.currency does not exist")


class LearningAgent:
    """Does tasks of one kind, each time with all that was learned before."""

    def __init__(self, memory: MemoryClient, namespace: str, world: DeployWorld) -> None:
        self._memory = memory
        self._namespace = namespace
        self._world = world

    def run(self, task_id: str, description: str) -> bool:
        """One task from its beginning to its end; whether it went well."""
        memory, home = self._memory, self._namespace
        memory.save_task(description, task_id, task_type="deploy", namespace=home)
        context = memory.assemble_context(description, 800, namespace=home, task_id=task_id)
        print(f"  context    {context['tokens']} tokens of what is known")

        choice, why, confidence = self._decide(description)
        print(f"  decides    {choice!r}: {why}")
        decision = memory.log_decision(
            f"How to carry out: {description}",
            list(OPTIONS),
            choice,
            why,
            confidence,
            task_id=task_id,
            namespace=home,
            receipt_id=context["receipt_id"],
        )

        outcome = self._world.attempt(choice)
        print(f"  outcome    {'success' if outcome.success else 'failure'}: {outcome.said}")
        memory.save_step(
            task_id, 1, "deploy", {"way": choice}, outcome.said, outcome.success, namespace=home
        )
        memory.record_outcome(decision["decision_id"], outcome.said, outcome.success)
        stored = memory.store_execution(
            task_id,
            f"Chose to {choice}. The answer was: {outcome.said}.",
            outcome.success,
            None if outcome.success else [outcome.said],
            task_description=description,
            task_type="deploy",
            namespace=home,
        )
        self._rate(description, outcome.success, stored["patterns"])
        memory.update_task_status(
            task_id,
            "completed" if outcome.success else "failed",
            outcome.said,
            namespace=home,
        )
        return outcome.success

    def _decide(self, description: str) -> tuple[str, str, float]:
        """The option that went best in situations like this; one never tried before a bad one."""
        found = self._memory.find_similar_decisions(
            f"How to carry out: {description}", 20, namespace=self._namespace, with_outcome=True
        )
        balance = dict.fromkeys(OPTIONS, 0.0)
        told: dict[str, str] = {}
        for decision in found["decisions"]:
            if decision["choice"] in balance and decision["success"] is not None:
                weight = decision.get("similarity", 1.0)
                balance[decision["choice"]] += weight if decision["success"] else -weight
                told[decision["choice"]] = decision["outcome"] or ""
        choice = max(OPTIONS, key=lambda option: balance[option])
        if not told:
            return choice, "nothing is known of tasks like this one", 0.3
        if balance[choice] > 0:
            return choice, f"it went well before ({told[choice]})", 0.9
        failed = "; ".join(f"{option!r} failed: {told[option]}" for option in told)
        return choice, failed, 0.5

    def _rate(self, description: str, success: bool, learned: list[str]) -> None:
        """Say of what was learned earlier whether it fits what happened now."""
        pattern = self._memory.find_pattern(description, namespace=self._namespace)["pattern"]
        if pattern is not None and pattern["id"] not in learned:
            self._memory.pattern_feedback(pattern["id"], success)


def main() -> None:
    with orchestrator(endpoint_given(__doc__)) as serving:
        home = f"project:webshop-{uuid.uuid4().hex[:8]}"
        world = DeployWorld()
        results = []
        for version in ("2.0", "2.1", "2.2"):
            # Another agent each time: what it knows, it knows from the memory.
            with MemoryClient(serving.endpoint, agent_id=f"deployer-{version}") as memory:
                print(f"Deploy version {version} of the order service")
                agent = LearningAgent(memory, home, world)
                task = f"Deploy version {version} of the order service"
                results.append(agent.run(f"deploy-{version}", task))
        with MemoryClient(serving.endpoint, agent_id="observer") as memory:
            before = memory.search_similar(
                "Deploy version 2.3 of the order service",
                5,
                0.3,
                success_only=True,
                namespace=home,
            )
            pattern = memory.find_pattern("Deploy the order service", namespace=home)["pattern"]
        told = ["success" if result else "failure" for result in results]
        print(f"\nFirst attempt: {told[0]}, second: {told[1]}, third: {told[2]}")
        print(f"Executions that went well and fit the next task: {before['count']}")
        if pattern is not None:
            print(f"Learned ({pattern['confidence']:.2f} sure): {pattern['summary']}")


if __name__ == "__main__":
    main()
