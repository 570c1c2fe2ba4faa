"""Files in which a result is kept: written whole or not at all, and read back or refused in one sentence.

In: a text to keep, or a kept text and what it should hold. Out: the file, or the value. Below everything that keeps
results; knows none of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from servingplan.errors import InputError, Problem

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A kind of file. noun: what it holds. format: what it says it is. command: writes it. verb: of doing it again."""

    noun: str
    format: str
    command: str
    verb: str

    def unusable(self, file: str, message: str) -> InputError:
        """The error for a file that is not of this form. file: its name."""
        return InputError(Problem(path=file, reason=f"Invalid{self.noun.title()}", message=message))

    def no_json(self, file: str, error: ValueError) -> InputError:
        """The same, for a file that is not even JSON."""
        return self.unusable(file, f"it is no JSON ({error}): name a file that `{self.command}` wrote")


def write(path: Path, text: str) -> None:
    """The file, whole or not at all: a crash leaves the one before."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def read(text: str, file: str, form: Form, adapter: TypeAdapter[Value]) -> Value:
    """The value that a text keeps as JSON. file: its name, for messages. Raises InputError."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise form.no_json(file, error) from error
    if not isinstance(found, Mapping) or found.get("format") != form.format:
        message = f"it is no {form.noun} ({form.format}): name a file that `{form.command}` wrote"
        raise form.unusable(file, message)
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise form.unusable(file, f"{damage(error)}; the file is damaged, {form.verb} again") from error


def damage(error: ValidationError) -> str:
    """Where the first thing is that a value cannot be made of, and what is wrong with it."""
    first = error.errors()[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
