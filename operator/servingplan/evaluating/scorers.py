"""What makes an answer right: exact match, multiple choice, a regular expression, a JSON schema.

In: an answer's text. Out: a score, and what was read out of the text. Pure, and bounded: patterns run in time that is
linear in the text (RE2, and the same for patterns inside schemas), and schemas load nothing from elsewhere.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any, Protocol

import jsonschema_rs
import re2

from servingplan.evaluating.choice import chosen

PATTERN_BYTES = 8 * 2**20
"""Memory of one compiled pattern, at most."""

MOST_LEVELS = 200
"""Of JSON in an answer. Deeper is wrong."""

REASONING_END = "</think>"
"""What stands before the last of these is how a model thought, not its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A score between 0 (wrong) and 1 (right). read: what was compared; empty where nothing could be read."""

    score: float
    read: str


class Scorer(Protocol):
    """One way to score answers."""

    @property
    def kind(self) -> str:
        """Its name in a set."""

    def score(self, text: str) -> Scored:
        """The score of an answer."""


def final_answer(text: str) -> str:
    """The answer without the reasoning that a model may write before it."""
    return text.rpartition(REASONING_END)[2].strip()


# ---- exact match ----

NORMALIZATIONS: Mapping[str, Callable[[str], str]] = {
    "unicode": lambda text: unicodedata.normalize("NFKC", text),
    "case": str.casefold,
    "punctuation": lambda text: "".join(" " if unicodedata.category(one)[0] == "P" else one for one in text),
    "whitespace": lambda text: " ".join(text.split()),
}
"""In the order in which they are done: NFKC; case folded; punctuation to spaces; white space to single spaces."""

DEFAULT_NORMALIZATION = ("unicode", "case", "whitespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Right where the answer is one of the expected texts, both normalized."""

    kind: str = field(default="exact", init=False)
    expected: frozenset[str]
    normalize: tuple[str, ...]

    def score(self, text: str) -> Scored:
        """One for an answer that is as expected."""
        read = normalized(final_answer(text), self.normalize)
        return Scored(score=float(read in self.expected), read=read)


def normalized(text: str, steps: tuple[str, ...]) -> str:
    """The text after the named steps, in the order of `NORMALIZATIONS`."""
    for name, step in NORMALIZATIONS.items():
        if name in steps:
            text = step(text)
    return text


def _exact(stated: Mapping[str, Any]) -> Exact:
    steps = stated.get("normalize", list(DEFAULT_NORMALIZATION))
    if not isinstance(steps, list) or not set(map(str, steps)) <= NORMALIZATIONS.keys():
        raise ValueError(f"`normalize` is a list of {', '.join(NORMALIZATIONS)}")
    answers = stated.get("answer")
    answers = answers if isinstance(answers, list) else [answers]
    if not answers or not all(isinstance(one, str) and one for one in answers):
        raise ValueError('`answer` is a text, or a list of texts of which each is right: "answer": "Paris"')
    return Exact(expected=frozenset(normalized(one.strip(), tuple(steps)) for one in answers), normalize=tuple(steps))


# ---- multiple choice ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Right where the answer names the expected letter. choices: text by letter, empty where unknown."""

    kind: str = field(default="choice", init=False)
    expected: str
    choices: Mapping[str, str]

    def score(self, text: str) -> Scored:
        """One for an answer that names the expected letter."""
        read = chosen(final_answer(text), self.choices)
        return Scored(score=float(read == self.expected), read=read or "")


def _choice(stated: Mapping[str, Any]) -> Choice:
    given = stated.get("choices", "ABCD")
    if isinstance(given, list) and 2 <= len(given) <= len(ascii_uppercase) and all(isinstance(x, str) for x in given):
        choices = dict(zip(ascii_uppercase, given, strict=False))
    elif isinstance(given, str) and 2 <= len(set(given)) == len(given) and set(given) <= set(ascii_uppercase):
        choices = dict.fromkeys(given, "")
    else:
        raise ValueError('`choices` is a text of capital letters ("ABCD"), or a list of 2 to 26 texts')
    answer = stated.get("answer")
    if not isinstance(answer, str) or answer.strip().upper() not in choices:
        raise ValueError(f"`answer` is one of the letters {', '.join(choices)}")
    return Choice(expected=answer.strip().upper(), choices=choices)


# ---- regular expression ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Right where the pattern is found in the answer."""

    kind: str = field(default="regex", init=False)
    pattern: Any

    def score(self, text: str) -> Scored:
        """One for an answer in which the pattern is found."""
        found = self.pattern.search(final_answer(text))
        return Scored(score=float(found is not None), read=found.group(0) if found else "")


def _regex(stated: Mapping[str, Any]) -> Matches:
    answer = stated.get("answer")
    if not isinstance(answer, str) or not answer:
        raise ValueError("`answer` is the regular expression that a right answer holds")
    options = re2.Options()
    options.log_errors, options.max_mem = False, PATTERN_BYTES
    try:
        return Matches(pattern=re2.compile(answer, options=options))
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        message = f"`answer` is no pattern of RE2, which knows no look-ahead and no back-references: {said}"
        raise ValueError(message) from None


# ---- JSON schema ----

_FENCE = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conforms:
    """Right where the answer is JSON that the schema allows. Of fenced blocks the last is the answer."""

    kind: str = field(default="json_schema", init=False)
    validator: Any

    def score(self, text: str) -> Scored:
        """One for an answer that the schema allows."""
        answer = final_answer(text)
        fenced = _FENCE.findall(answer)
        read = (fenced[-1] if fenced else answer).strip()
        try:
            value = json.loads(read)
        except (ValueError, RecursionError):
            return Scored(score=0.0, read="")
        return Scored(score=float(not _too_deep(value) and self.validator.is_valid(value)), read=read)


def _too_deep(value: object) -> bool:
    """Whether it has more levels than `MOST_LEVELS`: validators go down by recursion, and models repeat themselves."""
    level = [value]
    for _ in range(MOST_LEVELS):
        within = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [child for children in within for child in children]
        if not level:
            return False
    return True


def _json_schema(stated: Mapping[str, Any]) -> Conforms:
    schema = stated.get("schema")
    if not isinstance(schema, dict):
        raise ValueError("`schema` is a JSON schema")  # noqa: TRY004  what is wrong with an item is a ValueError
    try:
        validator = jsonschema_rs.validator_for(schema, offline=True, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError as error:
        raise ValueError(f"`schema` is no usable JSON schema: {str(error).splitlines()[0]}") from None
    return Conforms(validator=validator)


# ---- all of them ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of scorer: the keys that it takes of an item, and how it is made of them (ValueError: what is wrong)."""

    keys: tuple[str, ...]
    made_of: Callable[[Mapping[str, Any]], Scorer]


KINDS: Mapping[str, Kind] = {
    "exact": Kind(keys=("answer", "normalize"), made_of=_exact),
    "choice": Kind(keys=("answer", "choices"), made_of=_choice),
    "regex": Kind(keys=("answer",), made_of=_regex),
    "json_schema": Kind(keys=("schema",), made_of=_json_schema),
}
