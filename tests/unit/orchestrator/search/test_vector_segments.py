"""The vector index against brute force: changes, builds, restarts, damage, and all at once."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from recollect.orchestrator.search.vectors import FaissIndex, Numbers, ivf, snapshots
from recollect.orchestrator.search.vectors.building import Memory, Source, build
from recollect.orchestrator.search.vectors.merging import to_merge
from recollect.orchestrator.search.vectors.segment import Living, Segment
from recollect.orchestrator.search.vectors.state import State
from tests.harness.histories import History, noted

DIMENSIONS = 8
WAIT_S = 60.0
Vector = npt.NDArray[np.float32]
Model = dict[int, tuple[int, Vector]]


def unit(seed: int) -> Vector:
    """A vector of its own for every seed; the one of seed 0 is all zeros."""
    if seed == 0:
        return np.zeros(DIMENSIONS, dtype=np.float32)
    vector = np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def small_index(folder: Path | None = None, model: str = "m", **sizes: int) -> FaissIndex:
    """An index that seals and merges after a handful of rows, and does not wait before it does."""
    given = {"head_max": 4, "load_max": 64, "ivf_min": 24} | sizes
    return FaissIndex(
        DIMENSIONS,
        folder=folder,
        model=model,
        head_max=given["head_max"],
        load_max=given["load_max"],
        ivf_min=given["ivf_min"],
        pause_s=0.0,
    )


def truth(model: Model) -> tuple[Numbers, Numbers]:
    nums = np.array(list(model), dtype=np.int64)
    return nums, np.array([seq for seq, _ in model.values()], dtype=np.int64)


def complete(index: FaissIndex, model: Model) -> int:
    """Reconcile and load what is missing, as a start does; how many were missing."""
    missing = index.reconcile(*truth(model))
    if len(missing):
        seqs = np.array([model[num][0] for num in missing.tolist()], dtype=np.int64)
        index.load(missing, seqs, np.stack([model[num][1] for num in missing.tolist()]))
    return len(missing)


def assert_agrees(
    index: FaissIndex, model: Model, query: Vector, k: int, allowed: list[int] | None
) -> None:
    """The k nearest by brute force, whichever of equals at the end."""
    scores = {
        num: float(vector @ query)
        for num, (_, vector) in model.items()
        if allowed is None or num in allowed
    }
    numbers = None if allowed is None else np.array(allowed, dtype=np.int64)
    found = index.search(query, k, numbers)
    assert [score for _, score in found] == pytest.approx(
        sorted(scores.values(), reverse=True)[:k], abs=1e-5
    )
    assert len({num for num, _ in found}) == len(found)
    for num, score in found:
        assert score == pytest.approx(scores[num], abs=1e-5)
    assert found == sorted(found, key=lambda pair: (-pair[1], -pair[0]))


nums = st.integers(1, 60)
seeds = st.integers(0, 200)


class AnyHistory(History):
    """Whatever was done, and however far the builders are, answers are those of brute force."""

    @initialize(sparse=st.sampled_from([1, 1_000_003]), saved=st.booleans())
    @noted
    def begin(self, sparse: int, saved: bool) -> None:
        self.sparse = sparse
        self.folder = Path(tempfile.mkdtemp())
        self.saved = saved
        self.model: Model = {}
        self.seq = 0
        self.index = small_index(self.folder if saved else None)
        self.index.open()

    @rule(num=nums, seed=seeds)
    @noted
    def put(self, num: int, seed: int) -> None:
        self.seq += 1
        self.model[num * self.sparse] = (self.seq, unit(seed))
        self.index.put(num * self.sparse, unit(seed), self.seq)

    @rule(first=nums, many=st.integers(1, 40))
    @noted
    def put_many(self, first: int, many: int) -> None:
        for num in range(first, first + many):
            self.put(num, num + self.seq)

    @rule(num=nums)
    @noted
    def remove(self, num: int) -> None:
        self.model.pop(num * self.sparse, None)
        self.index.remove(num * self.sparse)

    @rule(chosen=st.lists(nums, max_size=40))
    @noted
    def remove_many(self, chosen: list[int]) -> None:
        for num in chosen:
            self.remove(num)

    @rule(chosen=st.lists(st.tuples(nums, seeds), max_size=80))
    @noted
    def load(self, chosen: list[tuple[int, int]]) -> None:
        rows = {num * self.sparse: unit(seed) for num, seed in chosen}
        self.seq += 1
        self.model.update({num: (self.seq, vector) for num, vector in rows.items()})
        numbers = np.array(list(rows), dtype=np.int64)
        vectors = np.array(list(rows.values()), dtype=np.float32)
        self.index.load(numbers, np.full(len(rows), self.seq), vectors)

    @rule(chosen=st.lists(st.tuples(nums, seeds), max_size=10))
    @noted
    def load_what_is_older(self, chosen: list[tuple[int, int]]) -> None:
        known = [(num * self.sparse, seed) for num, seed in chosen]
        known = [(num, seed) for num, seed in known if num in self.model]
        vectors = np.array([unit(seed) for _, seed in known], dtype=np.float32)
        numbers = np.array([num for num, _ in known], dtype=np.int64)
        self.index.load(numbers, np.zeros(len(known), dtype=np.int64), vectors)

    @rule()
    @noted
    def settle(self) -> None:
        assert self.index.settle(WAIT_S)
        assert self.index.describe()["head"] < 4
        assert len(self.index.describe()["segments"]) <= 4

    @rule(chosen=st.none() | st.lists(nums, max_size=10))
    @noted
    def expunge(self, chosen: list[int] | None) -> None:
        """Nothing that is gone stays in a segment, or nothing of those that are named."""
        if chosen is None:
            assert self.index.expunge()
            assert not any(s["tombstones"] for s in self.index.describe()["segments"])
        else:
            named = [num * self.sparse for num in chosen if num * self.sparse not in self.model]
            assert self.index.expunge(np.array(named, dtype=np.int64))

    @rule(seed=seeds, k=st.integers(0, 70))
    @noted
    def search(self, seed: int, k: int) -> None:
        assert_agrees(self.index, self.model, unit(seed), k, None)

    @rule(seed=seeds, k=st.integers(1, 70), allowed=st.lists(st.integers(-5, 120), max_size=90))
    @noted
    def search_among(self, seed: int, k: int, allowed: list[int]) -> None:
        among = [num * self.sparse for num in allowed]
        assert_agrees(self.index, self.model, unit(seed), k, among)

    @rule(seed=seeds, asked=st.lists(nums, max_size=20))
    @noted
    def similarities(self, seed: int, asked: list[int]) -> None:
        numbers = np.array([num * self.sparse for num in asked], dtype=np.int64)
        found = self.index.similarities(unit(seed), numbers)
        for num, score in zip(numbers.tolist(), found.tolist(), strict=True):
            if num in self.model:
                assert score == pytest.approx(float(self.model[num][1] @ unit(seed)), abs=1e-5)
            else:
                assert np.isnan(score)

    @precondition(lambda self: self.saved)
    @rule(lost=st.lists(nums, max_size=5), later=st.lists(nums, max_size=5))
    @noted
    def restart(self, lost: list[int], later: list[int]) -> None:
        """Also with changes of which the index never heard."""
        self.index.close()
        for num in lost:
            self.model.pop(num * self.sparse, None)
        for num in later:
            self.seq += 1
            self.model[num * self.sparse] = (self.seq, unit(self.seq))
        self.index = small_index(self.folder)
        self.index.open()
        complete(self.index, self.model)

    @invariant()
    @noted
    def counts(self) -> None:
        if hasattr(self, "model"):
            assert self.index.count() == len(self.index) == len(self.model)

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.index.close()
            shutil.rmtree(self.folder)
        super().teardown()


AnyHistory.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestAnyHistory = AnyHistory.TestCase


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[tuple[Path, Model]]:
    """A folder with two segments, one of them with an index, and what they hold."""
    index = small_index(tmp_path)
    index.open()
    model = {num: (num, unit(num)) for num in range(1, 101)}
    index.load(*truth(model), np.stack([vector for _, vector in model.values()]))
    assert index.settle(WAIT_S)
    for num in range(101, 105):
        model[num] = (num, unit(num))
        index.put(num, unit(num), num)
    assert index.settle(WAIT_S)
    assert [segment["kind"] for segment in index.describe()["segments"]] == ["ivf", "exact"]
    index.close()
    yield tmp_path, model


def reopened(folder: Path, model: Model) -> int:
    """Open, complete, compare; how many vectors had to be loaded again."""
    index = small_index(folder)
    try:
        index.open()
        missing = complete(index, model)
        for seed in (3, 50, 103, 500):
            assert_agrees(index, model, unit(seed), 10, None)
            assert_agrees(index, model, unit(seed), 10, list(range(1, 200, 7)))
        assert index.settle(WAIT_S)
        assert_agrees(index, model, unit(7), 200, None)
        return missing
    finally:
        index.close()


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_restart_finds_everything_in_the_files(stored: tuple[Path, Model]) -> None:
    folder, model = stored
    assert len(files_of(folder)) == 4 + 3
    assert reopened(folder, model) == 0


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(bytes(content))


def delete(path: Path) -> None:
    path.unlink()


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("harm", [truncate, empty, lengthen, flip_a_bit, delete, make_a_folder])
def test_damage_to_any_file_costs_no_answer(
    stored: tuple[Path, Model], number: int, harm: Callable[[Path], None]
) -> None:
    folder, model = stored
    larger = sorted(folder.iterdir())[0]
    damaged = files_of(folder)[number]
    harm(damaged)
    assert reopened(folder, model) == (100 if damaged.parent == larger else 4)
    assert reopened(folder, model) == 0


@pytest.mark.parametrize(
    "name", [snapshots.VECTORS, snapshots.NUMBERS, snapshots.MANIFEST, snapshots.INDEX, ""]
)
def test_swapped_files_cost_no_answer(stored: tuple[Path, Model], name: str) -> None:
    folder, model = stored
    one, two = sorted(folder.iterdir())
    first, second = (one / name, two / name) if name else (one, two)
    first.rename(folder / "aside")
    if second.exists():
        second.rename(first)
    (folder / "aside").rename(second)
    assert reopened(folder, model) > 0
    assert reopened(folder, model) == 0


def test_leftovers_are_removed_and_strangers_left_alone(stored: tuple[Path, Model]) -> None:
    folder, model = stored
    (folder / "segment-00000009.partial").mkdir()
    (folder / "segment-00000009.partial" / "vectors.f32").write_bytes(b"half")
    (folder / "segment-00000010.partial").write_bytes(b"a file")
    (folder / "notes.txt").write_bytes(b"mine")
    (folder / "segment-00000011").write_bytes(b"a file, not a folder")
    assert reopened(folder, model) == 0
    assert sorted(path.name.partition("-")[0] for path in folder.iterdir()) == [
        "notes.txt",
        "segment",
        "segment",
    ]


def test_a_segment_and_what_was_merged_of_it_may_both_be_there(stored: tuple[Path, Model]) -> None:
    folder, model = stored
    _, two = sorted(folder.iterdir())
    kept = folder.parent / "kept"
    shutil.copytree(two, kept / two.name)
    index = small_index(folder)
    index.open()
    assert complete(index, model) == 0
    for num in range(105, 145):
        model[num] = (num, unit(num))
        index.put(num, unit(num), num)
    assert index.settle(WAIT_S)
    index.close()
    assert not (folder / two.name).exists()
    shutil.copytree(kept / two.name, folder / two.name)
    assert reopened(folder, model) == 0


def test_files_of_another_model_or_dimension_are_not_used(stored: tuple[Path, Model]) -> None:
    folder, model = stored
    other = small_index(folder, model="another")
    other.open()
    assert other.count() == 0
    wider = FaissIndex(DIMENSIONS + 1, folder=folder, model="m")
    wider.open()
    assert wider.count() == 0
    assert reopened(folder, model) == 0


def test_a_folder_that_cannot_be_used_costs_no_answer(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    model = {num: (num, unit(num)) for num in range(1, 60)}
    assert reopened(tmp_path / "file", model) == 59


def test_a_manifest_that_promises_other_rows_is_refused(stored: tuple[Path, Model]) -> None:
    folder, model = stored
    one, _ = sorted(folder.iterdir())
    shutil.copy(one / snapshots.MANIFEST, folder / "aside")
    with pytest.raises(ValueError, match="another index"):
        ivf.read(one / snapshots.INDEX, ((10, 1),), 5, DIMENSIONS)
    (folder / "aside").unlink()
    assert reopened(folder, model) == 0


def test_searches_during_builds_are_right(tmp_path: Path) -> None:
    index = small_index(tmp_path)
    index.open()
    # These never change, and lie nearer to the query than all that come and go.
    query = unit(1)
    steady = {num: 1.0 - num / 1000 for num in range(1, 11)}
    away = unit(2) - query * float(unit(2) @ query)
    away /= np.float32(np.linalg.norm(away))
    for num, score in steady.items():
        near = query * score + away * (1 - score**2) ** 0.5
        index.put(num, near.astype(np.float32), num)
    failures: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                found = index.search(query, 10)
                assert [num for num, _ in found] == list(steady)
                among = index.search(query, 5, np.arange(3, 500))
                assert [num for num, _ in among] == [3, 4, 5, 6, 7]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for seq in range(100, 2100):
        # On the far side of the query, hence never among the nearest.
        vector = unit(seq)
        index.put(100 + seq % 300, -vector if vector @ query > 0 else vector, seq)
        index.remove(100 + seq * 7 % 300)
    assert index.settle(WAIT_S)
    done.set()
    for thread in threads:
        thread.join(30)
    index.close()
    assert failures == []


def test_what_was_put_is_found_by_the_next_search_of_any_thread() -> None:
    index = small_index()
    rounds, threads = 150, 3
    barrier = threading.Barrier(threads + 1, timeout=WAIT_S)
    failures: list[tuple[int, object]] = []

    def search() -> None:
        for number in range(1, rounds + 1):
            barrier.wait()
            found = index.search(unit(number), 1)
            if found[0][0] != number:
                failures.append((number, found))
            barrier.wait()

    searchers = [threading.Thread(target=search) for _ in range(threads)]
    for searcher in searchers:
        searcher.start()
    for number in range(1, rounds + 1):
        index.put(number, unit(number), number)
        barrier.wait()
        barrier.wait()
    for searcher in searchers:
        searcher.join(30)
    index.close()
    assert failures == []


def test_a_put_and_a_removal_need_no_lock() -> None:
    index = small_index()
    with index._lock:
        for num in range(1, 100):
            index.put(num, unit(num), num)
            index.remove(num - 1)
    assert index.search(unit(99), 5)[0][0] == 99
    assert index.count() == 1
    index.close()


def test_a_vector_of_another_length_is_refused() -> None:
    index = small_index()
    with pytest.raises(ValueError, match="dimensions"):
        index.put(1, np.zeros(DIMENSIONS + 1, dtype=np.float32), 1)
    assert index.count() == 0


def test_equals_are_ordered_by_number_wherever_they_are() -> None:
    index = small_index()
    for num in range(1, 50):
        index.put(num, unit(7), num)
    assert [num for num, _ in index.search(unit(7), 49)] == list(range(49, 0, -1))
    assert len({score for _, score in index.search(unit(7), 49)}) == 1
    assert index.settle(WAIT_S)
    assert [num for num, _ in index.search(unit(7), 49)] == list(range(49, 0, -1))
    index.close()


def test_a_frozen_filter_that_comes_again_follows_the_changes() -> None:
    index = small_index()
    model = {num: (num, unit(num)) for num in range(1, 101)}
    complete(index, model)
    assert index.settle(WAIT_S)
    allowed = np.arange(20, 60)
    allowed.flags.writeable = False
    before = index.search(unit(3), 5, allowed)
    assert index.search(unit(3), 5, allowed) == before
    index.remove(before[0][0])
    assert index.search(unit(3), 5, allowed)[:4] == before[1:]
    index.put(before[0][0], unit(3), 1000)
    assert index.search(unit(3), 1, allowed)[0][0] == before[0][0]
    index.close()


def test_loading_many_keeps_the_head_bounded(tmp_path: Path) -> None:
    index = small_index(tmp_path, load_max=2048, head_max=4096)
    index.open()
    numbers = np.arange(1, 10_001)
    vectors = np.random.default_rng(1).normal(size=(10_000, DIMENSIONS)).astype(np.float32)
    index.load(numbers, numbers, vectors)
    assert index.describe()["head"] < 2048
    assert index.count() == 10_000
    index.close()


def test_a_crash_while_sealing_leaves_nothing_that_counts(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
import numpy as np
from recollect.orchestrator.running import failpoints
from recollect.orchestrator.search.vectors import FaissIndex
failpoints._countdown["while_sealing"] = 1
index = FaissIndex(8, folder=Path(sys.argv[1]), model="m", load_max=10)
index.open()
index.load(np.arange(1, 21), np.arange(1, 21), np.ones((20, 8), dtype=np.float32))
"""
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["segment-00000001.partial"]
    assert reopened(tmp_path, {num: (num, unit(num)) for num in range(1, 21)}) == 20
    assert not list(tmp_path.glob("*.partial"))


