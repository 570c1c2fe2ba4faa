"""A YAML file of one object, read: its fields, or every problem with its place.

In: a path or its text, and the model of its fields. Out: the model, or an InputError.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from servingplan.api.yaml_reader import Unreadable, read_yaml
from servingplan.errors import InputError, Problem
from servingplan.inventory.files import read_bytes, refuse

M = TypeVar("M", bound=BaseModel)


def read_text(path: Path, limit: int) -> str:
    """The text of a YAML file of at most `limit` bytes. Raises InputError."""
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse(path, "NotText", "it is not UTF-8 text: name a YAML file")


def parsed(path: Path, text: str, model: type[M], *, otherwise: tuple[str, str], see: str) -> M:
    """The object in `text`. otherwise: reason and message where there is none. see: where its fields are told.

    Raises InputError with every problem.
    """
    try:
        documents = [value for _, value in read_yaml(text)]
    except Unreadable as error:
        refuse(f"{path}:{error.line}" if error.line else path, "InvalidYAML", f"{error}: correct the file")
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        refuse(path, *otherwise)
    try:
        return model.model_validate(documents[0])
    except ValidationError as error:
        raise InputError(*(_problem(path, each["loc"], each["msg"], see) for each in error.errors())) from None


def _problem(path: Path, location: tuple[int | str, ...], message: str, see: str) -> Problem:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return Problem(
        path=f"{path}: {where.removeprefix('.')}", reason="InvalidField", message=f"{message.lower()}: {see}"
    )
