"""A profile as it is kept: one JSON file, and the profile read back from it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TextIO

from pydantic import TypeAdapter

from servingplan import kept_files
from servingplan.profiling.profile import FORMAT, Profile
from servingplan.profiling.reading import STANDARD_INPUT

_FORM = kept_files.Form(noun="profile", format=FORMAT, command="servingplan profile ... -o json", verb="profile")


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
    return kept_files.read(text, file, _FORM, _adapter())


def read_file(path: str, *, standard_input: TextIO) -> Profile:
    """The profile in a file, or on standard input for ``-``. Raises InputError."""
    if path == STANDARD_INPUT:
        return read(standard_input.read(), "standard input")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _FORM.unusable(path, f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return read(text, path)