def test_a_discarded_index_leaves_no_files(stored: tuple[Path, Model]) -> None:
    folder, model = stored
    index = small_index(folder)
    index.open()
    complete(index, model)
    index.discard()
    assert list(folder.iterdir()) == []
    assert index.count() == 0


def rows_of(*numbers: int, seq: int) -> tuple[Numbers, Numbers, Vector]:
    vectors = np.stack([unit(num + seq) for num in numbers])
    return np.array(numbers), np.full(len(numbers), seq), vectors


def living_pairs(state: State) -> set[tuple[int, int]]:
    found = [
        (int(part.nums[position]), int(part.seqs[position]))
        for part in state.view.parts
        for position in part.living_positions()
    ]
    assert len(found) == len(set(found)) == state.view.count
    return set(found)


def built(sources: Sequence[Source]) -> Segment:
    room = Memory(sum(len(source.living_positions()) for source in sources), DIMENSIONS)
    return build(sources, room, ivf_min=1000, seed=0, go_on=lambda: None)


def test_what_changes_while_a_segment_is_built_stays_changed() -> None:
    state = State(DIMENSIONS, chunk_rows=3)
    nobody = np.empty(0, dtype=np.int64)
    nothing = nobody, nobody, np.empty((0, DIMENSIONS), dtype=np.float32)
    state.change(nobody, *rows_of(1, 2, 3, 4, 5, seq=1))
    frozen = state.freeze()
    segment = built(frozen)
    state.change(np.array([2]), *rows_of(2, seq=2))
    state.change(np.array([4, 99]), *nothing)
    state.seal(frozen, segment)
    assert living_pairs(state) == {(1, 1), (2, 2), (3, 1), (5, 1)}

    frozen = state.freeze()
    state.seal(frozen, built(frozen))
    sources = state.view.segments
    assert len(sources) == 2
    segment = built(sources)
    state.change(np.array([1]), *nothing)
    state.change(np.array([3, 2]), *rows_of(3, 6, seq=3))
    state.merge(sources, segment)
    assert len(state.view.segments) == 1
    assert living_pairs(state) == {(3, 3), (5, 1), (6, 3)}


