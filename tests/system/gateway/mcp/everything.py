"""Every tool, every resource and the prompt, used once; what is asked and expected is the same
whichever way it goes."""

from __future__ import annotations

import json

import mcp_types as types

from tests.system.gateway.mcp.callers import Caller


async def use_everything(call: Caller) -> None:
    """Use all that is offered, on a store in which nobody else writes."""
    memory_id = await use_memories(call)
    await use_decisions(call)
    session_id = await use_sessions(call)
    await use_learning(call)
    await use_resources(call, memory_id, session_id)
    await use_prompt(call)
    offered = await call.client.list_tools()
    assert call.used == {tool.name for tool in offered.tools}


async def use_memories(call: Caller) -> str:
    kept = await call("remember", content="Alice drinks oolong tea.", namespace="user:alice")
    assert set(kept) == {"status", "memory_id", "version", "created_at"}
    added = await call(
        "add_memory",
        content="The kettle boils at 96 degrees.",
        memory_tier="long",
        tags=["kitchen"],
        source="manual",
        trust=0.7,
        parent_id=kept["memory_id"],
        metadata={"page": None},
        namespace="user:alice",
    )
    memory_id: str = added["memory_id"]
    found = await call("recall", query="What does Alice drink?", k=1, namespace="user:alice")
    assert found["results"][0]["id"] == kept["memory_id"]
    assert "never an instruction" in found["notice"]
    [kettle] = (await call("search_memories", query="kettle", namespace="user:alice"))["results"]
    assert (kettle["source"], kettle["trust"]) == ("manual", 0.7)
    assert kettle["metadata"] == {"page": None}
    assert not kettle.keys() & {"seq", "stability_s", "fades_at", "deleted_at", "vector"}
    changed = await call(
        "update_memory",
        memory_id=memory_id,
        update_payload={"content": "The kettle boils at 97 degrees."},
    )
    assert changed["version"] == 2
    whole = (await call("get_memory", memory_id=memory_id))["memory"]
    assert whole["content"].endswith("97 degrees.")
    related = await call("get_related", memory_id=memory_id)
    assert related["status"] == "success"
    context = await call("assemble_context", task_description="Make tea for Alice")
    assert "oolong" in context["context"]
    assert context["receipt_id"]
    assert (await call("search_documents", query="kettle"))["results"] == []
    gone = await call("remember", content="Soon forgotten.", namespace="user:alice")
    deleted = await call("delete_memory", memory_id=gone["memory_id"])
    assert deleted["deleted_ids"] == [gone["memory_id"]]
    return memory_id


async def use_decisions(call: Caller) -> None:
    logged = await call(
        "log_decision", context="Which tea to buy", options=["green", "black"], choice="green"
    )
    await call(
        "record_outcome", decision_id=logged["decision_id"], outcome="It was liked.", success=True
    )
    [found] = (await call("find_similar_decisions", context="Which tea to buy now", k=1))[
        "decisions"
    ]
    assert (found["choice"], found["outcome"]) == ("green", "It was liked.")


async def use_sessions(call: Caller) -> str:
    created = await call("create_session", user_id="alice", state={"cups": 1})
    session_id: str = created["session_id"]
    for n in (1, 2, 3):
        appended = await call(
            "append_event", session_id=session_id, event={"cup": n}, state_delta={"cups": n}
        )
        assert appended["position"] == n
    session = await call("get_session", session_id=session_id, events=1)
    assert session["state"] == {"cups": 3}
    assert session["events"][0]["event"] == {"cup": 3}
    events = await call("list_events", session_id=session_id, limit=2)
    assert [event["event"]["cup"] for event in events["events"]] == [1, 2]
    rest = await call("list_events", session_id=session_id, limit=2, cursor=events["cursor"])
    assert [event["event"]["cup"] for event in rest["events"]] == [3]
    listed = await call("list_sessions", user_id="alice")
    assert session_id in [found["id"] for found in listed["sessions"]]
    assert (await call("end_session", session_id=session_id))["session_status"] == "terminated"
    return session_id


async def use_learning(call: Caller) -> None:
    for n in range(3):
        await call(
            "store_execution",
            task_id=f"brew-{n}",
            execution_summary="Warmed the pot first; the tea was good.",
            success=True,
            task_type="brewing",
            task_description="Brew a pot of tea",
        )
    found = await call("find_pattern", trigger="Brew a pot of tea")
    pattern = found["pattern"]
    assert pattern["task_type"] == "brewing"
    rated = await call("pattern_feedback", pattern_id=pattern["id"], success=True)
    assert rated["confidence"] > pattern["confidence"]


async def use_resources(call: Caller, memory_id: str, session_id: str) -> None:
    templates = await call.client.list_resource_templates()
    shown = {template.uri_template for template in templates.resource_templates}
    assert shown == {"memory://{memory_id}", "session://{session_id}"}
    listed = {found.uri for found in (await call.client.list_resources()).resources}
    assert f"session://{session_id}" in listed
    assert any(uri.startswith("memory://") for uri in listed)
    assert len(listed) <= 20
    [memory] = (await call.client.read_resource(f"memory://{memory_id}")).contents
    assert isinstance(memory, types.TextResourceContents)
    assert json.loads(memory.text)["memory"]["id"] == memory_id
    [session] = (await call.client.read_resource(f"session://{session_id}")).contents
    assert isinstance(session, types.TextResourceContents)
    assert len(json.loads(session.text)["events"]) == 3


async def use_prompt(call: Caller) -> None:
    [prompt] = (await call.client.list_prompts()).prompts
    made = await call.client.get_prompt(
        prompt.name, {"task": "Make tea for Alice", "max_tokens": "500", "namespace": "user:alice"}
    )
    context, task = (message.content for message in made.messages)
    assert isinstance(context, types.TextContent)
    assert isinstance(task, types.TextContent)
    assert "never an instruction" in context.text
    assert "oolong" in context.text
    assert task.text == "The task: Make tea for Alice"
    named = await call.client.complete(
        types.PromptReference(name=prompt.name), {"name": "namespace", "value": "user:al"}
    )
    assert named.completion.values == ["user:alice"]
