"""Files of a sizing, read: JSON and text, or one problem that says what is wrong and what to do.

In: paths. Out: parsed JSON, text. Everything that people may have named wrongly is caught here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from servingplan.errors import InputError, Problem

MAX_JSON_BYTES = 256 * 1024 * 1024
"""The header of the largest checkpoints has some tens of MiB; more than this is another kind of file."""


def refuse(path: Path | str, reason: str, message: str) -> NoReturn:
    """Raise the one problem of a file."""
    raise InputError(Problem(path=str(path), reason=reason, message=message))


def read_bytes(path: Path, limit: int = MAX_JSON_BYTES) -> bytes:
    """A file's content. Raises InputError."""
    try:
        if path.stat().st_size > limit:
            refuse(path, "TooLarge", f"it is larger than {limit // 1024 // 1024} MiB: name the file that was meant")
        return path.read_bytes()
    except FileNotFoundError:
        refuse(path, "FileNotFound", "there is no such file: check the path")
    except OSError as error:
        refuse(path, "FileUnreadable", f"it cannot be read: {error.strerror or error}")


def read_object(path: Path) -> Mapping[str, Any]:
    """A JSON object. Raises InputError."""
    return parse_object(path, read_bytes(path))


def parse_object(path: Path, content: bytes, what: str = "it") -> Mapping[str, Any]:
    """A JSON object from bytes of the file. Raises InputError that names `what`, line and column."""
    try:
        value = json.loads(content)
    except UnicodeDecodeError:
        refuse(path, "NotText", f"{what} is not UTF-8 text: name a JSON file")
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        refuse(path, "InvalidJSON", f"{what} is not JSON ({where}: {error.msg}): download the file again")
    except RecursionError:
        refuse(path, "InvalidJSON", f"{what} is nested too deeply to be what it should: download the file again")
    if not isinstance(value, dict):
        refuse(path, "NoObject", f"{what} is JSON, but no object: name the file that was meant")
    return value
