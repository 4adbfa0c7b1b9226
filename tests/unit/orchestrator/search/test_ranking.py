"""The ranking of recall: what a query asks, how candidates are scored, and what is shown."""

from __future__ import annotations

import math
import re
import string
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.orchestrator.search.ranking import (
    Candidate,
    Intent,
    Ranked,
    Weights,
    collapse,
    diversify,
    embedded_text,
    passages,
    rank,
    read_dates,
    read_query,
    traits,
)
from recollect.orchestrator.search.ranking.texts import specifics, tells_time

NOW_US = int(datetime(2024, 6, 12, 15, tzinfo=UTC).timestamp()) * 1_000_000
PEOPLE = ["Ann", "Bo", "Melanie"]
WEIGHTS = Weights()


def moment_us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


def asking(query: str, authors: list[str] | None = None) -> Intent:
    return read_query(query, PEOPLE if authors is None else authors, NOW_US)


def found(num: int, content: str = "Some text.", **fields: Any) -> Candidate:
    return Candidate(num, content, **fields)


def order(query: str, candidates: list[Candidate], **options: Any) -> list[int]:
    return [item.num for item in rank(asking(query), candidates, WEIGHTS, **options)]


def test_a_named_author_is_matched_and_not_searched_for() -> None:
    intent = asking("What did Ann's sister bring to the lake?")
    assert intent.authors == {"ann": 1.0}
    assert intent.search_text == intent.embed_text == "What did sister bring to the lake?"


def test_a_query_of_nothing_but_a_name_searches_for_the_name() -> None:
    intent = asking("Tell me about Bo")
    assert intent.authors == {"bo": 1.0}
    assert "Bo" in intent.search_text
    assert "Bo" in intent.embed_text


@pytest.mark.parametrize(
    ("query", "authors", "meant"),
    [
        ("What did Mel paint?", PEOPLE, {"melanie"}),
        ("what did ann paint?", PEOPLE, {"ann"}),
        ("Will it rain?", ["Will"], set()),
        ("When may I call?", ["May"], set()),
        ("Did May call?", ["May"], {"may"}),
        ("What did Ann Lee say?", ["Ann Lee", "Bo"], {"ann lee"}),
        ("What did the annex cost?", PEOPLE, set()),
        ("Where is the user guide?", ["user"], set()),
        ("What failed on worker-7?", ["worker-7"], {"worker-7"}),
        ("Anything", [], set()),
    ],
)
def test_names_are_recognised_as_people_write_them(
    query: str, authors: list[str], meant: set[str]
) -> None:
    assert set(asking(query, authors).authors) == meant


def test_you_and_i_are_the_assistant_and_the_user_of_a_chat() -> None:
    chat = ["user", "assistant"]
    assert set(asking("Which hotel did you recommend to me?", chat).authors) == {"assistant"}
    assert set(asking("What is my dog called?", chat).authors) == {"user"}
    assert asking("What is my dog called?", ["Ann", "Bo"]).authors == {}


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("on 8 May, 2023", "2023-05-08", "2023-05-09"),
        ("on May 8th 2023", "2023-05-08", "2023-05-09"),
        ("since 2023-05-08", "2023-05-08", "2023-05-09"),
        ("in December 2023", "2023-12-01", "2024-01-01"),
        ("in winter 2022", "2022-12-01", "2023-03-01"),
        ("in 2022", "2022-01-01", "2023-01-01"),
        ("between August 11 and August 15 2023", "2023-08-15", "2023-08-16"),
        ("yesterday", "2024-06-11", "2024-06-12"),
        ("last month", "2024-05-01", "2024-06-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("three days ago", "2024-06-09", "2024-06-10"),
        ("a couple of weeks ago", "2024-05-26", "2024-06-02"),
        ("last Monday", "2024-06-10", "2024-06-11"),
    ],
)
def test_dates_are_read_as_spans(text: str, first: str, end: str) -> None:
    spans, _ = read_dates(f"What happened {text}?", NOW_US)
    assert (moment_us(first), moment_us(end)) in {(span.start_us, span.end_us) for span in spans}


def test_two_dates_with_between_are_one_span() -> None:
    (span,), rest = read_dates("Where was Bo between 3 May 2023 and 9 May 2023?", NOW_US)
    assert (span.start_us, span.end_us) == (moment_us("2023-05-03"), moment_us("2023-05-10"))
    assert "May" not in rest


def test_a_month_without_a_year_is_meant_of_any_recent_year() -> None:
    spans, _ = read_dates("What did we plan in May?", NOW_US)
    assert {moment_us("2024-05-01"), moment_us("2019-05-01")} <= {s.start_us for s in spans}


@pytest.mark.parametrize("text", ["on 2023-02-31", "in room 2023b", "may I go?", "item 12"])
def test_what_is_no_date_is_left_alone(text: str) -> None:
    assert read_dates(text, NOW_US) == ((), text)


