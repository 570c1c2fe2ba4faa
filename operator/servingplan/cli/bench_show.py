"""``servingplan bench show``: a ramp's result, as table, data, picture, or the capacity of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servingplan.cli.bench_run import needs_bench
from servingplan.cli.output import (
    JSON,
    PNG,
    SVG,
    TABLE,
    YAML,
    emit,
    loading_pictures,
    output_option,
    write_image,
    yaml_text,
)
from servingplan.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from servingplan.benchmarking.record import Kept


@click.command("show")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--as-capacity", is_flag=True, help="Print the capacity block of a plan; several FILEs: by pool size.")
@output_option(TABLE, JSON, YAML, SVG, PNG)
def command(*, files: tuple[Path, ...], as_capacity: bool, output: str) -> None:
    """Show what `bench run` found, and what bound the server.

    \b
      servingplan bench show capacity.json -o svg > capacity.svg
      servingplan bench show capacity.json --as-capacity
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    needs_bench()
    from servingplan.benchmarking.record import document, read  # noqa: PLC0415  loads numpy

    ramps = [read(file) for file in files]
    if as_capacity:
        _capacity(ramps, files, output)
    elif len(ramps) > 1:
        raise UsageError("several files are shown with --as-capacity; else name one")
    elif output in {SVG, PNG}:
        _picture(ramps[0], output)
    else:
        emit(output, document(ramps[0]), lambda: _view(ramps[0]))


def _view(kept: Kept) -> Any:
    from servingplan.reporting.benchmark import ramp_view  # noqa: PLC0415  JSON needs no tables

    return ramp_view(kept)


def _capacity(ramps: list[Kept], files: tuple[Path, ...], output: str) -> None:
    from servingplan.benchmarking.capacity import capacity_block  # noqa: PLC0415  loads numpy

    if output in {SVG, PNG}:
        raise UsageError(f"--as-capacity is text, not {output}")
    for kept, file in zip(ramps, files, strict=True):
        if kept.finding.capacity is None:
            raise CheckFailed(f"{file}: no rate was seen to hold, so there is no capacity to state")
    block = {"capacity": capacity_block(ramps)}
    emit(output, block, lambda: yaml_text([block]).rstrip())


def _picture(kept: Kept, output: str) -> None:
    with loading_pictures(output):
        from servingplan.reporting.ramp_chart import ramp_chart  # noqa: PLC0415  matplotlib takes a second to load
    write_image(output, lambda: ramp_chart(kept, output), example="capacity.png")
