"""``servingplan demo``: a working day in a few minutes, on a real control plane.

What is told goes to standard error, the summary to standard output. Nothing is left behind, whatever ends it.
"""

from __future__ import annotations

import sys
import textwrap
from datetime import timedelta
from typing import Any

import click

from servingplan.cli.output import emit, output_option, talk
from servingplan.cli.stopping import INTERRUPTED
from servingplan.demo.story import MOST_FACTOR, USUAL_FACTOR
from servingplan.errors import CheckFailed, UsageError

OWN_NAMESPACE = "servingplan-demo"
WIDTH = 78
"""Sentences are broken so that they fit the narrowest terminal that is usual."""


class _StartTime(click.ParamType[Any]):
    """``15m``, or ``6m..11m``: drawn between the two."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        from servingplan.planning.units import parse_duration  # noqa: PLC0415  only where it is given

        least, _, most = str(value).partition("..")
        try:
            spans = parse_duration(least), parse_duration(most or least)
        except ValueError:
            self.fail(f"{value!r} is no span of time; write 15m, or 6m..11m", param, ctx)
        if spans[0] > spans[1]:
            self.fail(f"{value!r}: the first span must not be longer than the second", param, ctx)
        return spans


@click.command("demo")
@click.option("--plan", "file", metavar="FILE", help="A plan of your own instead of the worked example.")
@click.option("--context", help="Play on the cluster of this kubeconfig context instead of one on this machine.")
@click.option("-n", "--namespace", help=f"Namespace to make and remove; with --context {OWN_NAMESPACE}.")
@click.option("--yes", is_flag=True, help="Do not ask before a cluster of yours is used.")
@click.option(
    "--factor",
    type=click.FloatRange(1, MOST_FACTOR),
    help=f"How much faster the clock runs; {USUAL_FACTOR} (a minute each second) unless the day takes too long then.",
)
@click.option(
    "--start-time", type=_StartTime(), help="How long replicas take to start, as 15m or 6m..11m; default: in the lead."
)
@click.option("--keep", is_flag=True, help="Keep the cluster and the operator until Ctrl-C.")
@output_option()
def command(
    *,
    file: str | None,
    context: str | None,
    namespace: str | None,
    yes: bool,
    factor: float | None,
    start_time: tuple[timedelta, timedelta] | None,
    keep: bool,
    output: str,
) -> None:
    """Watch a working day in about three minutes: ready before the ramp, and the fall at night.

    Everything is real but the pods: Kubernetes' own programs are started on this machine (the first time they are
    built, which takes minutes), the operator runs against them on a faster clock, and nothing is left behind.

    \b
      servingplan demo
      servingplan demo --start-time 15m        starts that outlast the lead
      servingplan demo --keep                  and play with the cluster
      servingplan demo -o json > day.json      without the live view
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    if context is not None and start_time is not None:
        raise UsageError("--start-time is for the demo's own cluster; with --context replicas start as fast as they do")
    options = {
        "file": file,
        "context": context,
        "namespace": namespace or (OWN_NAMESPACE if context is not None else None),
        "factor": factor,
        "starts": start_time,
    }
    try:
        on_time = _play(options, output, keep=keep, yes=yes)
    except KeyboardInterrupt:
        talk("The demo was interrupted; everything that it had made is removed.")
        sys.exit(INTERRUPTED)
    if not on_time:
        raise CheckFailed("the replicas were not ready before the ramp: see above what held them up")


def _play(options: dict[str, Any], output: str, *, keep: bool, yes: bool) -> bool:
    played, options_of, in_words = _loaded()
    with played(options_of(**options), keep=keep, say=_say, allow=lambda what: _allow(what, yes=yes)) as day:
        talk("")
        emit(output, day.document, lambda: _lines(in_words(day.record, day.document)))
        talk("\nTry next:")
        for line, what in day.steps:
            talk(f"  {line}\n      {what}")
        if keep:
            _keep(day)
        talk("\nRemoving what the demo made ...")
    return bool(day.record.on_time)


def _say(text: str) -> None:
    talk(textwrap.fill(text, WIDTH))


def _keep(day: Any) -> None:
    talk("\nThe cluster and the operator go on, on the demo clock, until Ctrl-C. What happens:")
    try:
        day.go_on()
    except KeyboardInterrupt:
        talk("")


def _loaded() -> tuple[Any, Any, Any]:
    try:
        from servingplan.demo.run import Options, played  # noqa: PLC0415  the operator's packages load with it
        from servingplan.demo.summary import in_words  # noqa: PLC0415  as above
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("servingplan"):
            raise
        raise UsageError(f"{error.name} is missing: install servingplan[operator]") from error
    return played, Options, in_words


def _allow(what: str, *, yes: bool) -> None:
    _say(what)
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here: add --yes where the demo may do that")
    if not click.confirm("May it?", default=False, err=True):
        raise UsageError("nothing was changed")


def _lines(lines: list[str]) -> Any:
    from rich.text import Text  # noqa: PLC0415  JSON needs no tables

    return Text("\n".join(lines), overflow="ignore", no_wrap=True)
