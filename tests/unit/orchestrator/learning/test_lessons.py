"""What sets executions apart, which belong together, and how far a pattern is trusted."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.learning.clustering import groups_of, most_typical
from recollect.orchestrator.learning.contrast import Contrast, Outcome, contrast, log_odds
from recollect.orchestrator.learning.posterior import Posterior, best_first
from recollect.orchestrator.learning.terms import Term, shown, words_of
from recollect.orchestrator.learning.terms import terms_of as found_in
from recollect.orchestrator.learning.wording import content_of, pattern_type, worded


def told(*outcomes: tuple[str, bool], **options: object) -> Contrast:
    return contrast([Outcome(success, summary) for summary, success in outcomes], **options)  # type: ignore[arg-type]


def terms_of(text: str) -> dict[Term, str]:
    return {term: shown(found) for term, found in found_in(text).items()}


def texts(marks: object) -> list[str]:
    return [mark.text for mark in marks]  # type: ignore[attr-defined]


def test_terms_skip_what_means_nothing_and_show_it_all_the_same() -> None:
    terms = terms_of("Took a backup first.")
    assert terms["took", "backup", "first"] == "took a backup first"
    assert terms[("backup",)] == "backup"
    assert ("a",) not in terms
    assert ("first", "backup") not in terms


def test_terms_do_not_reach_across_clauses() -> None:
    terms = terms_of("Ran the tests, then left. Nobody noticed (yet)\nLater")
    assert ("test", "left") not in terms
    assert ("left", "nobody") not in terms
    assert ("yet", "later") not in terms


def test_what_denies_belongs_to_what_it_denies() -> None:
    terms = terms_of("Deployed without a backup and did not look")
    assert terms["without", "backup"] == "without a backup"
    assert ("without",) not in terms
    assert ("deployed", "without") not in terms


def test_words_are_the_same_in_the_plural_and_numbers_alone_are_none() -> None:
    assert words_of("Checks the check") == {"check"}
    terms = terms_of("Waited 42 minutes for OPS-4412 v2.17.0")
    assert set(terms) == {("wait",), ("wait", "minut")}
    assert terms["wait", "minut"] == "Waited 42 minutes".lower()


def test_what_is_denied_or_left_out_was_not_done() -> None:
    terms = terms_of("Did not run the smoke tests, skipped the canary, didn\u2019t ask")
    assert terms["not", "run", "smok", "test"] == "not run the smoke tests"
    assert terms["skip", "canary"] == "skipped the canary"
    assert not {("smok", "test"), ("test",), ("canary",), ("ask",), ("skip",)} & terms.keys()


def test_how_it_went_and_what_everybody_does_is_no_term() -> None:
    assert terms_of("It failed again, no errors, took two days, rolled back and tried") == {}
    assert terms_of("Froze the clock and replaced the sleep").keys() >= {("froz", "clock")}
    assert ("clock", "replac") not in terms_of("Froze the clock and replaced the sleep")


def test_names_are_shown_as_they_are_written() -> None:
    terms = terms_of("Used CREATE INDEX CONCURRENTLY at 17:45. Asked Grafana")
    assert terms["creat", "index", "concurrently"] == "CREATE INDEX CONCURRENTLY"
    assert terms["ask", "grafana"] == "asked Grafana"


def test_what_only_one_side_has_stands_out() -> None:
    found = told(
        ("Took a backup first and ran the script", True),
        ("Took a backup first, read the log", True),
        ("Ran the script", False),
        ("Ran the script and read the log", False),
    )
    assert texts(found.good)[0] == "took a backup first"
    assert (found.good[0].well, found.good[0].badly) == (2, 0)
    assert not any("script" in text or "log" in text for text in texts(found.good))


def test_nothing_is_said_twice_in_other_words() -> None:
    found = told(*[("Took a full backup first", True)] * 3, *[("Hurried", False)] * 3)
    assert len(found.good) == 1 == len(found.bad)


def test_what_occurs_once_among_many_is_chance() -> None:
    found = told(*[(f"Word{n} helped", True) for n in range(8)], *[("Nothing", False)] * 8)
    assert not any(text.startswith("word") for text in texts(found.good))


def test_words_that_only_name_the_task_say_nothing() -> None:
    outcomes = [("Deployed the shop calmly", True), ("Deployed the shop calmly", True)]
    found = told(*outcomes, known=frozenset(words_of("Deploy the shop")))
    assert texts(found.good) == ["deployed the shop calmly"]
    found = told(*outcomes, known=frozenset(words_of("Deploy shops calmly")))
    assert found.good == []


def test_errors_are_compared_whatever_their_numbers() -> None:
    outcomes = [
        Outcome(False, "x", ("Timeout after 30 s",)),
        Outcome(False, "x", ("timeout after 12 s",)),
        Outcome(True, "x"),
    ]
    found = contrast(outcomes)
    assert texts(found.errors) == ["Timeout after 30 s"]
    learned = worded("Call the service", found)
    assert learned.failure_indicators == ["Timeout after 30 s"]
    assert learned.recommended_context == [
        "Watch for: Timeout after 30 s (in 0 of 1 that went well, in 2 of 2 that did not)."
    ]


def test_errors_are_compared_whatever_their_ids() -> None:
    pods = ("pod checkout-7f9c4d-xk2lp is down", "Pod checkout-5b6d77-lm9zq is down")
    found = contrast([Outcome(False, "x", (pod,)) for pod in pods])
    assert texts(found.errors) == [pods[0]]


def test_what_stands_out_is_shown_as_one_of_them_said_it() -> None:
    found = told(
        ("Ran it with a random seed twice", True),
        ("Ran it once more with a random seed", True),
        ("Hurried", False),
        ("Hurried", False),
    )
    assert worded("Fix it", found).recommended_context[0] == (
        "Do: random seed (in 2 of 2 that went well, in 0 of 2 that did not), "
        'as in "Ran it once more with a random seed".'
    )


def test_where_nothing_stands_out_the_last_one_speaks_for_itself() -> None:
    found = told(("Asked the team.", True), ("Read the manual\nof it.", True))
    assert worded("Fix it", found).recommended_context == [
        "The last that went well: Read the manual of it."
    ]
    [said] = worded("Fix it", told(("x" * 900, False), ("y" * 900, False))).recommended_context
    assert len(said) < 250


def test_one_of_a_kind_is_no_reason_for_much_advice() -> None:
    found = told(("Asked the team, read the manual, slept on it, wrote a test", True), ("?", False))
    assert len(found.good) == 2


def test_durations_are_told_only_where_they_differ_much() -> None:
    def timed(well: float, badly: float) -> Contrast:
        return contrast([Outcome(True, "", (), well)] * 2 + [Outcome(False, "", (), badly)] * 2)

    assert timed(1_000, 1_500).durations_ms is None
    slow = timed(1_500, 240_000)
    assert slow.durations_ms == (1_500, 240_000)
    assert worded("x", slow).recommended_context == [
        "Those that went well took about 1.5 s, those that did not 4 min."
    ]


@pytest.mark.parametrize(
    ("outcomes", "kind", "summary"),
    [
        ([True, True], "success", "All 2 like tasks went well. Do: slept eight hours."),
        ([False, False], "failure", "None of 2 like tasks went well. Avoid: slept eight hours."),
    ],
)
def test_one_kind_alone_teaches_what_most_of_it_have(
    outcomes: list[bool], kind: str, summary: str
) -> None:
    found = told(*[("Slept eight hours", success) for success in outcomes])
    learned = worded("Run a race", found)
    assert (pattern_type(found), learned.summary) == (kind, summary)
    assert content_of(learned).startswith(f"Run a race\n\nLearned: {summary}")


def test_log_odds_grow_with_the_difference_and_are_even_without() -> None:
    assert log_odds(2, 4, 2, 4) == 0
    assert log_odds(4, 4, 0, 4) > log_odds(3, 4, 0, 4) > log_odds(3, 4, 1, 4) > 0
    assert log_odds(0, 4, 4, 4) == -log_odds(4, 4, 0, 4)


def test_groups_hold_what_is_alike_and_the_same_every_time() -> None:
    deploys = [f"Deploy the web shop to production {n}" for n in range(5)]
    reports = [f"Write the monthly sales report {n}" for n in range(4)]
    mixed = [text for pair in zip(deploys, reports, strict=False) for text in pair] + ["??"]
    vectors = HashedEmbedder().embed_now(mixed)
    groups = groups_of(vectors, 0.6)
    assert [sorted(mixed[place].split()[0] for place in group) for group in groups] == [
        ["Deploy"] * 4,
        ["Write"] * 4,
        ["??"],
    ]
    assert groups == groups_of(vectors, 0.6)
    assert groups_of(np.zeros((0, 4), np.float32), 0.6) == []


def test_who_came_before_those_that_it_belongs_to_is_not_left_alone() -> None:
    angles = np.array([0.0, 1.2, 1.0, 0.7])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert groups_of(vectors, 0.5) == [[0, 1, 2, 3]]


def test_the_most_typical_is_the_one_in_the_middle() -> None:
    angles = np.array([0.0, 0.5, 0.4, 1.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert most_typical(list(vectors)) == 1
    assert most_typical([vectors[2], vectors[2]]) == 0


def test_trust_grows_with_evidence_and_not_by_chance() -> None:
    assert Posterior(0, 0).confidence == 0.5
    assert Posterior(3, 1).confidence == pytest.approx(4 / 6)
    # Two of two promise more than forty of forty-two, and prove less.
    few, many = Posterior(2, 0), Posterior(40, 6)
    assert few.confidence == 0.75 < many.confidence
    assert few.standing < many.standing
    assert Posterior(3, 0).confidence == pytest.approx(0.8)
    assert Posterior(3, 0).standing < Posterior(30, 8).standing
    for successes in range(6):
        for failures in range(6):
            now = Posterior(successes, failures)
            assert 0 <= now.standing < now.confidence < 1
            assert Posterior(successes + 1, failures).standing > now.standing
            assert Posterior(successes, failures + 1).standing <= now.standing


def test_likeness_leads_and_trust_decides_between_like_ones() -> None:
    ranked = best_first([("far", 0.6, 0.9), ("near", 0.9, 0.3), ("nearest", 0.95, 0.2)])
    assert ranked == ["near", "nearest", "far"]
    assert best_first([("b", 0.7, 0.0), ("a", 0.8, 0.0)]) == ["a", "b"]
    assert best_first([("b", -0.7, 0.9), ("a", -0.6, 0.1)]) == ["a", "b"]
    assert best_first(list[tuple[str, float, float]]()) == []
