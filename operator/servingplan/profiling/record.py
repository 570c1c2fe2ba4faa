"""A profile as it is kept: one JSON file, and the profile read back from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from pydantic import TypeAdapter, ValidationError

from servingplan.errors import InputError, Problem
from servingplan.profiling.profile import FORMAT, Profile
from servingplan.profiling.reading import STANDARD_INPUT


@cache
def _adapter() -> TypeAdapter[Profile]:
    return TypeAdapter(Profile)


def document(profile: Profile) -> dict[str, Any]:
    """The profile as plain JSON."""
    found: dict[str, Any] = _adapter().dump_python(profile, mode="json")
    return found


def is_profile(text: str) -> bool:
    """Whether a file's beginning is that of a kept profile."""
    return text.lstrip().startswith("{") and f'"{FORMAT}"' in text


def read(text: str, file: str) -> Profile:
    """The profile in a text. file: its name, for messages. Raises InputError."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _unusable(
            file, f"it is no JSON ({error}): name a file that `servingplan profile ... -o json` wrote"
        ) from error
    if not isinstance(found, Mapping) or found.get("format") != FORMAT:
        raise _unusable(file, f"it is no profile ({FORMAT}): name a file that `servingplan profile ... -o json` wrote")
    try:
        return _adapter().validate_json(text)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise _unusable(file, f"{where}: {error.errors()[0]['msg']}; the file is damaged, profile again") from error


def read_file(path: str, *, standard_input: TextIO) -> Profile:
    """The profile in a file, or on standard input for ``-``. Raises InputError."""
    if path == STANDARD_INPUT:
        return read(standard_input.read(), "standard input")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return read(text, path)


def _unusable(file: str, message: str) -> InputError:
    return InputError(Problem(path=file, reason="InvalidProfile", message=message))
