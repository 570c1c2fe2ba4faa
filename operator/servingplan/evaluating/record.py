"""An evaluation as it is kept: what was asked of whom, and every answer; written as it comes, so that it can go on.

In: a header and answers. Out: a file of JSON lines, the header first, and the state read back from it. An answer that
was not written whole is asked again; one that was written is not, a failure neither: one could ask until it passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from servingplan import kept_files
from servingplan.errors import InputError, Problem

FORMAT = "servingplan.dev/evaluation/v1"
"""First in the file: what it is."""

TEXT_CHARACTERS = 4000
"""Of each answer that are kept. It was scored as a whole, and its digest is that of the whole."""


class Role(StrEnum):
    """Whose answer. `AGAIN`: the baseline's second one."""

    BASELINE = "baseline"
    VARIANT = "variant"
    AGAIN = "again"


class Failure(StrEnum):
    """Why there is no answer. All of them count as wrong."""

    TIMEOUT = "Timeout"
    SERVER_ERROR = "ServerError"
    REFUSED = "Refused"
    EMPTY = "EmptyAnswer"
    NO_SCORE = "NoScore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one server answered to one item. at: when, ISO 8601 in UTC; empty where nobody was asked.

    score: 0 for a failure. read: what was compared. finish: why the answer ended, as the server says it. detail: of a
    failure.
    """

    id: str
    role: Role
    at: str = ""
    score: float
    failure: Failure | None = None
    detail: str = ""
    read: str = ""
    text: str = ""
    digest: str = ""
    finish: str = ""
    tokens: int | None = None

    @property
    def known_score(self) -> float | None:
        """The score, or None where there is no answer."""
        return None if self.failure else self.score

    @property
    def cut_off(self) -> bool:
        """Whether it ended at its limit of tokens."""
        return self.finish == "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that is asked. vllm: its version, None where it does not say."""

    url: str
    model: str
    vllm: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What is asked, of whom. set: its digest. started: ISO 8601 in UTC. chat: prompts go as chat messages."""

    format: str = FORMAT
    started: str
    set: str
    baseline: Served
    variant: Served
    max_tokens: int
    chat: bool
    seed: int


@dataclass(slots=True, kw_only=True)
class Record:
    """A file that is being written, and what is in it. A context manager."""

    path: Path
    header: Header
    answers: dict[tuple[str, Role], Answer] = field(default_factory=dict)
    _file: TextIOWrapper | None = None

    def __enter__(self) -> Self:
        """Write the header, or come back to the end of the last whole line."""
        lines = [_line(_header_adapter(), self.header), *(_line(_adapter(), one) for one in self.answers.values())]
        kept_files.write(self.path, "".join(lines))
        self._file = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()

    def keep(self, answer: Answer) -> None:
        """Write an answer, at once."""
        if self._file is None:
            raise ValueError("the record is not open")
        self._file.write(_line(_adapter(), answer))
        self._file.flush()
        self.answers[answer.id, answer.role] = answer


@cache
def _adapter() -> TypeAdapter[Answer]:
    return TypeAdapter(Answer)


@cache
def _header_adapter() -> TypeAdapter[Header]:
    return TypeAdapter(Header)


def _line(adapter: TypeAdapter[Any], value: object) -> str:
    return adapter.dump_json(value).decode() + "\n"


def read(path: Path) -> Record | None:
    """What a file holds, not yet open; None where it has no whole line yet. Raises InputError."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, 1, f"it cannot be read: {error.strerror or error}") from error
    whole, _, _torn = content.rpartition(b"\n")
    if not whole:
        return None
    first, *rest = whole.decode("utf-8", "replace").split("\n")
    header = _parsed(_header_adapter(), first, path, 1)
    answers = [_parsed(_adapter(), line, path, number) for number, line in enumerate(rest, start=2)]
    return Record(path=path, header=header, answers={(answer.id, answer.role): answer for answer in answers})


def _parsed(adapter: TypeAdapter[Any], line: str, path: Path, number: int) -> Any:
    if number == 1 and FORMAT not in line:
        raise _unusable(path, number, f"it is no evaluation ({FORMAT}): name another file with --out")
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        message = f"{kept_files.damage(error)}; the file is damaged, evaluate again into another"
        raise _unusable(path, number, message) from error


def _unusable(path: Path, line: int, message: str) -> InputError:
    return InputError(Problem(path=f"{path}:{line}", reason="InvalidEvaluation", message=message))


def differs(kept: Header, asked: Header) -> str | None:
    """In what two evaluations differ, in words; None where the kept one can go on."""
    for what, there, here in (
        ("set", kept.set, asked.set),
        ("baseline", kept.baseline, asked.baseline),
        ("variant", kept.variant, asked.variant),
        ("--max-tokens", kept.max_tokens, asked.max_tokens),
        ("--chat", kept.chat, asked.chat),
        ("seed", kept.seed, asked.seed),
    ):
        if there != here:
            return f"its {what} is {_said(there)}, asked is {_said(here)}"
    return None


def _said(value: object) -> str:
    if isinstance(value, Served):
        return f"{value.model} of vLLM {value.vllm or '?'} at {value.url}"
    return str(value)
