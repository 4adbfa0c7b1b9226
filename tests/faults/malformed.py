"""Requests that nobody should send, made from good ones by a seeded hand.

A case is the frames of one ZeroMQ message. Most are one change away from a good request, because
such get furthest.
"""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from recollect.orchestrator.paging import fingerprint
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operation import fields_of
from recollect.protocol.operations import REGISTRY
from tests.faults import counts, wire

Case = list[bytes]

DEEP = 10_000
DEADLINE_S = 20.0
SHORT_DEADLINE_S = 0.05

encode = msgspec.msgpack.Encoder().encode
Raw = msgspec.Raw


def tower(levels: int, ground: dict[str, Any]) -> dict[str, Any]:
    """Filters of which each is the first of many in the next."""
    for _ in range(levels):
        ground = {"AND": [ground, *[{"importance": 1}] * 100]}
    return ground


# Values that some field somewhere will not expect; Raw ones are bytes of MessagePack as they are.
NASTY: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**63),
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    " ",
    "\x00",
    "a\x00b",
    "x" * 5_000,
    "\u202e\ufeff\U0001f4a9",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "0000-00-00",
    "2026-02-30T00:00:00Z",
    "%_%' OR 1=1 --",
    '"*" NEAR(a b) ^ - AND OR NOT',
    "../../etc/passwd",
    b"",
    b"\xff\xfe",
    [],
    [None],
    [[]],
    ["a", 1, None, {}],
    {},
    {"": ""},
    {"a": {"b": {"c": None}}},
    {1: 2},
    {1: 2, "a": 3},
    {None: 1, True: 2, "x": 3},
    {"AND": []},
    {"AND": [{}] * 300},
    {"OR": [{"importance": {"gte": 0}}] * 256},
    {"NOT": {"NOT": {"NOT": {}}}},
    {"importance": {"in": list(range(1024))}},
    {"AND": [{"importance": {"in": list(range(1024))}}] * 40},
    tower(15, {"importance": 1}),
    tower(40, {"importance": 1}),
    {"tags": {"in": ["t"] * 5_000}},
    {"AND": [{"importance": {}}] * 5_000},
    {"metadata.": 1},
    {'metadata.a"b\\': 1},
    {"metadata." + "a." * 400: 1},
    {"tags": {"contains": []}},
    {"created_at": {"gt": float("nan")}},
    {"content": {"contains": "%" * 400}},
    {"key": 2**64 - 1},
    Raw(b"\x91" * DEEP + b"\xc0"),
    Raw(b"\x81\xa1a" * DEEP + b"\xc0"),
    Raw(b"\xdd\xff\xff\xff\xff"),
    Raw(b"\xdf\xff\xff\xff\xff"),
    Raw(b"\xdb\xff\xff\xff\xff"),
    Raw(b"\xc6\xff\xff\xff\xff"),
    Raw(b"\xc9\xff\xff\xff\xff\x01"),
    Raw(b"\xa2\xc3\x28"),
    Raw(b"\xa3\xed\xa0\x80"),
    Raw(b"\xc1"),
    Raw(b"\xd6\xff\x00\x00\x00\x01"),
    Raw(b"\xd4\x05\x00"),
    Raw(b"\x81\x91\x01\x01"),
    Raw(b"\x81\x80\x01"),
    Raw(b"\x82\xa1a\x01\xa1a\x02"),
]


FIELD_NAMES = [
    *(f.encode_name for op in REGISTRY.values() for f in fields_of(op)),
    *("v", "id", "op", "body"),
]
ARRIVING: dict[str, Any] = {
    "kind": "memory",
    "id": "from-elsewhere",
    "namespace": "temp:malformed",
    "key": None,
    "collection": "memories",
    "version": 2,
    "memory_type": "general",
    "tier": "short",
    "content": "from another store",
    "value": [1],
    "metadata": {"a": 1},
    "tags": ["t"],
    "importance": 0.5,
    "trust": 1.0,
    "stability_s": 1.0,
    "access_count": 0,
    "last_access_us": 1,
    "fades_us": 1,
    "created_us": 1,
    "updated_us": 1,
    "operation": "add_memory",
    "columns": None,
    "versions": [],
}
"""A record as an import takes it."""


