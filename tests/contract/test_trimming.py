"""Trimming the journal: old entries go, the rest still verifies, and what needs them goes on."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.services import trimming
from recollect.orchestrator.storage import journal_walk
from recollect.protocol import errors
from recollect.protocol import operations as ops
from tests.harness.worlds import World

DAY_S = 86_400
MALLORY = Identity("mallory", Grants((Grant("user", "write"),)))


def write(world: World, count: int, **envelope: Any) -> list[str]:
    added = [
        world(ops.AddMemory(f"Fact {number}", namespace="user:a"), **envelope)
        for number in range(count)
    ]
    return [one["memory_id"] for one in added]


def aged(world: World, count: int, **envelope: Any) -> list[str]:
    """Memories of a month ago, then one of now."""
    ids = write(world, count, **envelope)
    world.clock.advance(30 * DAY_S)
    write(world, 1)
    return ids


def test_old_entries_go_and_the_rest_is_still_verified(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trimming, "ENTRIES_AT_ONCE", 4)
    aged(world, 20)
    noted = world(ops.VerifyAudit())
    dry = world(ops.TrimJournal(7.0, dry_run=True))
    assert (dry["removed"], dry["kept_from_seq"], dry["complete"]) == (20, 21, True)
    assert world(ops.VerifyAudit())["entries"] == 21
    some = world(ops.TrimJournal(7.0, limit=10))
    assert (some["removed"], some["kept_from_seq"], some["complete"]) == (10, 11, False)
    rest = world(ops.TrimJournal(7.0))
    assert (rest["removed"], rest["kept_from_seq"], rest["complete"]) == (10, 21, True)
    assert world(ops.TrimJournal(7.0))["removed"] == 0
    for _ in range(2):
        verified = world(ops.VerifyAudit(expected_seq=noted["seq"], expected_head=noted["head"]))
        assert verified["valid"], verified
        # One entry of now, and one for each transaction that trimmed.
        assert (verified["trimmed_seq"], verified["entries"]) == (20, 1 + 3 + 3)
        world.restart()
    entries = world(ops.AuditLog(operation="trim_journal"))["entries"]
    assert [entry["subject"] for entry in entries[:2]] == ["journal:20", "journal:18"]
    assert len(world(ops.AuditLog())["entries"]) == 7
    write(world, 1)
    assert world(ops.VerifyAudit())["valid"]


def test_an_earlier_check_of_what_was_trimmed_is_said_to_be_past_comparing(world: World) -> None:
    aged(world, 3)
    anchor = [entry["hash"] for entry in world(ops.AuditLog())["entries"]][1]
    world.clock.advance(30 * DAY_S)
    write(world, 1)
    world(ops.TrimJournal(40.0))
    # The last entry that is gone can still be compared.
    at_anchor = world(ops.VerifyAudit(expected_seq=3, expected_head=anchor))
    assert at_anchor["valid"], at_anchor
    other = world(ops.VerifyAudit(expected_seq=3, expected_head="ab" * 32))
    assert other["problem_kind"] == "rewritten"
    world(ops.TrimJournal(7.0))
    for seq in (3, None):
        early = world(ops.VerifyAudit(expected_head=anchor, expected_seq=seq))
        assert (early["valid"], early["problem_kind"]) == (False, "trimmed")
        assert "cannot be compared" in early["problem"]
    world(ops.TrimJournal(1.0))
    assert world(ops.VerifyAudit())["valid"]


def test_a_walk_goes_on_though_the_journal_is_trimmed_under_it(world: World) -> None:
    aged(world, 1_200)
    walk = journal_walk.JournalWalk()

    async def step() -> bool:
        return await world.storage.read(walk.step)

    assert world.run(step())
    world(ops.TrimJournal(7.0))
    while world.run(step()):
        pass
    assert walk.misfit is None
    assert (walk.trimmed_seq, walk.seq) == (1_200, 1_203)


def test_a_reader_of_changes_that_were_trimmed_is_told_what_to_do(world: World) -> None:
    aged(world, 5)
    world.restart()
    world(ops.TrimJournal(7.0))
    for after in (0, 4):
        with pytest.raises(errors.ChangesGone) as caught:
            world(ops.ReadChanges(after))
        assert caught.value.details == {"after_seq": after, "trimmed_seq": 5, "seq": 7}
        assert "read anew" in caught.value.message
    told = world(ops.ReadChanges(5))["changes"]
    assert [change["operation"] for change in told] == ["add_memory", "trim_journal"]


def test_what_somebody_wrote_under_other_names_is_still_taken_back(world: World) -> None:
    bad = aged(world, 3, identity=MALLORY, agent="a friend")
    good = write(world, 1, agent="a friend")
    world.clock.advance(30 * DAY_S)
    world(ops.UpdateMemory(good[0], {"content": "Mended"}), MALLORY, agent="another friend")
    world(ops.Purge(bad[2]))
    world.clock.advance(30 * DAY_S)
    before = world(ops.ForgetSource("mallory", True))
    assert world(ops.TrimJournal(1.0))["complete"]
    assert world(ops.ForgetSource("mallory", True)) == before
    assert sorted(before["memory_ids"]) == sorted([*bad[:2], *good])
    run = world(ops.ForgetSource("mallory"))
    assert (run["forgotten"], run["reverted"]) == (2, 1)


def test_only_one_who_owns_everything_may_trim(world: World) -> None:
    with pytest.raises(errors.Forbidden):
        world(ops.TrimJournal(1.0), MALLORY)
    with pytest.raises(errors.InvalidArgument):
        world(ops.TrimJournal(0.5))