@given(st.text(max_size=300))
def test_any_text_can_be_asked_and_read(text: str) -> None:
    intent = read_query(text, ["Ann", "", "?", text], NOW_US)
    assert isinstance(intent.embed_text, str)
    traits(text)
    embedded_text(text)
    spans = passages(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
    assert bool(spans) == bool(text.strip()) or not spans


def test_who_is_spoken_to_is_not_embedded() -> None:
    assert embedded_text("Thanks, Ann! I met Bo in Rome.") == "Thanks! I met Bo in Rome."
    assert embedded_text("Hey Bo, how are you?") == "Hey, how are you?"
    assert embedded_text("See you soon, Ann!") == "See you soon!"
    assert embedded_text("We met in Lyon, France.") == "We met in Lyon, France."
    assert embedded_text("I like Rome, Pisa and Bari.") == "I like Rome, Pisa and Bari."
    assert embedded_text("Look!", "a red boat") == "Look! a red boat"


def test_passages_are_sentences_and_no_scraps() -> None:
    text = "Wow! I planted three roses today. They are yellow and tall. Nice?"
    assert [text[start:end] for start, end in passages(text)] == [
        "Wow! I planted three roses today.",
        "They are yellow and tall. Nice?",
    ]


def test_a_long_text_has_a_bounded_number_of_passages_that_cover_it() -> None:
    text = " ".join(f"This is sentence number {n} of many." for n in range(500))
    spans = passages(text)
    assert len(spans) <= 32
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)


def test_traits_tell_questions_specifics_and_times() -> None:
    assert traits("Where have you been?").asks == 1
    assert traits("I was in town.").asks == 0
    assert 0 < traits("I was in town. And you?").asks < 1
    assert traits("I saw Rome and Pisa.").specifics == 1
    assert traits("I saw towns.").specifics == 0
    assert tells_time("It was last week.")
    assert tells_time("I left at 7 pm.")
    assert not tells_time("It was nice.")


def test_no_candidates_give_no_ranking() -> None:
    assert rank(asking("Anything?"), [], WEIGHTS) == []


def test_one_candidate_is_ranked_whatever_is_unknown_of_it() -> None:
    (only,) = rank(asking("When did Ann go in May 2023?"), [found(7)], WEIGHTS)
    assert only.num == 7


@given(
    st.lists(
        st.builds(
            Candidate,
            num=st.integers(1, 10**6),
            content=st.text(max_size=60),
            lexical=st.none() | st.floats(0, 50),
            similarity=st.none() | st.floats(-1, 1),
            author=st.none() | st.sampled_from(PEOPLE),
            session_id=st.none() | st.sampled_from(["a", "b"]),
            moment_us=st.integers(0, NOW_US),
            importance=st.floats(0, 1),
            strength=st.floats(0, 1),
        ),
        max_size=12,
        unique_by=lambda candidate: candidate.num,
    ),
    st.sampled_from(["When did Ann go?", "What is the latest on roses in May 2023?", "", "first"]),
)
def test_the_parts_add_up_to_the_score_and_the_scores_fall(
    candidates: list[Candidate], query: str
) -> None:
    nums = [candidate.num for candidate in candidates]
    ranked = rank(asking(query), candidates, WEIGHTS, [nums])
    assert sorted(item.num for item in ranked) == sorted(nums)
    assert all(item.score == sum(item.parts.values()) for item in ranked)
    assert all(np.isfinite(item.score) for item in ranked)
    scores = [item.score for item in ranked]
    assert scores == pytest.approx(sorted(scores, reverse=True))
    assert rank(asking(query), candidates[::-1], WEIGHTS, [nums]) == ranked


def test_words_alone_rank_where_nothing_is_embedded() -> None:
    candidates = [found(1, lexical=2.0), found(2, lexical=5.0), found(3)]
    assert order("roses", candidates) == [2, 1, 3]


def test_meaning_alone_ranks_where_no_word_matches() -> None:
    assert order("roses", [found(1, similarity=0.3), found(2, similarity=0.6)]) == [2, 1]


def test_what_is_not_yet_embedded_does_not_fall_behind_what_matches_worse() -> None:
    fresh = found(1, lexical=5.0)
    other = found(2, lexical=1.0, similarity=0.5)
    assert order("roses", [fresh, other]) == [1, 2]


def test_the_named_author_goes_before_others_who_said_the_same() -> None:
    said: dict[str, Any] = {"lexical": 3.0, "similarity": 0.5}
    candidates = [found(1, author="Ann", **said), found(2, author="bo", **said)]
    assert order("What does Ann like?", candidates) == [1, 2]
    assert order("What does Bo like?", candidates) == [2, 1]


