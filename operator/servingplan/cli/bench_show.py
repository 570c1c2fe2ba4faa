"""``servingplan bench show``: a ramp's result, as table, data, picture, or the capacity of a plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servingplan.api.wire import OBJECT_NAME_PATTERN, PATTERN_WORDS
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
@click.option(
    "--as-benchmark", is_flag=True, help="Print a CapacityBenchmark with this result, for a plan's benchmarkRef."
)
@click.option("--name", metavar="NAME", help="Name of that CapacityBenchmark; the FILE's where left out.")
@output_option(TABLE, JSON, YAML, SVG, PNG)
def command(*, files: tuple[Path, ...], as_capacity: bool, as_benchmark: bool, name: str | None, output: str) -> None:
    """Show what `bench run` found, and what bound the server.

    \b
      servingplan bench show capacity.json -o svg > capacity.svg
      servingplan bench show capacity.json --as-capacity
      servingplan bench show capacity.json --as-benchmark --name l40s > l40s.yaml
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    needs_bench()
    from servingplan.benchmarking.record import document, read  # noqa: PLC0415  loads numpy

    if as_capacity and as_benchmark:
        raise UsageError("--as-capacity and --as-benchmark are two forms of the same: state one of them")
    ramps = [read(file) for file in files]
    if as_capacity or as_benchmark:
        _printed(ramps, files, output, name=_named(name, files[0]) if as_benchmark else None)
    elif len(ramps) > 1:
        raise UsageError("several files are shown with --as-capacity or --as-benchmark; else name one")
    elif output in {SVG, PNG}:
        _picture(ramps[0], output)
    else:
        emit(output, document(ramps[0]), lambda: _view(ramps[0]))


def _view(kept: Kept) -> Any:
    from servingplan.reporting.benchmark import ramp_view  # noqa: PLC0415  JSON needs no tables

    return ramp_view(kept)


def _named(name: str | None, file: Path) -> str:
    """A name that Kubernetes takes."""
    wanted = file.name.partition(".")[0] if name is None else name
    if not re.fullmatch(OBJECT_NAME_PATTERN, wanted):
        words = PATTERN_WORDS[OBJECT_NAME_PATTERN]
        raise UsageError(f"{wanted!r} is no name for a CapacityBenchmark: state {words} with --name")
    return wanted


def _printed(ramps: list[Kept], files: tuple[Path, ...], output: str, *, name: str | None) -> None:
    """The capacity block of a plan; with a name, the CapacityBenchmark that found it."""
    from servingplan.benchmarking.capacity import benchmark_document, capacity_block  # noqa: PLC0415  loads numpy

    if output in {SVG, PNG}:
        raise UsageError(f"a capacity is text, not {output}")
    for kept, file in zip(ramps, files, strict=True):
        if kept.finding.capacity is None:
            raise CheckFailed(f"{file}: no rate was seen to hold, so there is no capacity to state")
    block = {"capacity": capacity_block(ramps)} if name is None else benchmark_document(ramps, name)
    # Not as a table: a terminal would break long lines, which are digests.
    emit(YAML if output == TABLE else output, block, lambda: yaml_text([block]).rstrip())


def _picture(kept: Kept, output: str) -> None:
    with loading_pictures(output):
        from servingplan.reporting.ramp_chart import ramp_chart  # noqa: PLC0415  matplotlib takes a second to load
    write_image(output, lambda: ramp_chart(kept, output), example="capacity.png")