def living(rows: int, gone: int = 0, *, first: int = 1) -> Living:
    numbers = np.arange(first, first + rows)
    segment = Segment(None, numbers, numbers, np.zeros((rows, 1), dtype=np.float32), None)
    return Living(segment).without(np.arange(gone))


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([], 0),
        ([100], 0),
        ([100, 33], 0),
        ([100, 34], 2),
        ([1000, 100, 30], 0),
        ([1000, 100, 20, 7], 2),
        ([10, 10, 10], 3),
    ],
)
def test_each_segment_stays_larger_than_all_smaller_ones(sizes: list[int], merged: int) -> None:
    assert len(to_merge([living(size) for size in sizes], 10**6)) == merged


def test_what_is_small_is_merged_as_well_when_nothing_is_written() -> None:
    segments = [living(1000), living(101)]
    assert to_merge(segments, 10**6) == []
    assert len(to_merge(segments, 10**6, idle=True)) == 2


def test_a_segment_is_rewritten_when_much_is_gone_or_it_wants_an_index() -> None:
    assert to_merge([living(100, 30)], 1000) == []
    assert len(to_merge([living(100, 31)], 1000)) == 1
    assert len(to_merge([living(100)], 100)) == 1
    empty_one, large = living(5, 5), living(100)
    assert to_merge([large, empty_one], 1000) == [empty_one]


