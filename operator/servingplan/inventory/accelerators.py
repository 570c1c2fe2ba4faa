"""The table of accelerators: the one that ships with the package, or a user's own.

In: YAML. Out: `Accelerator`s in the table's order, or an InputError with all that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from servingplan.api.yaml_reader import Unreadable, read_yaml
from servingplan.errors import InputError, Problem
from servingplan.hardware.accelerator import GIB, Accelerator, Link
from servingplan.inventory.files import read_bytes, refuse

TABLE = "accelerators.yaml"
MAX_TABLE_BYTES = 1024 * 1024

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Row(BaseModel):
    """One accelerator as written; units as in the table's own comment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[\w.+-]+$")]
    memory: Positive
    bandwidth: Positive
    tflops: Positive
    tflops8bit: Positive | None = None
    link: Literal["NVLink", "PCIe"]
    gpusPerNode: Annotated[int, Field(ge=1, le=1024)]  # noqa: N815  the table's spelling
    price: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    ampere: bool = False


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    accelerators: Annotated[list[_Row], Field(min_length=1)]


def shipped() -> tuple[Accelerator, ...]:
    """The table of the package."""
    text = resources.files("servingplan.inventory").joinpath(TABLE).read_text(encoding="utf-8")
    return _parse(Path(TABLE), text)


def read_accelerators(path: Path) -> tuple[Accelerator, ...]:
    """A table of one's own. Raises InputError with every problem."""
    try:
        text = read_bytes(path, MAX_TABLE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse(path, "NotText", "it is not UTF-8 text: name a YAML file")
    return _parse(path, text)


def _parse(path: Path, text: str) -> tuple[Accelerator, ...]:
    try:
        documents = [value for _, value in read_yaml(text)]
    except Unreadable as error:
        refuse(f"{path}:{error.line}" if error.line else path, "InvalidYAML", f"{error}: correct the file")
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        refuse(path, "NoTable", "it is no table of accelerators: write `accelerators:` and a list")
    try:
        rows = _Table.model_validate(documents[0]).accelerators
    except ValidationError as error:
        raise InputError(*(_problem(path, found) for found in error.errors())) from None
    names = [row.name for row in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        refuse(path, "Duplicate", f"{', '.join(twice)} is there more than once: keep one")
    return tuple(_accelerator(row) for row in rows)


def _problem(path: Path, found: Mapping[str, object]) -> Problem:
    location: Sequence[object] = found["loc"] if isinstance(found["loc"], tuple) else ()
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    message = f"{str(found['msg']).lower()}: see the comment of the table that ships with the package"
    return Problem(path=f"{path}: {where.removeprefix('.')}", reason="InvalidField", message=message)


def _accelerator(row: _Row) -> Accelerator:
    return Accelerator(
        name=row.name,
        memory=round(row.memory * GIB),
        bandwidth=row.bandwidth * 1e9,
        tflops=row.tflops,
        tflops_8bit=row.tflops8bit,
        link=Link(row.link),
        gpus_per_node=row.gpusPerNode,
        price=row.price,
        ampere=row.ampere,
    )
