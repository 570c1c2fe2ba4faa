"""Which choice an answer names."""

from __future__ import annotations

import pytest

from servingplan.evaluating.choice import chosen

LETTERS = dict.fromkeys("ABCD", "")

NAMED = [
    ("B", "B"),
    ("(b)", "B"),
    ("**C**", "C"),
    ("B) because", "B"),
    ("B. Paris", "B"),
    ("b\nreason", "B"),
    ("A \u2014 because", "A"),
    ("The answer is B because it is so", "B"),
    ("The answer is A because", "A"),
    ("Answer: **D**", "D"),
    ("**Answer:** C", "C"),
    ("**Answer**: C", "C"),
    ("answer is: `B`", "B"),
    ("Answer: B) Paris", "B"),
    ("The right answer: a", "A"),
    (r"so $\boxed{B}$", "B"),
    (r"\boxed{\text{C}}", "C"),
    ("The correct option is (b).", "B"),
    ("The best choice would be B", "B"),
    ("The answer is option (C)", "C"),
    ("The answer is B. No wait, the answer is D.", "D"),
    ("Let me see: A is wrong, (C) is right", "C"),
    ("Option C is best", "C"),
]


@pytest.mark.parametrize(("text", "letter"), NAMED, ids=[text for text, _ in NAMED])
def test_an_answer_names_a_choice(text: str, letter: str) -> None:
    assert chosen(text, LETTERS) == letter


@pytest.mark.parametrize(
    "text",
    ["", "E", "A good question is hard", "the answer is a matter of taste", "I think A or B", "Answer: None of these",
     "Option C or option B", "Both A) and B)", "the answer is not known", "Because B"],
)  # fmt: skip
def test_what_can_be_read_in_no_way_or_in_two_names_none(text: str) -> None:
    assert chosen(text, LETTERS) is None


def test_the_whole_text_of_a_choice_names_it() -> None:
    choices = {"A": "Paris", "B": "New York", "C": "new york!"}
    assert chosen("paris.", choices) == "A"
    assert chosen("New York", choices) is None


def test_letters_beyond_the_choices_are_none() -> None:
    assert chosen("The answer is E", dict.fromkeys("ABCDE", "")) == "E"
    assert chosen("The answer is E", LETTERS) is None


@pytest.mark.parametrize("unit", ["answer is ", "( ", "\\boxed{", "*_", "**A", "\n ", "option ", " "])
def test_an_answer_that_repeats_itself_is_read_all_the_same(unit: str) -> None:
    """A pattern that goes back over what it read would take hours for these."""
    assert chosen("answer is" + unit * 100_000 + "B?", LETTERS) in {None, "A", "B"}