def share_found(
    index: FaissIndex, vectors: Vector, queries: Vector, living: Numbers, *, filtered: bool
) -> float:
    """How many of the ten nearest of the living or allowed are found, number n being row n - 1."""
    hits = 0
    for query in queries:
        wanted = set(living[np.argsort(-(vectors[living - 1] @ query))[:10]].tolist())
        found = index.search(query, 10, living if filtered else None)
        assert len(found) == 10
        hits += len(wanted & {num for num, _ in found})
    return hits / (10 * len(queries))


def test_an_index_of_many_lists_finds_what_is_near_also_under_filters() -> None:
    chance = np.random.default_rng(5)
    centres = chance.normal(size=(60, 32))
    homes = chance.integers(60, size=12_000)
    rows = centres[homes] + 0.4 * chance.normal(size=(12_000, 32))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    index = FaissIndex(32, ivf_min=4096, pause_s=0.0)
    numbers = np.arange(1, 12_001)
    index.load(numbers, numbers, vectors)
    assert index.settle(WAIT_S)
    assert [segment["kind"] for segment in index.describe()["segments"]] == ["ivf"]
    queries = vectors[::400] + 0.05 * chance.normal(size=(30, 32)).astype(np.float32)
    assert share_found(index, vectors, queries, numbers, filtered=False) >= 0.98
    for share in (0.6, 0.3, 0.01):
        allowed = numbers[chance.random(12_000) < share]
        assert share_found(index, vectors, queries, allowed, filtered=True) >= 0.98
    # What is allowed is of some kinds only, most of them unlike the query.
    of_a_kind = numbers[homes < 20]
    assert share_found(index, vectors, queries, of_a_kind, filtered=True) >= 0.98
    assert len(index.search(queries[0], 9000)) == 9000
    # So few that the segment is not made anew without them.
    for num in range(1, 2001):
        index.remove(num)
    assert share_found(index, vectors, queries, numbers[2000:], filtered=False) >= 0.98
    assert index.describe()["segments"][0]["tombstones"] == 2000
    index.close()


