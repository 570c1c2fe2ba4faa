"""The table of accelerators: the one that ships with the package, or a user's own.

In: YAML. Out: `Accelerator`s in the table's order, or an InputError with all that is wrong.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from servingplan.hardware.accelerator import GIB, Accelerator, Link
from servingplan.inventory.files import refuse
from servingplan.inventory.yaml_files import parsed, read_text

TABLE = "accelerators.yaml"
MAX_TABLE_BYTES = 1024 * 1024

_NO_TABLE = "NoTable", "it is no table of accelerators: write `accelerators:` and a list"
_SEE = "see the comment of the table that ships with the package"

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
    return _parse(path, read_text(path, MAX_TABLE_BYTES))


def _parse(path: Path, text: str) -> tuple[Accelerator, ...]:
    rows = parsed(path, text, _Table, otherwise=_NO_TABLE, see=_SEE).accelerators
    names = [row.name for row in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        refuse(path, "Duplicate", f"{', '.join(twice)} is there more than once: keep one")
    return tuple(_accelerator(row) for row in rows)


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
