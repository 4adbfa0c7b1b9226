"""Each promise, tried on a build that breaks it: the trial must notice.

These are the trials themselves, at small counts, with what they find written into another book.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from recollect import RecollectError
from tests.faults import (
    counts,
    ledger,
    sabotage,
    test_audit,
    test_backup,
    test_breaker,
    test_clock,
    test_consolidation,
    test_damaged_database,
    test_damaged_index,
    test_drain,
    test_forgetting,
    test_full_disk,
    test_http,
    test_keys,
    test_kill,
    test_malformed,
    test_on_disk,
    test_operational,
    test_oversize,
    test_purge,
    test_read_your_writes,
    test_reconnect,
    test_retry,
    test_scheduler,
    test_slow_client,
    test_upgrade,
    test_walls,
)
from tests.faults.leftovers import Planting
from tests.faults.malformed import Maker
from tests.faults.promises import PROMISES
from tests.faults.segmented import SETTINGS, Store
from tests.faults.tools import redis_away
from tests.faults.walls import AIMED
from tests.harness.forks import FORKS
from tests.harness.processes import OrchestratorProcess
from tests.harness.worlds import World

CASES_MAX = 3


class Folders:
    """In the place of pytest's own: all folders of a trial in one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def mktemp(self, name: str) -> Path:
        made = self._folder / name
        made.mkdir()
        return made


