"""Somebody's own evaluation: the scores of every item, from a program or container that asked and scored by itself.

In: a .jsonl file, one item a line: ``{"id": "q1", "baseline": 1, "variant": 0.5, "again": 1}``; a score lies between 0
and 1, null is no answer, `again` is the baseline's second run and may be left out. Out: the answers, or every bad line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servingplan.errors import InputError, Problem
from servingplan.evaluating.items import digest, first_problems, read_lines, unusable
from servingplan.evaluating.record import Answer, Failure, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The scores of every item in the order of the file. digest: of the file."""

    ids: tuple[str, ...]
    answers: Mapping[tuple[str, Role], Answer]
    digest: str


def read_results(path: Path) -> Results:
    """The results in a file. Raises InputError with everything that is wrong, at most `MOST_PROBLEMS` times."""
    content, lines = read_lines(path, what="results")
    problems: list[Problem] = []
    answers: dict[tuple[str, Role], Answer] = {}
    ids: dict[str, None] = {}
    for place, line in lines:
        wrong = list(_wrong(line, ids))
        problems += [Problem(path=f"{path}:{place}", reason="InvalidItem", message=one) for one in wrong]
        if not wrong:
            ids[line["id"]] = None
            answers |= {(line["id"], role): _answer(line, role) for role in Role if role.value in line}
    if problems:
        raise InputError(*first_problems(problems))
    if not ids:
        raise unusable(path, "results", 'it holds no item: one {"id": "q1", "baseline": 1, "variant": 0.5} a line')
    return Results(ids=tuple(ids), answers=answers, digest=digest(content))


def _wrong(line: Mapping[str, Any], known: Mapping[str, None]) -> Iterator[str]:
    named = line.get("id")
    if not isinstance(named, str) or not 0 < len(named) <= 200:
        yield "`id` is a text of at most 200 characters"
    elif named in known:
        yield f"`id` {named!r} is that of another item: each has its own"
    for role in Role:
        if role.value not in line:
            if role is not Role.AGAIN:
                yield f"it has no `{role.value}`: a score between 0 and 1, or null where there was no answer"
        elif not _is_score(line[role.value]):
            yield f"`{role.value}` is a score between 0 and 1, or null where there was no answer"
    for key in sorted(line.keys() - {"id", *(role.value for role in Role)}):
        yield f"`{key[:60]}` is not known here; known are id, {', '.join(role.value for role in Role)}"


def _is_score(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= 1


def _answer(line: Mapping[str, Any], role: Role) -> Answer:
    score = line[role.value]
    failure = Failure.NO_SCORE if score is None else None
    return Answer(id=line["id"], role=role, score=float(score or 0), failure=failure)
