"""An evaluation set: questions, and what makes an answer right.

In: a .jsonl file, one item a line: ``{"prompt": "...", "answer": "Paris"}``, or ``messages`` in the place of `prompt`.
A first line ``{"defaults": {...}}`` holds what all items have in common. Out: the set, or every line that is not one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servingplan.errors import InputError, Problem
from servingplan.evaluating.scorers import KINDS, Kind, Scorer

MOST_PROBLEMS = 100
"""So many are told; a file of another kind would have as many as lines."""

DEFAULT_SCORER = "exact"
_ASKED = ("id", "prompt", "messages", "max_tokens", "scorer")
_DEFAULTS = ("max_tokens", "scorer")
"""What `defaults` may hold, beside the keys of its scorer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question. messages: of a chat; None: `prompt` is asked. max_tokens: of the answer; None: not stated."""

    id: str
    prompt: str
    messages: tuple[Mapping[str, Any], ...] | None
    max_tokens: int | None
    scorer: Scorer

    @property
    def words(self) -> str:
        """What was asked, for people."""
        if self.messages is None:
            return self.prompt
        return "\n".join(f"{message['role']}: {_content(message)}" for message in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSet:
    """All items in the order of the file. digest: of the file."""

    items: tuple[Item, ...]
    digest: str


def read_set(path: Path) -> EvaluationSet:
    """The set in a file. Raises InputError with everything that is wrong, at most `MOST_PROBLEMS` times."""
    content, lines = read_lines(path, what="set")
    problems: list[Problem] = []
    items: dict[str, Item] = {}
    defaults: Mapping[str, Any] = {}
    for number, (place, line) in enumerate(lines):
        if number == 0 and "defaults" in line:
            defaults, wrong = _read_defaults(line)
        else:
            item, wrong = _read_item(line, defaults, place=place, known=items)
            items |= {} if item is None else {item.id: item}
        problems += [Problem(path=f"{path}:{place}", reason="InvalidItem", message=one) for one in wrong]
    if problems:
        raise InputError(*first_problems(problems))
    if not items:
        raise unusable(path, "set", 'it holds no item: one {"prompt": "...", "answer": "..."} a line')
    return EvaluationSet(items=tuple(items.values()), digest=digest(content))


def digest(content: bytes) -> str:
    """The SHA-256 of what is in a file."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def read_lines(path: Path, *, what: str) -> tuple[bytes, tuple[tuple[int, Mapping[str, Any]], ...]]:
    """A file's content, and the object of each line with its number from 1. Raises InputError with every bad line."""
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise unusable(path, what, f"it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise unusable(path, what, "it is not UTF-8 text: name a .jsonl file") from error
    found, problems = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            json.dumps(value, ensure_ascii=False).encode()  # half a character, as "\\ud800", cannot be written down
        except (ValueError, RecursionError) as error:
            problems.append((number, f"it is no JSON ({error}): one object a line"))
            continue
        if isinstance(value, dict):
            found.append((number, value))
        else:
            problems.append((number, 'it is no object: expected {"...": ...}'))
    if problems:
        told = [Problem(path=f"{path}:{number}", reason="InvalidItem", message=message) for number, message in problems]
        raise InputError(*first_problems(told))
    return content, tuple(found)


def first_problems(problems: list[Problem]) -> list[Problem]:
    """At most `MOST_PROBLEMS`, and how many more there are."""
    if len(problems) <= MOST_PROBLEMS:
        return problems
    left = len(problems) - MOST_PROBLEMS
    path = problems[MOST_PROBLEMS].path
    return [
        *problems[:MOST_PROBLEMS],
        Problem(path=path, reason="InvalidItem", message=f"{left} more problems from here on"),
    ]


def unusable(path: Path, what: str, message: str) -> InputError:
    """The error for a file that is no set, or no results."""
    return InputError(Problem(path=str(path), reason=f"Invalid{what.title()}", message=message))


def _read_defaults(line: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    stated = line["defaults"]
    if not isinstance(stated, dict):
        return {}, ['`defaults` is an object: {"defaults": {"scorer": "choice"}}']
    wrong = list(_unknown({"defaults": stated}, line)) + list(_wrong_common(stated))
    kind = KINDS.get(str(stated.get("scorer", DEFAULT_SCORER)))
    if kind is not None:
        wrong += _unknown(dict.fromkeys((*_DEFAULTS, *kind.keys)), stated)
    return ({}, wrong) if wrong else (stated, wrong)


def _read_item(
    line: Mapping[str, Any], defaults: Mapping[str, Any], *, place: int, known: Mapping[str, Item]
) -> tuple[Item | None, list[str]]:
    """The item of a line; or none, and all that is wrong with it."""
    if line.get("scorer", defaults.get("scorer")) != defaults.get("scorer"):
        # The keys of another scorer are not this one's.
        defaults = {key: value for key, value in defaults.items() if key == "max_tokens"}
    stated = {**defaults, **line}
    name = stated.get("scorer", DEFAULT_SCORER)
    kind = KINDS.get(name) if isinstance(name, str) else None
    wrong = [*_wrong_question(stated), *_wrong_common(stated)]
    scorer, complaint = _scorer(stated, kind)
    if kind is not None:
        wrong += [*_unknown(dict.fromkeys((*_ASKED, *kind.keys)), line), *complaint]
    named = stated.get("id", str(place))
    if not isinstance(named, str) or not 0 < len(named) <= 200:
        wrong.append("`id` is a text of at most 200 characters")
    elif named in known:
        wrong.append(f"`id` {named!r} is that of another item: each has its own")
    if wrong or scorer is None:
        return None, wrong
    messages = stated.get("messages")
    item = Item(
        id=named,
        prompt=stated.get("prompt", ""),
        messages=None if messages is None else tuple(messages),
        max_tokens=stated.get("max_tokens"),
        scorer=scorer,
    )
    return item, wrong


def _scorer(stated: Mapping[str, Any], kind: Kind | None) -> tuple[Scorer | None, list[str]]:
    if kind is None:
        return None, []
    try:
        return kind.made_of(stated), []
    except ValueError as error:
        return None, [str(error)]


def _wrong_question(stated: Mapping[str, Any]) -> Iterator[str]:
    prompt, messages = stated.get("prompt"), stated.get("messages")
    if (prompt is None) == (messages is None):
        yield "it has exactly one of `prompt`, a text, and `messages`, a list of chat messages"
    elif prompt is not None and (not isinstance(prompt, str) or not prompt):
        yield "`prompt` is a text"
    elif messages is not None and not _are_messages(messages):
        yield '`messages` is a list of {"role": "user", "content": "..."}'


def _are_messages(messages: object) -> bool:
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(one, dict) and isinstance(one.get("role"), str) and "content" in one for one in messages)
    )


def _wrong_common(stated: Mapping[str, Any]) -> Iterator[str]:
    scorer, tokens = stated.get("scorer", DEFAULT_SCORER), stated.get("max_tokens", 1)
    if not isinstance(scorer, str) or scorer not in KINDS:
        yield f"`scorer` is one of {', '.join(KINDS)}"
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        yield "`max_tokens` is a count of tokens, at least 1"


def _unknown(known: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(stated.keys() - known.keys()):
        yield f"`{key[:60]}` is not known here; known are {', '.join(known)}"


def _content(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