def test_what_the_caller_does_not_trust_is_made_anew(stored: tuple[Path, Model]) -> None:
    folder, model = stored
    index = small_index(folder)
    index.open()
    nums, seqs = truth(model)
    asked: list[int] = []

    def distrusted(kept: Numbers) -> bool:
        asked.extend(kept.tolist())
        return False

    missing = index.reconcile(nums, seqs, distrusted)
    assert set(missing.tolist()) == set(nums.tolist())
    assert asked
    assert files_of(folder) == []
    assert complete(index, model) == len(model)
    index.close()


def test_damage_under_a_running_index_is_not_merged_into_a_good_segment(tmp_path: Path) -> None:
    index = small_index(tmp_path / "index")
    index.open()
    model: Model = {}
    for num in range(1, 200):
        model[num] = (num, unit(num))
        index.put(num, unit(num), num)
    assert index.settle(30)
    [damaged, *_] = sorted((tmp_path / "index").glob("*/vectors.f32"))
    with damaged.open("r+b") as file:
        file.write(b"\x00" * 64)
    for num in range(200, 1000):
        model[num] = (num, unit(num))
        index.put(num, unit(num), num)
    index.settle(30)
    index.close()
    assert reopened(tmp_path / "index", model) >= 1


def _contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("ivf_min", [24, 1_000], ids=["with an index", "compared one by one"])
def test_expunging_leaves_no_vector_of_what_is_gone(tmp_path: Path, ivf_min: int) -> None:
    index = small_index(tmp_path, ivf_min=ivf_min)
    index.open()
    model: Model = {num: (num, unit(num)) for num in range(1, 61)}
    for num, (seq, vector) in model.items():
        index.put(num, vector, seq)
    # An earlier vector of a memory goes with it, in whichever segment it is.
    assert index.settle(WAIT_S)
    earlier = model[7][1]
    model[7] = (61, unit(61))
    index.put(7, unit(61), 61)
    for num in range(62, 70):
        model[num] = (num, unit(num))
        index.put(num, unit(num), num)
    assert index.settle(WAIT_S)
    gone = {num: model.pop(num)[1] for num in (7, 20, 60, 65)}
    before = _contents(tmp_path)
    assert any(vector.tobytes() in before for vector in gone.values())
    for num in gone:
        index.remove(num)
    assert index.expunge(np.array(list(gone), dtype=np.int64))
    after = _contents(tmp_path)
    for vector in (earlier, *gone.values()):
        assert vector.tobytes() not in after
    assert_agrees(index, model, unit(3), 30, None)
    index.close()
    segments = snapshots.SnapshotFolder(tmp_path, "m", DIMENSIONS).open()
    assert segments
    for segment in segments:
        assert not set(segment.nums.tolist()) & gone.keys()
        if segment.ivf is not None:
            assert segment.ivf.raw.ntotal == len(segment)
    if ivf_min == 24:
        assert any(segment.ivf is not None for segment in segments)
    again = small_index(tmp_path, ivf_min=ivf_min)
    again.open()
    complete(again, model)
    assert_agrees(again, model, unit(3), 30, None)
    again.close()


def test_expunging_removes_segments_that_are_of_no_use(tmp_path: Path) -> None:
    """Such as those of an earlier format, which are not read and not merged."""
    index = small_index(tmp_path, model="earlier")
    index.open()
    for num in range(1, 9):
        index.put(num, unit(num), num)
    assert index.settle(WAIT_S)
    index.close()
    assert unit(3).tobytes() in _contents(tmp_path)
    index = small_index(tmp_path, model="m")
    index.open()
    assert index.expunge(np.array([3], dtype=np.int64))
    assert unit(3).tobytes() not in _contents(tmp_path)
    index.close()


def test_a_closed_index_says_that_it_was_not_expunged(tmp_path: Path) -> None:
    index = small_index(tmp_path)
    index.open()
    for num in range(1, 9):
        index.put(num, unit(num), num)
    assert index.settle(WAIT_S)
    index.remove(3)
    index.close()
    assert not index.expunge()