class Good:
    """A good body for every operation; the ids are of memories that exist."""

    def __init__(self, memory_ids: list[str], group_id: str, session_id: str) -> None:
        one, two = memory_ids[:2]
        keyed = {"namespace": "temp:malformed", "key": "good"}
        tasked = {"namespace": "temp:malformed", "task_id": "good"}
        self.bodies: dict[str, dict[str, Any]] = {
            "add_memory": {
                "content": "a memory among malformed ones",
                "metadata": {"a": 1},
                "tags": ["t"],
                "namespace": "temp:malformed",
                "value": [1],
                "valid_from": 1.0,
            },
            "get_memory": {"memory_id": one},
            "update_memory": {"memory_id": one, "update_payload": {"importance": 0.5}},
            "delete_memory": {"memory_id": "no such memory"},
            "restore": {"memory_id": one, "version": 1},
            "history": {"memory_id": one},
            "purge": {"memory_id": "no such memory"},
            "reinforce_memory": {"memory_id": one},
            "get_children": {"parent_id": one},
            "list_memories": {"namespace": "temp:malformed", "filters": {"importance": 0.5}},
            "count": {"namespace": "temp:malformed"},
            "search_memory": {"query": "memory", "filters": {"importance": 0.5}},
            "semantic_search": {"query": "memory", "filters": {"importance": 0.5}},
            "recall": {"query": "memory", "filters": {"importance": 0.5}},
            # A model that is not there: no mutation may exchange the one that is in use.
            "reembed": {"model": "no such model", "dimensions": 64},
            "batch_add_memories": {"memories": [{"content": "one of a batch"}]},
            "batch_get_memories": {"memory_ids": [one, two]},
            "add_relationship": {
                "source_id": one,
                "target_id": two,
                "relationship_type": "near",
            },
            "get_related_memories": {"memory_id": one},
            "create_context_group": {"name": "a group"},
            "add_to_group": {"memory_id": one, "group_id": group_id},
            "get_memories_by_group": {"group_id": group_id},
            "put": {**keyed, "value": {"a": [1]}, "metadata": {"a": 1}, "tags": ["t"]},
            "get_by_key": keyed,
            "update_by_key": {**keyed, "value": {"a": 1}, "metadata": {"a": 1}},
            "delete_by_key": {**keyed, "key": "no such key"},
            "history_by_key": keyed,
            "restore_by_key": {**keyed, "version": 1},
            "diff": {**keyed, "from_version": 1},
            "search_namespace": {"prefix": "temp"},
            "list_namespaces": {"prefix": "temp"},
            "squash_versions": {"namespace": "temp:malformed", "dry_run": True},
            "create_session": {"user_id": "alice", "session_metadata": {"a": 1}, "state": {"a": 1}},
            "get_session": {"session_id": session_id},
            "append_event": {"session_id": session_id, "event": {"a": 1}, "state_delta": {"a": 1}},
            "list_events": {"session_id": session_id},
            "update_status": {"session_id": session_id, "status": "active"},
            "get_state": {"session_id": session_id},
            "set_state": {"session_id": session_id, "state_delta": {"a": 1, "temp:b": 2}},
            "list_sessions": {"user_id": "alice", "status": "active"},
            "list_active_sessions": {"user_id": "alice"},
            "terminate_session": {"session_id": "no such session"},
            "archive_session": {"session_id": "no such session"},
            "delete_session": {"session_id": "no such session"},
            "index_document": {
                "text": "# A document\n\namong malformed ones",
                "source": "malformed.md",
                "namespace": "temp:malformed",
            },
            # Nothing is allowed to be read from disk here.
            "sync_documents": {"root": "/nowhere", "pattern": "**/*.md"},
            "list_documents": {"namespace": "temp:malformed", "document_status": "synced"},
            "delete_document": {"document_id": "no such document"},
            "search_documents": {"query": "document", "namespace": "temp:malformed"},
            "find_conflicts": {"namespace": "temp:malformed", "limit": 5},
            "consolidate": {"namespace": "temp:malformed", "dry_run": True, "limit": 5},
            "forget_source": {"source": "nobody", "dry_run": True},
            "undo": {"run_id": "no such run"},
            "migrate": {"namespace": "temp:malformed", "dry_run": True, "limit": 5},
            "fade_memories": {"namespace": "temp:malformed", "dry_run": True, "limit": 5},
            "apply_retention": {"deleted_days": 36_500.0, "dry_run": True, "limit": 5},
            "trim_journal": {"older_than_days": 36_500, "dry_run": True, "limit": 5},
            "trim_answers": {"dry_run": True, "limit": 5},
            # One that would make none: no mutation is to fill the disk.
            "keep_backup": {"keep": 0},
            "backfill_embeddings": {"limit": 5},
            "maintain_index": {"dry_run": True},
            "check_index": {"repair": False},
            "optimise_storage": {},
            "check_integrity": {"quick": True},
            "export_records": {"namespace": "temp:malformed", "limit": 5},
            "import_records": {"records": [ARRIVING], "dry_run": False},
            "get_run": {"run_id": "no such run"},
            "list_runs": {"namespace": "temp:malformed"},
            "audit_log": {"namespace": "temp:malformed", "since": 1.0, "limit": 5},
            "read_changes": {"after_seq": 0, "limit": 5, "namespace": "temp:malformed"},
            "verify_audit": {"expected_seq": 0, "expected_head": "00"},
            "who_am_i": {},
            "create_identity": {"name": "stranger", "requests_per_s": 1.0, "memories_max": 1},
            "list_identities": {},
            "grant_access": {"name": "stranger", "pattern": "temp", "access": "read"},
            "revoke_access": {"name": "nobody", "pattern": "temp"},
            "create_bearer_key": {"name": "nobody", "key_hash": "0a" * 32, "label": "a laptop"},
            "revoke_bearer_key": {"name": "nobody", "key_id": "0a" * 6},
            "store_goal": {
                "description": "to be good",
                "due_at": 1.0,
                "namespace": "temp:malformed",
                "metadata": {"a": 1},
                "tags": ["t"],
            },
            "update_goal": {"goal_id": "no such goal", "progress": 0.5, "due_at": 1.0},
            "get_goal": {"goal_id": "no such goal"},
            "active_goals": {"namespace": "temp:malformed", "limit": 5},
            "save_task": {**tasked, "description": "to be good", "metadata": {"a": 1}},
            "get_task": tasked,
            "update_task_status": {**tasked, "status": "completed", "summary": "it was good"},
            "set_task_phase": {**tasked, "phase": "blocked", "reason": "too good"},
            "tasks_for_goal": {"goal_id": "no such goal"},
            "save_step": {
                **tasked,
                "iteration": 1,
                "tool_name": "think",
                "parameters": {"a": 1},
                "output": {"b": [2]},
            },
            "list_steps": {**tasked, "limit": 5},
            "save_agent_state": {
                "agent_id": "good",
                "state": {"a": 1},
                "namespace": "temp:malformed",
            },
            "get_agent_state": {"agent_id": "good", "namespace": "temp:malformed"},
            "save_preference": {**keyed, "value": {"a": 1}, "confidence": 0.5},
            "get_preference": keyed,
            "list_preferences": {"prefix": "g", "namespace": "temp:malformed", "limit": 5},
            "save_persona": {"persona": "good", "state": {"a": 1}, "namespace": "temp:malformed"},
            "get_persona": {"persona": "good", "namespace": "temp:malformed"},
            "recent_summaries": {"namespace": "temp:malformed", "limit": 5},
            "log_decision": {
                "context": "What is good?",
                "options": ["this", "that"],
                "choice": "this",
                "namespace": "temp:malformed",
                "metadata": {"a": 1},
                "tags": ["t"],
            },
            "record_outcome": {"decision_id": "no such decision", "outcome": "fine"},
            "get_decision": {"decision_id": "no such decision"},
            "find_similar_decisions": {"context": "What is good?", "namespace": "temp:malformed"},
            "list_decisions": {"task_id": "t", "namespace": "temp:malformed", "limit": 5},
            "store_procedure": {
                "name": "good",
                "steps": ["first"],
                "description": "how",
                "namespace": "temp:malformed",
            },
            "get_procedure": {"name": "good", "namespace": "temp:malformed"},
            "store_incident": {
                "title": "a good one",
                "occurred_at": 1.0,
                "namespace": "temp:malformed",
            },
            "resolve_incident": {"incident_id": "no such incident", "resolution": "none"},
            "record_config_change": {
                "component": "good",
                "parameter": "size",
                "old_value": {"a": [1]},
                "new_value": 2,
                "namespace": "temp:malformed",
            },
            "config_history": {"component": "good", "namespace": "temp:malformed", "limit": 5},
            "assemble_context": {
                "task_description": "What is good?",
                "max_tokens": 500,
                "tiers": ["working", "knowledge"],
                "namespace": "temp:malformed",
                "filters": {"importance": {"gte": 0.1}},
                "task_id": "t",
                "trust_min": 0.1,
            },
            "replay_context": {"receipt_id": "no such receipt"},
            "store_knowledge": {
                "title": "good",
                "content": "known",
                "namespace": "temp:malformed",
            },
            "store_execution": {
                "task_id": "good",
                "execution_summary": "done",
                "success": True,
                "error_patterns": ["late"],
                "task_description": "a good task",
                "duration_ms": 1.0,
                "namespace": "temp:malformed",
                "metadata": {"a": 1},
                "tags": ["t"],
            },
            "search_similar": {"task_description": "a good task", "namespace": "temp:malformed"},
            "extract_pattern": {"namespace": "temp:malformed", "dry_run": True},
            "search_patterns": {"task_type": "^g", "namespace": "temp:malformed", "limit": 5},
            "find_pattern": {"trigger": "a good task", "namespace": "temp:malformed"},
            "pattern_feedback": {"pattern_id": "no such pattern", "success": True},
            "task_context": {"task_id": "good", "namespace": "temp:malformed", "limit": 5},
            "push_event": {
                "category": "good",
                "data": {"a": [1]},
                "critical": True,
                "namespace": "temp:malformed",
            },
            "recent_events": {"count": 5, "category": "good", "namespace": "temp:malformed"},
            "update_metric": {"key": "good", "value": 1, "namespace": "temp:malformed"},
            "get_metrics": {"keys": ["good"], "namespace": "temp:malformed"},
            "set_active_task": {
                "task_id": "good",
                "state": {"a": [1]},
                "namespace": "temp:malformed",
            },
            "active_tasks": {"limit": 5, "namespace": "temp:malformed"},
            "system_snapshot": {"events": 5, "namespace": "temp:malformed"},
            "acquire_lease": {"name": "malformed", "holder": "nobody", "ttl_s": 1.0},
            "renew_lease": {"name": "malformed", "holder": "nobody", "token": 1, "ttl_s": 1.0},
            "release_lease": {"name": "malformed", "holder": "nobody", "token": 1},
            "announce_jobs": {
                "jobs": [
                    {
                        "name": "decay",
                        "description": "d",
                        "enabled": True,
                        "schedule": "@hourly",
                        "limits": {"limit": 1},
                        "next_at": "2026-01-31T12:00:00Z",
                    }
                ]
            },
            "list_jobs": {},
            "request_job": {"job": "decay", "dry_run": True},
            "begin_job": {"job": "decay", "scheduled_at": 1.0},
            "report_job": {"job_run_id": "no such run", "progress": {"step": 1}},
            "finish_job": {"job_run_id": "no such run", "run_status": "done", "counts": {"a": 1}},
            "get_job_run": {"job_run_id": "no such run"},
            "job_history": {"job": "decay", "limit": 5},
            "ping": {},
            "stats": {},
            "analytics": {"namespace": "temp:malformed"},
            "metrics": {},
            # A path that is refused: no mutation may write where it likes.
            "backup": {"path": "not absolute"},
            "report_errors": {
                "source": "malformed",
                "errors": [{"code": "strange", "message": "a report"}],
            },
            "recent_errors": {},
        }
        assert self.bodies.keys() == REGISTRY.keys(), "an operation has no good body here"


