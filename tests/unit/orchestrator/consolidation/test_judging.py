"""What two memories are to each other. Rather nothing is found than something wrong."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.orchestrator.consolidation.judging import Looked, judge, looked_at, subject_of
from recollect.orchestrator.consolidation.sentences import sentences
from recollect.orchestrator.consolidation.statements import normalised
from recollect.orchestrator.consolidation.subjects import said_by


def look(content: str, num: int = 1, **given: Any) -> Looked:
    values: dict[str, Any] = {
        "version": 1,
        "namespace": "app:default",
        "key": None,
        "memory_type": "general",
        "value": None,
        "author": "planner",
        "valid_us": (None, None),
    }
    return looked_at(num, content=content, **(values | given))


def kind_of(one: str, other: str) -> str | None:
    """The same from both sides, or the judgement would depend on which came first."""
    verdict, turned = judge(look(one), look(other)), judge(look(other), look(one))
    assert (verdict and verdict.kind) == (turned and turned.kind)
    return None if verdict is None else verdict.kind


DUPLICATES = [
    ("Anna prefers green tea", "Anna prefers green tea"),
    ("Anna prefers green tea.", "anna  prefers green tea"),
    ("Anna prefers green tea", "Anna really prefers green tea"),
    ("Anna prefers the green tea", "Anna prefers green tea!"),
    ("The user prefers dark mode", "User prefers dark mode"),
    ("Remember that the build runs on Jenkins", "The build runs on Jenkins"),
    ("The deploy takes twelve minutes", "The deploy takes 12 minutes"),
    ("The organisation uses Kubernetes", "The organization uses Kubernetes"),
    ("The favourite colour is blue", "The favorite color is blue"),
    ("The travelled distance is in metres", "The traveled distance is in meters"),
    ("The grey catalogue is at the centre", "The gray catalog is at the center"),
    ("The budget is 5,000 euros", "The budget is 5000 euros"),
    ("Paris is the capital of France", "The capital of France is Paris"),
    ("Anna doesn't eat meat", "Anna does not eat meat"),
    ("Anna\u2019s dog is called Rex", "Anna's dog is called Rex"),
    ("Backups run every night", "backups run every night."),
]
CONTRADICTIONS = [
    ("Alice's favourite colour is blue", "Alice's favourite colour is green"),
    ("Alice lives in Paris", "Alice lives in Berlin"),
    ("Bob works at Google", "Bob works at Microsoft"),
    ("Bob's manager is Carol", "Bob's manager is Dave"),
    ("The deadline of the project is Friday", "The deadline of the project is Monday"),
    ("The staging port is 8080", "The staging port is 9090"),
    ("The API listens on port 8080", "The API listens on port 9090"),
    ("Anna eats meat", "Anna does not eat meat"),
    ("Anna likes coffee", "Anna doesn't like coffee"),
    ("Anna likes coffee", "Anna dislikes coffee"),
    ("Deploy on Friday afternoon", "Never deploy on Friday afternoon"),
    ("The dark mode is enabled", "The dark mode is disabled"),
    ("The staging server is online", "The staging server is offline"),
    ("The upload timeout of clients is 30 seconds", "The upload timeout of clients is 60 seconds"),
    ("The nightly backup takes 20 minutes", "The nightly backup takes 45 minutes"),
    ("My favourite food is pizza", "My favourite food is sushi"),
    ("Our budget is 5000 euros", "Our budget is 8000 euros"),
    ("The project is due on May 3", "The project is due on June 7"),
    ("Alice was born in 1990", "Alice was born in 1992"),
    ("The release branch is main", "The release branch is develop"),
    ("The service is written in Python", "The service is written in Go"),
    ("The status of ticket 7 is open", "The status of ticket 7 is closed"),
]
NEITHER = [
    # About something else.
    ("Anna prefers green tea", "Bob prefers green tea"),
    ("Anna prefers green tea", "Anna prefers black coffee"),
    ("Alice's favourite colour is blue", "Alice's favourite food is pizza"),
    ("Alice's favourite colour is blue", "Bob's favourite colour is green"),
    ("Ticket 7 is closed", "Ticket 8 is closed"),
    ("Server 1 has 16 GB of memory", "Server 2 has 32 GB of memory"),
    ("The production port is 8080", "The staging port is 9090"),
    ("The public key is in the vault", "The private key is in the vault"),
    ("The minimum is 5 users a team", "The maximum is 5 users a team"),
    ("The active accounts are in table one", "The inactive accounts are in table one"),
    ("Version 1.2 supports plugins", "Version 1.3 supports plugins"),
    ("The port is 8080", "The port is 5432"),
    # Small words make all the difference.
    ("The flight goes from Berlin to Paris", "The flight goes to Berlin from Paris"),
    ("He likes tea", "She likes tea"),
    ("Anna can deploy", "Anna should deploy"),
    ("My car is red", "Your car is red"),
    ("All tests are slow", "Some tests are slow"),
    ("Anna met Bob", "Bob met Anna"),
    ("Dogs are animals", "Animals are dogs"),
    ("Coffee with milk", "Coffee without milk"),
    ("Anna manages Bob", "Bob manages Anna"),
    ("The cable is under the desk", "The cable is over the desk"),
    # Several things can hold at once.
    ("Anna likes tea", "Anna likes coffee"),
    ("Anna has a cat", "Anna has a dog"),
    ("Anna's hobby is chess", "Anna's hobby is tennis"),
    ("The bus leaves at 9", "The bus leaves at 10"),
    ("The gym is open on Monday", "The gym is open on Tuesday"),
    ("Anna works on Monday", "Anna works on Tuesday"),
    ("Anna moved to Berlin", "Anna moved to Paris"),
    ("Anna visited Rome in 2019", "Anna visited Rome in 2021"),
    ("The server has port 80 open", "The server has port 443 open"),
    ("Check the oven before baking", "Check the oven after baking"),
    ("My favourite books are Emma and Dune", "My favourite books are Ulysses and Solaris"),
    ("The price of the car is high", "The price of the car is negotiable"),
    ("The end of the street is dark", "The end of the street is wide"),
    # One says more than the other, or says it more exactly.
    ("Anna prefers green tea", "Anna prefers green tea in the morning"),
    ("Alice lives in Berlin", "Alice lives in Germany"),
    ("Bob's birthday is May 3", "Bob's birthday is 3 May 1990"),
    ("Alice was born in 1990", "Alice was born in Berlin"),
    ("The deadline of the project is Friday", "The deadline of the project is May 3"),
    ("The meeting starts at 3pm", "The meeting starts at 15:00"),
    ("The meeting starts at 15:00", "The meeting starts on Monday"),
    ("The size of the room is impressive", "The size of the room is 20 square metres"),
    # Another time, another condition.
    ("Alice lives in Paris", "Alice lived in Berlin"),
    ("The price was 5 euros in spring", "The price was 6 euros in spring"),
    ("Alice's budget is 5000 in 2023", "Alice's budget is 6000 in 2024"),
    ("Bob's role is admin on staging", "Bob's role is viewer on production"),
    ("The server was down", "The server is up"),
    ("Anna used to like coffee", "Anna does not like coffee"),
    ("The default port is 80 for http", "The default port is 443 for https"),
    # Questions state nothing; an answer's "no" denies something else.
    ("Is Anna in Berlin?", "Anna is in Berlin"),
    ("Does Anna eat meat?", "Anna does not eat meat"),
    ("No, Anna eats meat", "Anna eats meat with pleasure"),
    # Too little in common.
    ("Yes", "No"),
    ("It is 5", "It is 6"),
    ("He is the manager", "She is the manager"),
    ("This is important", "This is not urgent"),
    ("accept the offer", "except the offer"),
    ("The contract is in the drawer", "The contact is in the drawer"),
    ("The desert was great", "The dessert was great"),
    ("Marion likes green tea", "Marian likes green tea"),
    ("Machine12 is in the cellar", "Machine13 is in the cellar"),
    ("The causal model is in the paper", "The casual model is in the paper"),
    ("Adopt the new rules soon", "Adapt the new rules soon"),
    ("The affect was large", "The effect was large"),
]


@pytest.mark.parametrize(("one", "other"), DUPLICATES)
def test_texts_that_say_the_same(one: str, other: str) -> None:
    assert kind_of(one, other) == "duplicate"


@pytest.mark.parametrize(("one", "other"), CONTRADICTIONS)
def test_texts_that_contradict_each_other(one: str, other: str) -> None:
    assert kind_of(one, other) == "contradiction"


@pytest.mark.parametrize(("one", "other"), NEITHER)
def test_texts_that_do_neither(one: str, other: str) -> None:
    assert kind_of(one, other) is None


def test_what_i_say_is_not_what_you_say() -> None:
    mine, yours = look("I like tea", author="anna"), look("I like tea", author="bob")
    assert judge(mine, yours) is None
    assert judge(mine, look("I like tea", author="anna")) is not None
    # Of others, anybody may say the same.
    assert judge(look("Eve likes tea", author="anna"), look("Eve likes tea", author="bob"))


@pytest.mark.parametrize(
    "given",
    [
        {"memory_type": "procedural"},
        {"value": "{}"},
        {"valid_us": (1, None)},
    ],
    ids=str,
)
def test_the_same_text_of_another_thing_is_no_repetition(given: dict[str, Any]) -> None:
    assert judge(look("Anna prefers green tea"), look("Anna prefers green tea")) is not None
    assert judge(look("Anna prefers green tea"), look("Anna prefers green tea", **given)) is None


def test_a_fact_is_a_fact_of_whichever_type() -> None:
    assert judge(look("Tom is tall today"), look("Tom is tall today", memory_type="semantic"))


def test_two_keys_are_two_things() -> None:
    theme, editor = look("It is dark green", key="theme"), look("It is dark green", key="editor")
    assert judge(theme, editor) is None
    assert judge(theme, look("It is dark green")) is not None


def test_what_held_before_does_not_contradict_what_holds_since() -> None:
    paris = look("Alice lives in Paris", valid_us=(None, 100))
    berlin = look("Alice lives in Berlin", valid_us=(100, None))
    assert judge(paris, berlin) is None
    overlapping = look("Alice lives in Berlin", valid_us=(90, None))
    assert judge(paris, overlapping) is not None


def test_a_long_text_is_only_compared_as_a_whole() -> None:
    long = "Alice lives in Paris. " * 40
    assert judge(look(long), look(long.lower())) is not None
    assert judge(look(long), look(long.replace("Paris", "Berlin"))) is None
    assert subject_of(look(long)) == "a long text"


def test_a_subject_is_named_for_people() -> None:
    assert subject_of(look("Alice's favourite colour is blue")) == "favourite colour of Alice"
    assert subject_of(look("Alice lives in Paris")) == "Alice lives in"
    assert subject_of(look("It is so", key="theme")) == "theme"
    assert subject_of(look("Tea " * 100)).endswith("\u2026")


def test_only_a_single_sentence_has_a_subject() -> None:
    assert said_by("Alice lives in Paris.") is not None
    assert said_by("Alice lives in Paris. She likes it.") is None
    assert said_by("She lives in Paris") is None


def test_normalising_and_cutting() -> None:
    assert normalised("  The  Tea\u2019s HOT!! ") == "the tea's hot"
    assert sentences("One. Two!\nThree? Version 1.2 is out.") == [
        "One.",
        "Two!",
        "Three?",
        "Version 1.2 is out.",
    ]


@pytest.mark.parametrize(
    "whole",
    [
        "Dr. Smith saw Mr. Jones at 3 p.m. on Monday.",
        "See no. 5 of the U.S. Army by J. K. Rowling, e.g. its end.",
        "1. Drain the service",
        'The foreman said "It is broken!" (twice).',
        '"It is broken!" he said.',
        "The deploy of the order service failed because the\nschema was not migrated.",
    ],
)
def test_a_sentence_is_not_cut_where_it_only_seems_to_end(whole: str) -> None:
    assert sentences(whole) == [whole]
    assert sentences(f"It rains. {whole}\nThen it stopped.")[0] == "It rains."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("He said no. Then he left.", ["He said no.", "Then he left."]),
        ('He said "It works." Then he left.', ['He said "It works."', "Then he left."]),
        ("i went home. then i slept", ["i went home.", "then i slept"]),
        ("See https://x.org/a?b=c. It works.", ["See https://x.org/a?b=c.", "It works."]),
        ("make migrate\nmake restart", ["make migrate", "make restart"]),
        ("\u6570\u636e\u3002\u65e5\u5fd7\uff01", ["\u6570\u636e\u3002", "\u65e5\u5fd7\uff01"]),
        (" \n\n ", []),
    ],
)
def test_a_sentence_ends_where_it_ends(text: str, told: list[str]) -> None:
    assert sentences(text) == told


@pytest.mark.timeout(10)
@pytest.mark.parametrize("part", ["\n", "!", "A. ", '."', "a\n \n"])
def test_a_text_of_nothing_but_ends_takes_no_longer_than_any_other(part: str) -> None:
    """Looked at anew from each of them, it would take minutes."""
    told = sentences(part * 200_000)
    assert len(told) <= 200_000