def test_what_others_write_about_somebody_counts_but_speaking_to_them_does_not() -> None:
    about = found(1, "I think Ann prefers tea.", author="Bo", similarity=0.5)
    to = found(2, "Tea is fine, Ann!", author="Bo", similarity=0.5)
    ranked = rank(asking("What does Ann drink?"), [about, to], WEIGHTS)
    assert [item.num for item in ranked] == [1, 2]
    assert ranked[0].parts["mention"] > 0
    assert ranked[1].parts["mention"] == 0


def test_a_question_of_when_prefers_what_tells_a_time() -> None:
    dated = found(1, "We went there last Tuesday.", similarity=0.5)
    undated = found(2, "We went there by train.", similarity=0.5)
    assert order("When did they go?", [undated, dated]) == [1, 2]


def test_a_named_day_prefers_what_was_said_on_it_and_then_near_it() -> None:
    days = {1: "2023-05-08", 2: "2023-05-11", 3: "2023-09-01"}
    candidates = [found(n, similarity=0.5, moment_us=moment_us(day)) for n, day in days.items()]
    assert order("What happened on 8 May 2023?", candidates[::-1]) == [1, 2, 3]


def test_a_question_answers_nothing_unless_asking_is_asked_about() -> None:
    question = found(2, "What do you cook?", similarity=0.6)
    answer = found(1, "Lentils, mostly.", similarity=0.5)
    assert order("What does she cook?", [question, answer]) == [1, 2]
    assert order("What was asked about cooking?", [question, answer]) == [2, 1]


def test_a_reply_gets_credit_from_the_question_before_it() -> None:
    turns = [
        found(1, "What is your dog called?", session_id="s", similarity=0.8, lexical=4.0),
        found(2, "Biscuit.", session_id="s", similarity=0.1),
        found(3, "The weather was fine.", session_id="t", similarity=0.1),
    ]
    ranked = rank(asking("What is the dog called?"), turns, WEIGHTS, [[1, 2], [3]])
    parts = {item.num: item.parts for item in ranked}
    assert parts[2]["turns"] > 0
    assert parts[2]["reply"] > 0
    assert parts[3]["turns"] == 0
    scores = {item.num: item.score for item in ranked}
    assert scores[2] > scores[3]


def test_credit_flows_only_between_turns_of_one_run() -> None:
    turns = [found(n, similarity=0.5) for n in (1, 2)]
    (first, _) = rank(asking("roses"), turns, WEIGHTS, [[1], [2]])
    assert "turns" not in first.parts


def test_a_dialogue_shares_more_credit_than_a_monologue() -> None:
    turns = [found(n, similarity=0.5, author=who) for n, who in ((1, "Ann"), (2, "Bo"))]
    alone = [found(n, similarity=0.5, author="Ann") for n in (1, 2)]
    (dialogue, _), (monologue, _) = (
        rank(asking("roses"), given, WEIGHTS, [[1, 2]]) for given in (turns, alone)
    )
    assert dialogue.parts["turns"] > monologue.parts["turns"] > 0


def test_a_long_text_takes_and_gives_little_credit() -> None:
    long = "word " * 800
    turns = [found(1, "Roses.", similarity=0.5), found(2, long, similarity=0.5)]
    parts = {i.num: i.parts for i in rank(asking("roses"), turns, WEIGHTS, [[1, 2]])}
    short_turns = [found(1, "Roses.", similarity=0.5), found(2, "Tulips.", similarity=0.5)]
    plain = {i.num: i.parts for i in rank(asking("roses"), short_turns, WEIGHTS, [[1, 2]])}
    assert parts[2]["turns"] < plain[2]["turns"] / 5
    assert parts[1]["turns"] < plain[1]["turns"] / 5


def test_the_newest_of_what_is_about_the_same_wins_and_the_oldest_where_first_is_asked() -> None:
    old = found(1, "The rent is 900.", lexical=3.0, similarity=0.62, moment_us=10)
    new = found(2, "The rent is 950.", lexical=3.0, similarity=0.6, moment_us=20)
    other = found(3, "It snowed.", similarity=0.05, moment_us=30)
    assert order("How high is the rent?", [old, new, other]) == [2, 1, 3]
    assert order("How high is the rent now?", [old, new, other]) == [2, 1, 3]
    assert order("What was the first rent?", [old, new, other]) == [1, 2, 3]


def test_time_importance_and_strength_change_nothing_where_all_are_alike() -> None:
    candidates = [found(n, similarity=n / 10, moment_us=5) for n in range(1, 6)]
    bare = msgspec.structs.replace(WEIGHTS, recency=0, importance=0, strength=0)
    plain = [item.num for item in rank(asking("roses"), candidates, bare)]
    assert order("roses", candidates) == plain == [5, 4, 3, 2, 1]