class Maker:
    """Makes cases; the same seed makes the same ones."""

    def __init__(self, good: Good, seed: int) -> None:
        self._good = good
        self._random = random.Random(seed)
        self._number = 0
        self._kinds: list[tuple[int, Callable[[], Case]]] = [
            (2, self.unknown_field),
            (2, self.missing_field),
            (3, self.nasty_envelope),
            (2, self.nasty_cursor),
            (4, self.flipped),
            (2, self.truncated),
            (1, self.spliced),
            (1, self.random_bytes),
            (2, self.random_msgpack),
            (1, self.json_text),
            (1, self.wrong_frames),
        ]

    def every_good_body(self) -> Iterator[tuple[str, Case]]:
        """Every operation as it should be asked for."""
        for name, body in self._good.bodies.items():
            self._number += 1
            yield f"good {name}", [self._request(name, body)]

    def every_nasty_field(self) -> Iterator[tuple[str, Case]]:
        """Every field of every operation with strange values, and those one level down: with all
        of them at the full count, else with some that chance chooses for each field."""
        bodies = [
            (name, {**good, field.encode_name: nasty})
            for name, good in self._good.bodies.items()
            for field in fields_of(REGISTRY[name])
            for nasty in self._random.sample(NASTY, min(len(NASTY), counts.NASTY_VALUES))
        ]
        bodies += [
            (name, {**self._good.bodies[name], **part})
            for nasty in NASTY
            for name, part in inside(nasty)
        ]
        self._random.shuffle(bodies)
        for name, body in bodies:
            self._number += 1
            yield f"nasty_field of {name}", [self._request(name, body)]

    def random_cases(self) -> Iterator[tuple[str, Case]]:
        """Kinds of malformation with their frames, without end."""
        weights = [weight for weight, _ in self._kinds]
        while True:
            self._number += 1
            [(_, make)] = self._random.choices(self._kinds, weights)
            yield make.__name__, make()

    def _operation(self) -> tuple[str, dict[str, Any]]:
        name = self._random.choice(list(self._good.bodies))
        return name, dict(self._good.bodies[name])

    def _request(self, name: str, body: Any) -> bytes:
        # What waits for a change that never comes must not wait for long.
        waits = isinstance(body, dict) and "min_seq" in body
        deadline_ms = wire.in_ms(SHORT_DEADLINE_S if waits else DEADLINE_S)
        packed = body if isinstance(body, bytes) else encode(body)
        key = {"key": f"malformed-{self._number}"} if self._random.random() < 0.5 else {}
        return wire.request(self._number, name, packed, deadline_ms=deadline_ms, **key)

    def unknown_field(self) -> Case:
        name, body = self._operation()
        body[f"surprise{self._random.randrange(3)}"] = self._random.choice(NASTY)
        return [self._request(name, body)]

    def missing_field(self) -> Case:
        name, body = self._operation()
        if body:
            del body[self._random.choice(list(body))]
        return [self._request(name, body)]

    def nasty_envelope(self) -> Case:
        name, body = self._operation()
        field = self._random.choice(
            [
                "v",
                "id",
                "op",
                "body",
                "key",
                "trace",
                "agent",
                "session",
                "deadline_ms",
                "bearer",
                "extra",
            ]
        )
        envelope = msgspec.msgpack.decode(self._request(name, body))
        if self._random.random() < 0.2:
            envelope.pop(field, None)
        else:
            envelope[field] = self._random.choice(NASTY)
        return [encode(envelope)]

    def nasty_cursor(self) -> Case:
        """A cursor with the right mark that leads nowhere."""
        name = self._random.choice(
            [n for n in self._good.bodies if "cursor" in REGISTRY[n].__struct_fields__]
        )
        body = dict(self._good.bodies[name])
        if self._random.random() < 0.3 and "filters" in REGISTRY[name].__struct_fields__:
            body["filters"] = self._random.choice([{1: 2, "a": 3}, {"importance": {1: 2}}])
        try:
            operation = msgspec.convert(body, REGISTRY[name])
            mark = fingerprint(operation)
        except (msgspec.ValidationError, InvalidArgument):
            mark = 0
        # Raw values would end inside the base64, where only whole MessagePack is read.
        scalars = [n for n in NASTY if not isinstance(n, Raw)]
        position = [self._random.choice(scalars) for _ in range(self._random.randint(0, 3))]
        if self._random.random() < 0.5:
            position = [self._random.choice([2**63, -(2**63), 2**64 - 1, 1e300, -1, 0.5, True])]
        packed = encode((mark, position))
        body["cursor"] = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return [self._request(name, body)]

    def _frame(self) -> bytes:
        name, body = self._operation()
        return self._request("ping" if name in ("backup", "keep_backup") else name, body)

    def flipped(self) -> Case:
        frame = bytearray(self._frame())
        for _ in range(self._random.randint(1, 8)):
            frame[self._random.randrange(len(frame))] ^= 1 << self._random.randrange(8)
        return [bytes(frame)]

    def truncated(self) -> Case:
        frame = self._frame()
        return [frame[: self._random.randrange(len(frame))]]

    def spliced(self) -> Case:
        one, two = self._frame(), self._frame()
        return [one[: self._random.randrange(len(one))] + two[self._random.randrange(len(two)) :]]

    def random_bytes(self) -> Case:
        return [self._random.randbytes(self._random.choice([0, 1, 2, 10, 100, 10_000]))]

    def random_msgpack(self) -> Case:
        value = self._value(4)
        if self._random.random() < 0.5:
            return [encode(value)]
        return [self._request(self._operation()[0], encode(value))]

    def _value(self, depth: int) -> Any:
        roll = self._random.random()
        if depth and roll < 0.3:
            return [self._value(depth - 1) for _ in range(self._random.randint(0, 5))]
        if depth and roll < 0.6:
            return {
                self._random.choice(FIELD_NAMES): self._value(depth - 1)
                for _ in range(self._random.randint(0, 5))
            }
        return self._random.choice(NASTY)

    def json_text(self) -> Case:
        name, body = self._operation()
        text = json.dumps({"v": 1, "id": self._number, "op": name, "body": body})
        if self._random.random() < 0.5:
            return [text.encode()]
        return [self._request(name, json.dumps(body).encode())]

    def wrong_frames(self) -> Case:
        frame = self._frame()
        return self._random.choice(
            [
                [b""],
                [b"", b""],
                [b"", b"", frame],
                [frame, frame],
                [frame, b""],
                [b"x", frame],
                [b""] * 50,
                [b"y"] * 2_000,
                [frame] * 5,
                [b"z" * 100_000, b""],
            ]
        )


