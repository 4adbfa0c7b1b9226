"""What waits for the writer is handed over together, once, and in its order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from recollect.orchestrator.storage.write_queue import WriteQueue

MANY = 5_000
OFTEN = 40_000
LONG_S = 60.0


def test_those_that_are_expected_are_taken_together() -> None:
    queue = WriteQueue[int]()
    with ThreadPoolExecutor(1) as taker:
        taken = taker.submit(queue.take, 256, 3, LONG_S)
        for number in range(3):
            queue.put(number)
        assert taken.result(LONG_S) == ([0, 1, 2], True)


def test_who_does_not_come_is_not_waited_for_beyond_the_time() -> None:
    queue = WriteQueue[int]()
    queue.put(1)
    assert queue.take(256, 8, 0.0) == ([1], True)
    queue.put(2)
    assert queue.take(256, 8, 0.0) == ([2], True)


def test_no_more_are_taken_at_once_than_asked_for() -> None:
    queue = WriteQueue[int]()
    for number in range(5):
        queue.put(number)
    assert queue.take(3, 8, LONG_S) == ([0, 1, 2], True)
    assert len(queue) == 2
    queue.close()
    assert queue.take(1, 8, LONG_S) == ([3], True)
    assert queue.take(3, 8, LONG_S) == ([4], False)


def test_whoever_waits_is_told_that_nothing_more_comes() -> None:
    queue = WriteQueue[int]()
    with ThreadPoolExecutor(1) as taker:
        taken = taker.submit(queue.take, 256, 8, LONG_S)
        queue.close()
        assert taken.result(LONG_S) == ([], False)


def test_all_that_is_put_in_is_taken_once_and_in_its_order() -> None:
    queue = WriteQueue[int]()
    taken: list[int] = []

    def take() -> None:
        more = True
        while more:
            # Now with a wait, now without: it may fall asleep at any moment.
            part, more = queue.take(7, 1 + len(taken) % 5, 0.0001 * (len(taken) % 3))
            taken.extend(part)

    taker = threading.Thread(target=take)
    taker.start()
    for number in range(MANY):
        queue.put(number)
        if number % 100 == 0:
            while len(queue) > 50:  # so that the taker finds it empty again and again
                pass
    queue.close()
    taker.join(LONG_S)
    assert taken == list(range(MANY))


def test_a_wait_that_is_over_before_it_begins_ends_all_the_same() -> None:
    """One writer, who writes again when it was answered: the taker is woken by each write, and then
    waits for a second one, for a time that may be over before it has fallen asleep."""
    waiting = WriteQueue[int]()
    answered: SimpleQueue[list[int]] = SimpleQueue()

    def take() -> None:
        for number in range(OFTEN):
            answered.put(waiting.take(256, 2, 0.000_001 * (1 + number % 4))[0])

    # It need not be waited for: one that sleeps for ever must not hold up the tests.
    threading.Thread(target=take, daemon=True).start()
    for number in range(OFTEN):
        waiting.put(number)
        assert answered.get(timeout=LONG_S) == [number]