def test_importance_and_strength_break_ties() -> None:
    alike: dict[str, Any] = {"similarity": 0.5}
    assert order("x", [found(1, importance=0.9, **alike), found(2, **alike)]) == [1, 2]
    assert order("x", [found(1, **alike), found(2, strength=0.2, **alike)]) == [1, 2]


def test_a_weight_of_nothing_switches_its_part_off() -> None:
    zero = Weights(**{name: 0 for name in Weights.__struct_fields__})
    ranked = rank(asking("When did Ann go?"), [found(1, lexical=1.0), found(2)], zero)
    assert [(item.num, item.score, item.parts) for item in ranked] == [(2, 0, {}), (1, 0, {})]


def ranked_texts(*texts: str, author: str | None = None) -> list[Ranked]:
    candidates = {n: found(n, text, author=author) for n, text in enumerate(texts, 1)}
    ranked = [Ranked(num, 1 / num, {}) for num in candidates]
    return collapse(ranked, candidates)


def test_the_same_words_are_shown_once() -> None:
    (first, other) = ranked_texts("Deploy on Friday.", "deploy on  friday", "Buy milk.")
    assert (first.num, first.duplicates) == (1, (2,))
    assert (other.num, other.duplicates) == (3, ())


def test_another_wording_of_a_long_text_is_a_duplicate_but_an_update_is_not() -> None:
    text = "The staging deploy runs every Friday at noon after Ann has checked the queue length"
    assert len(ranked_texts(text, f"{text} twice")) == 1
    assert len(ranked_texts(text, text.replace("Friday", "Monday"))) == 2
    assert len(ranked_texts(text, f"{text} not")) == 2
    assert len(ranked_texts(text, f"{text} 2")) == 2


def test_what_two_people_say_of_themselves_is_not_the_same() -> None:
    candidates = {
        1: found(1, "I play the cello.", author="Ann"),
        2: found(2, "I play the cello.", author="Bo"),
    }
    ranked = [Ranked(1, 1.0, {}), Ranked(2, 0.9, {})]
    assert len(collapse(ranked, candidates)) == 2


def test_diversity_puts_what_differs_before_what_repeats() -> None:
    ranked = [Ranked(1, 1.0, {}), Ranked(2, 0.95, {}), Ranked(3, 0.6, {})]
    vectors = {
        1: np.array([1, 0], dtype=np.float32),
        2: np.array([1, 0], dtype=np.float32),
        3: np.array([0, 1], dtype=np.float32),
    }
    assert [item.num for item in diversify(ranked, vectors, 0.5)] == [1, 3, 2]
    assert diversify(ranked, vectors, 1.0) == ranked
    assert sorted(item.num for item in diversify(ranked, {}, 0.3)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("Plan the next step of the release", set()),
        ("It is done. Deploy the shop", set()),
        ("Ask Plan about the release", {"planner"}),
        ("Walt said so", set()),
        ("What did Walt say?", {"walter"}),
        ("Alex said so", {"alexandra"}),
    ],
)
def test_what_is_to_be_done_is_nobody_s_short_name(query: str, meant: set[str]) -> None:
    known = ["planner", "deployer", "walter", "alexandra"]
    assert set(read_query(query, known, NOW_US).authors) == meant


# As the rule is said: a capital within a sentence, that is not `I`; or a quotation; or a number.
SPECIFIC = re.compile(
    r"(?<![.!?:\u2026\"\u201c] )(?<!^)\b(?!I\b)[A-Z][\w'\u2019-]+"
    r"|[\"\u201c][^\"\u201d]{2,60}[\"\u201d]"
)
PIECES = (
    *("Anna", "O'Brien", "McX", "I", "I'm", "Bo-Li", "\u00c9va", "A", "ab", "_A", "7", "42"),
    *(" ", ". ", "! ", ": ", "\u2026 ", '"', '" ', "\u201c", "\u201d", "-", "'", "\u2019", "\n"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_names_quotations_and_numbers_are_counted_up_to_two(text: str) -> None:
    found = len(set(SPECIFIC.findall(text))) + len(re.findall(r"\d+", text))
    assert specifics(text) == min(2, found)


def test_a_long_question_is_understood_however_many_have_written() -> None:
    # Words that could all be short forms of names, as many as a question may have.
    words = [
        f"{a}{b}{c}".capitalize()
        for a in "bcdfgklmnp"
        for b in "aeiou"
        for c in string.ascii_lowercase
    ]
    query = " ".join(dict.fromkeys([*words, *(f"{word}o" for word in words)]))[:10_000]
    known = [f"{word}dersson-{n}" for n, word in enumerate(words[:1_000])]
    # In the processor's time, of which the old way took twenty times as much.
    best_s = math.inf
    for _ in range(3):
        began_s = time.thread_time()
        intent = read_query(query, known, NOW_US)
        best_s = min(best_s, time.thread_time() - began_s)
    assert best_s < 0.05
    assert len(intent.authors) > 900
