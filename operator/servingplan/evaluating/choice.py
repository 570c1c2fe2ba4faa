r"""Which choice an answer names: ``B``, ``(b) because ...``, ``The answer is **B**.``, or the text of the choice.

In: an answer and the choices. Out: one letter, or none. Where an answer can be read in two ways it names nothing: a
guess would make right what is wrong. Pure, and in time that is linear in the text: no repetition in a pattern is
unbounded where another one follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_EMPHASIS = str.maketrans("", "", '*_`"$')
_OPEN = r"[\s(\[{']{0,4}"
"""What may stand before a letter."""

_ANSWER = r"\b(?:answer|(?:correct|right|best)\s(?:option|choice|solution))(?:\s(?:is|would be))?\s?[:=]?"
_NAMED = r"(?:(?:option|choice|letter)\s)?"


def chosen(text: str, choices: Mapping[str, str]) -> str | None:
    """The letter that the answer names. choices: text by letter; an empty text is unknown.

    The first of these that finds one: nothing but a letter; a letter that is stated to be the answer, the last one
    where there are several; a letter at the beginning, set off from what follows; a choice's whole text; the only
    letter that is named as an option or stands in brackets, before a bracket or in bold.
    """
    letters = "".join(choices)
    plain = _plain(text)
    for rule in (_alone, _stated, _leading):
        if (found := rule(plain, letters)) is not None:
            return found
    return _by_text(text, choices) or _marked(text, letters)


def _plain(text: str) -> str:
    """Without emphasis, and with no more than one space or line end at a place."""
    lines = (" ".join(line.split()) for line in text.translate(_EMPHASIS).splitlines())
    return "\n".join(line for line in lines if line)


def _alone(text: str, letters: str) -> str | None:
    found = re.fullmatch(rf"\W*([{letters}])\W*", text, re.IGNORECASE)
    return found[1].upper() if found else None


def _stated(text: str, letters: str) -> str | None:
    r"""``Answer: B``, ``the correct option is (B)``, ``\boxed{B}``."""
    # A small letter is one only where no word follows, because of "the answer is a matter of".
    letter = rf"(?:([{letters}])(?![\w'])|([{letters.lower()}])(?![\w'])(?!\s\w))"
    stated = rf"(?:(?i:{_ANSWER})|\\boxed|\\text){_OPEN}(?i:{_NAMED}){_OPEN}{letter}"
    found = re.findall(stated, text)
    return "".join(found[-1]).upper() if found else None


def _leading(text: str, letters: str) -> str | None:
    set_off = r"(?:'?[)\].:,]|\n|\s[-\u2013\u2014]\s)"
    found = re.match(rf"{_OPEN}([{letters}{letters.lower()}]){set_off}", text)
    return found[1].upper() if found else None


def _by_text(text: str, choices: Mapping[str, str]) -> str | None:
    """The choice whose text the answer is."""
    words = _words(text)
    found = [letter for letter, known in choices.items() if known and _words(known) == words]
    return found[0] if len(found) == 1 else None


def _words(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text).split()).casefold()


def _marked(text: str, letters: str) -> str | None:
    marks = rf"(?:\b(?i:option|choice)\s|\(|\*\*)([{letters}])(?!\w)|(?<!\w)([{letters}])\)"
    found = {"".join(pair) for pair in re.findall(marks, text)}
    return found.pop() if len(found) == 1 else None