def inside(nasty: Any) -> list[tuple[str, dict[str, Any]]]:
    """A strange value one level down, where only some code looks."""
    patches = ["content", "value", "metadata", "metadata_patch", "tags", "parent_id", "valid_to"]
    arriving = ["kind", "id", "namespace", "created_us", "columns", "versions"]
    return [
        ("add_memory", {"content": "a", "metadata": {"deep": {"er": nasty}}}),
        ("add_memory", {"content": "a", "value": [[nasty]]}),
        ("add_memory", {"content": "a", "tags": [nasty]}),
        *(("update_memory", {"update_payload": {patch: nasty}}) for patch in patches),
        ("update_memory", {"update_payload": {"value": {"a": nasty}}}),
        ("batch_add_memories", {"memories": [nasty]}),
        ("batch_add_memories", {"memories": [{"content": nasty}, {"content": "good"}]}),
        ("batch_add_memories", {"memories": [{"content": "a", "metadata": {"x": nasty}}]}),
        ("batch_get_memories", {"memory_ids": [nasty]}),
        ("import_records", {"records": [nasty]}),
        *(("import_records", {"records": [{**ARRIVING, name: nasty}]}) for name in arriving),
        ("import_records", {"records": [{**ARRIVING, "metadata": {"deep": {"er": nasty}}}]}),
        ("list_memories", {"filters": {"importance": nasty}}),
        ("list_memories", {"filters": {"metadata.a": {"in": [nasty]}}}),
        ("list_memories", {"filters": {"metadata.a": {"contains": nasty}}}),
        ("list_memories", {"filters": {"tags": {"in": [nasty] * 2_000}}}),
        ("count", {"filters": {"created_at": {"lt": nasty}}}),
        ("search_memory", {"filters": {"tags": nasty}, "query": "memory"}),
        ("semantic_search", {"filters": {"NOT": nasty}, "query": "memory"}),
        ("report_errors", {"errors": [{"code": "c", "message": "m", "count": nasty}]}),
        ("report_errors", {"errors": [{"code": "c", "message": "m", "context": {"a": nasty}}]}),
        ("create_session", {"session_metadata": {"a": nasty}}),
        ("save_step", {"parameters": {"a": nasty}}),
        ("save_step", {"output": [[nasty]]}),
        ("save_agent_state", {"state": {"a": nasty}}),
    ]


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"


def raw_stream(chance: random.Random) -> bytes:
    """Bytes for the port itself: no ZeroMQ at all, or ZeroMQ that goes wrong on the way."""
    junk = chance.randbytes(chance.randint(1, 2_000))
    return chance.choice(
        [
            junk,
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + junk,
            b"*1\r\n$4\r\nPING\r\n",
            b'{"v":1,"id":1,"op":"ping"}\n',
            GREETING[: chance.randrange(64)],
            GREETING[:12] + junk,
            GREETING + junk,
            GREETING + READY[: chance.randrange(len(READY))],
            GREETING + READY + junk,
            # A frame that declares far more than ever comes, up to what no machine could hold.
            GREETING + READY + b"\x02" + struct.pack(">Q", 1 << chance.randint(8, 63)) + junk,
            GREETING + READY + b"\x01\x00" * 500,
            GREETING + READY + b"\x04\x05\x04PING",
            GREETING + READY + b"\x04\xff" + junk[:255].ljust(255),
        ]
    )