class Bench:
    """Where one trial is made: its folder, and what it changes for its time."""

    def __init__(self, folder: Path, put: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self.folder = folder
        self.put = put
        self._stack = stack
        self._given: dict[str, Any] = {
            "storage": "sqlite",
            "tmp_path": folder,
            "tmp_path_factory": Folders(folder),
            "monkeypatch": put,
        }

    def __call__(self, test: Callable[..., None], **more: Any) -> None:
        """Run a test with what it asks for by name, of what is given."""
        test(**self._asked(test, more))

    def fixture(self, made: Any, **more: Any) -> Any:
        """What a fixture of another module gives, for as long as the trial lasts."""
        given = made.__wrapped__(**self._asked(made.__wrapped__, more))
        return self._stack.enter_context(_lasting(given)) if isinstance(given, Iterator) else given

    def _asked(self, function: Callable[..., Any], more: dict[str, Any]) -> dict[str, Any]:
        given = self._given | more
        return {name: given[name] for name in inspect.signature(function).parameters}

    def orchestrator(self, **env: str) -> OrchestratorProcess:
        return self._stack.enter_context(OrchestratorProcess(self.folder / "data", env=env))

    def world(self) -> World:
        world = World("sqlite", self.folder / "data")
        self._stack.callback(world.close)
        return world


@contextmanager
def _lasting(given: Iterator[Any]) -> Iterator[Any]:
    yield next(given)
    next(given, None)


def kill(bench: Bench) -> None:
    bench.put.setattr(counts, "KILLS", 1)
    bench.put.setattr(test_kill, "FAILPOINTS", dict.fromkeys(test_kill.FAILPOINTS, ()))
    bench(test_kill.test_no_acknowledged_write_is_lost_to_kill_9)


def on_disk(bench: Bench) -> None:
    bench.put.setattr(counts, "ACKNOWLEDGED", 10)
    bench(test_on_disk.test_sqlite_has_synced_a_write_before_it_is_acknowledged)


def retry(bench: Bench) -> None:
    bench(
        test_retry.test_copies_of_one_write_in_flight_together_take_effect_once,
        orchestrator=bench.orchestrator(),
    )


def histories(bench: Bench) -> None:
    bench.put.setattr(counts, "HISTORIES", 20)
    process = bench.orchestrator(RECOLLECT_INDEX_HEAD_MAX="16")
    bench.fixture(test_read_your_writes.clients, orchestrator=process, other=process)
    bench(test_read_your_writes.test_every_history_reads_as_the_model_says)


def redis(bench: Bench) -> None:
    bench.put.setattr(test_operational, "WITHIN_S", 3.0)
    bench.put.setattr(test_operational, "ASKED_MEANWHILE", 5)
    served = bench.fixture(test_operational.served)
    bench(
        test_operational.test_no_request_fails_while_redis_is_away,
        served=served,
        failing=redis_away.killed,
    )


def damaged_index(bench: Bench) -> None:
    bench.put.setattr(counts, "DAMAGED_INDEXES", test_damaged_index.PROCESSES + 9 + CASES_MAX)
    world = World("sqlite", bench.folder / "whole", SETTINGS)
    Store(bench.folder / "whole").fill(world, (60, 20, 9))
    world.close()
    prepared = {"small": bench.folder / "whole"}
    bench(
        test_damaged_index.test_a_damaged_index_costs_no_answer_and_is_rebuilt,
        name="small",
        share=1.0,
        prepared=prepared,
    )


def full_disk(bench: Bench) -> None:
    bench.put.setattr(counts, "FULL_DISKS", 1)
    bench(
        test_full_disk.test_a_full_disk_refuses_writes_serves_reads_and_recovers,
        orchestrator=bench.orchestrator(),
    )


def damaged_database(bench: Bench) -> None:
    bench.put.setattr(counts, "DAMAGED_DATABASES", 8)
    bench.put.setattr(test_damaged_database, "WRITTEN", 100)
    (bench.folder / "whole").mkdir()
    kept = test_damaged_database.keep(bench.folder / "whole")
    bench(test_damaged_database.test_a_damaged_database_is_refused_or_answers_rightly, kept=kept)


def slow_client(bench: Bench) -> None:
    # Half as many readers, and half of what they may cost.
    bench.put.setattr(test_slow_client, "READERS", 2)
    bench.put.setattr(test_slow_client, "GROWTH_BYTES_MAX", 35_000_000)
    process = bench.fixture(test_slow_client.process)
    bench(
        test_slow_client.test_what_a_stopped_reader_does_not_take_is_bounded,
        process=process,
        way="answers",
    )


def malformed(bench: Bench) -> None:
    bench.put.setattr(test_malformed, "RANDOM_CASES", 200)
    bench.put.setattr(Maker, "every_nasty_field", lambda maker: iter(()))
    bench(
        test_malformed.test_every_malformed_request_gets_a_typed_answer,
        orchestrator=bench.orchestrator(),
    )


def oversize(bench: Bench) -> None:
    bench(
        test_oversize.test_a_batch_beyond_the_default_limit_is_refused,
        orchestrator=bench.orchestrator(),
    )


def clock(bench: Bench) -> None:
    jump_s = test_clock.DAY_S
    bench(test_clock.test_a_jump_under_a_running_orchestrator_is_not_followed, jump_s=jump_s)


def keys(bench: Bench) -> None:
    frames = test_keys.frames
    bench.put.setattr(test_keys, "frames", lambda aim: frames(aim)[:CASES_MAX])
    given: dict[str, Any] = {}
    for name in ("keyed", "admin", "alice", "aim", "context"):
        given[name] = bench.fixture(getattr(test_keys, name), **given)
    bench(test_keys.test_who_has_no_right_key_reaches_no_operation, **given)


def walls(bench: Bench) -> None:
    searching = ("recall", "search_memory", "semantic_search", "list_memories", "count")
    aimed = {name: AIMED[name] for name in searching}
    world = bench.world()
    aim = bench.fixture(test_walls.aim, world=world)
    bench.put.setattr(test_walls, "AIMED", aimed)
    bob = test_walls.STRANGERS[0]
    test_walls.check_wall(world, aim, bob, bob)


def breaker(bench: Bench) -> None:
    bench(
        test_breaker.test_it_opens_on_the_nth_failure_and_one_of_100_calls_probes,
        kind="threads",
        watch=bench.fixture(test_breaker.watch),
    )


def reconnect(bench: Bench) -> None:
    bench.put.setattr(counts, "RESTARTS", 1)
    bench.put.setattr(test_reconnect, "CLIENTS", 20)
    bench.put.setattr(test_reconnect, "BACK_WITHIN_S", 1.0)
    bench.put.setattr(test_reconnect, "GIVE_UP_S", 2.0)
    bench(test_reconnect.test_a_restart_brings_the_clients_back_and_loses_nothing)


def leases(bench: Bench) -> None:
    bench.put.setattr(counts, "HANDOVERS", 3)
    bench(
        test_scheduler.test_what_a_replaced_holder_writes_has_no_effect,
        orchestrator=bench.orchestrator(),
    )


def backup(bench: Bench) -> None:
    bench.put.setattr(counts, "BACKUPS", 1)
    bench(
        test_backup.test_a_backup_taken_under_load_holds_all_that_was_acknowledged_before_it,
        orchestrator=bench.orchestrator(),
    )


def upgrade(bench: Bench) -> None:
    bench(test_upgrade.test_a_first_start_killed_on_its_way_is_followed_by_a_good_one)


def drain(bench: Bench) -> None:
    bench.put.setattr(counts, "DRAINS", 1)
    bench(test_drain.test_sigterm_under_load_answers_what_was_accepted_and_ends_clean)


def purge(bench: Bench) -> None:
    bench.put.setattr(test_purge, "plant", _plant_little)
    process = bench.fixture(test_purge.process)
    bench(test_purge.test_nothing_is_left_once_a_purge_is_answered, process=process)


def _plant_little(client: Any, chance: random.Random) -> Any:
    planting = Planting(client, chance)
    planting.ordinary(40)
    secrets = planting.all()[:CASES_MAX]
    planting.ordinary(40)
    test_purge.settled(client)
    return secrets, client.count(namespace="app:ordinary")["count"]


def audit(bench: Bench) -> None:
    bench.put.setattr(counts, "AUDIT_PLACES", 1)
    bench.put.setattr(test_audit, "ENTRIES", 60)
    [name, *_] = test_audit.TAMPERINGS
    bench(
        test_audit.test_whatever_is_done_to_the_log_at_rest_is_noticed,
        stopped=bench.fixture(test_audit.stopped),
        name=name,
    )


def forgetting(bench: Bench) -> None:
    bench.put.setattr(counts, "pick", lambda short, full: 1)
    bench(
        test_forgetting.test_all_of_a_source_is_taken_back_and_can_be_brought_back,
        world=bench.world(),
    )


def http(bench: Bench) -> None:
    bench(test_http.test_no_foreign_name_leads_in, target=bench.fixture(test_http.target))


def consolidation(bench: Bench) -> None:
    bench(
        test_consolidation.test_a_run_past_its_limit_does_nothing,
        url="sqlite",
        strategy="keep_latest",
    )


TRIALS: list[tuple[str, sabotage.Sabotage, Callable[[Bench], None]]] = [
    ("P1", sabotage.acknowledge_before_commit, kill),
    ("P2", sabotage.do_not_sync, on_disk),
    ("P3", sabotage.keep_no_answers, retry),
    ("P4", sabotage.cache_without_versions, histories),
    ("P5", sabotage.trust_redis, redis),
    ("P6", sabotage.believe_segments, damaged_index),
    ("P6", sabotage.filter_after_the_best, damaged_index),
    ("P7", sabotage.call_a_full_disk_something_else, full_disk),
    ("P8", sabotage.serve_what_is_there, damaged_database),
    ("P9", sabotage.keep_all_answers, slow_client),
    ("P10", sabotage.believe_what_comes, malformed),
    ("P11", sabotage.have_no_limits, oversize),
    ("P12", sabotage.follow_the_wall_clock, clock),
    ("P13", sabotage.know_everybody, keys),
    ("P14", sabotage.search_everywhere, walls),
    ("P15", sabotage.let_all_probe, breaker),
    ("P16", sabotage.stay_away, reconnect),
    ("P17", sabotage.do_not_compare_tokens, leases),
    ("P18", sabotage.back_up_what_was, backup),
    ("P19", sabotage.migrate_statement_by_statement, upgrade),
    ("P20", sabotage.stop_at_once, drain),
    ("P21", sabotage.leave_the_words, purge),
    ("P22", sabotage.chain_nothing, audit),
    ("P23", sabotage.forget_no_summaries, forgetting),
    ("P24", sabotage.answer_to_any_name, http),
    ("P25", sabotage.undo_half, consolidation),
]


@pytest.mark.parametrize(
    ("promise", "broken", "trial"), TRIALS, ids=[f"{p}-{s.__name__}" for p, s, _ in TRIALS]
)
def test_a_broken_promise_is_noticed(
    promise: str,
    broken: sabotage.Sabotage,
    trial: Callable[[Bench], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = ""
    with ledger.aside() as book, monkeypatch.context() as put:
        broken(put.setattr)
        put.setenv(sabotage.VARIABLE, broken.__name__)
        put.setattr(FORKS, "before", (sabotage.BEGIN,))
        try:
            with ExitStack() as stack:
                trial(Bench(tmp_path, put, stack))
        except (AssertionError, RecollectError) as error:
            said = str(error)
    _, violations = book.sums.get(promise, (0, 0))
    assert violations, f"{broken.__name__} went unnoticed: {book.sums} {said}"


def test_every_promise_is_broken_once() -> None:
    assert {promise for promise, _, _ in TRIALS} == set(PROMISES)
    assert {broken.__name__ for _, broken, _ in TRIALS} == set(sabotage.SABOTAGES)
