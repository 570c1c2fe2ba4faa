"""``servingplan simulate``: a plan, and what else one might run, against a trace. Needs no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from servingplan.cli.extras import needed
from servingplan.cli.files import one_plan_from
from servingplan.cli.output import HTML, JSON, MARKDOWN, TABLE, YAML, emit, loading_pictures, output_option
from servingplan.cli.profile_options import log_flags, log_options
from servingplan.errors import CheckFailed, UsageError
from servingplan.planning.units import exact, parse_percent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from servingplan.reporting.simulation import Simulated


@click.command("simulate")
@click.argument("file")
@click.option(
    "--trace", "traces", multiple=True, metavar="F", help="A request log, or rates: what came. Several add up."
)
@click.option("--profile", is_flag=True, help="Play the demand that the plan states, instead of a trace.")
@click.option("--name", help="The plan of that name, where FILE holds several.")
@click.option("--scenario", "scenarios", multiple=True, metavar="S", help="What goes wrong; several times, or all.")
@click.option(
    "--from", "first", metavar="T", help="Start, in the plan's zone.  [default: the trace's; --profile: today]"
)
@click.option("--days", type=click.IntRange(1, 400), help="So many days.  [default: all of a trace; --profile: 14]")
@click.option("--start-time", metavar="SPAN", help="How long a replica takes to start.  [default: leadTime.declared]")
@click.option("--node-replicas", type=click.IntRange(1), default=1, show_default=True, help="On the node that is lost.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the requests that are drawn.")
@click.option(
    "--dispersion",
    type=click.FloatRange(min=0, min_open=True),
    default=3.0,
    show_default=True,
    help="Variance over mean of drawn requests in half a minute.",
)
@click.option("--engine-profile", metavar="F", help="Limits and step costs of an engine: serve token by token too.")
@click.option("--gpu-hour", metavar="PRICE", type=click.FloatRange(min=0), help="Of one GPU-hour: show costs too.")
@click.option("--require", metavar="PERCENT", help="End with 4 where the plan attains less: 99%.")
@log_options
@output_option(TABLE, JSON, YAML, HTML, MARKDOWN)
def command(
    *, file: str, name: str | None, require: str | None, engine_profile: str | None, output: str, **flags: Any
) -> None:
    """Play the plan in FILE against a trace, beside what else one might run: attainment, GPU-hours, missed requests.

    A trace is any log that profile from-log reads, packed or not, on its own dates. Scenarios are node-lost,
    prometheus-gone, slow-rises, demand-up, burst, or all.

    \b
      servingplan simulate plan.yaml --trace access.log.gz
      servingplan simulate plan.yaml --trace rates.csv --column rate=c3_rps --start 2025-04-01 --scenario all
      servingplan simulate plan.yaml --profile --require 99% -o html > simulation.html
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    with needed("simulate", extra="profile"):
        from servingplan.cli.simulate_input import Wanted, simulated  # noqa: PLC0415  loads numpy
        from servingplan.cli.simulate_tokens import engine_of, token_by_token  # noqa: PLC0415  loads numpy
    if output == HTML:
        with loading_pictures(output):
            import matplotlib  # noqa: F401, PLC0415  before minutes of simulation, not after them

    least = None if require is None else _share(require)
    plan = one_plan_from(file, name, option="--name")
    engine = None if engine_profile is None else engine_of(engine_profile, plan)
    gpu_hour = flags.pop("gpu_hour")
    log = log_flags(flags)
    found = simulated(plan, Wanted(log=log, gpu_hour=None if gpu_hour is None else exact(gpu_hour), **flags))
    if engine is not None:
        found = token_by_token(found, engine, seed=flags["seed"])
    _print(found, output)
    attained = found.comparison.plan.recorded.attainment
    if least is not None and (attained is None or attained < least):
        from servingplan.reporting.simulation_rows import share_words  # noqa: PLC0415  loads numpy

        raise CheckFailed(f"{plan.key} attains {share_words(attained)}, and {require} is required")


def _print(found: Simulated, output: str) -> None:
    from servingplan.reporting.simulation import simulation_document  # noqa: PLC0415  loads numpy

    if output == HTML:
        from servingplan.reporting.simulation_html import page  # noqa: PLC0415  matplotlib takes a second to load

        click.echo(page(found))
    elif output == MARKDOWN:
        from servingplan.reporting.simulation_markdown import simulation_markdown  # noqa: PLC0415  as the others

        click.echo(simulation_markdown(found))
    else:
        emit(output, simulation_document(found), lambda: _view(found))


def _view(found: Simulated) -> RenderableType:
    from servingplan.reporting.simulation_tables import simulation_view  # noqa: PLC0415  JSON needs no tables

    return simulation_view(found)


def _share(text: str) -> float:
    try:
        share = float(parse_percent(text))
    except ValueError as error:
        raise UsageError(f"--require: {error}") from None
    if share > 1:
        raise UsageError(f"--require {text}: nobody attains more than 100%")
    return share
