"""``bench run --confirm``: the change that would decide what bound the server, made once its capacity is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from servingplan.cli.output import talk, with_options
from servingplan.errors import UsageError

if TYPE_CHECKING:
    from servingplan.benchmarking.command import Target
    from servingplan.benchmarking.confirming import Trial
    from servingplan.benchmarking.measuring import Bench, Workload
    from servingplan.benchmarking.record import Kept
    from servingplan.clients.openai_server import OpenAIServer


confirm_options = with_options(
    click.option("--confirm", is_flag=True, help="Then try the change that would decide what bound the server."),
    click.option("--confirm-url", metavar="URL", help="Confirm on this server, on which the change was made."),
)
"""Options that ask for it."""


async def confirmed(
    kept: Kept, out: Path, server: OpenAIServer, target: Target, workload: Workload, *, url: str | None
) -> Kept:
    """The ramp with an experiment, where one can be made; else what is missing is told.

    url: a server on which the change was made; without one, what the client alone can change is tried.
    """
    from servingplan.benchmarking.confirming import by_client, by_engine, carry_out  # noqa: PLC0415  loads numpy
    from servingplan.benchmarking.ramp import look  # noqa: PLC0415  as above
    from servingplan.benchmarking.search import Outcome  # noqa: PLC0415  as above
    from servingplan.reporting.benchmark import run_words  # noqa: PLC0415  as above

    if kept.finding.outcome is not Outcome.FOUND:
        return kept
    async with server if url is None else server.another(url) as at:
        try:
            if url is None:
                trial = by_client(kept)
            else:
                trial = by_engine(kept, await look(at, model=target.model, chat=target.chat, prompts=workload.prompts))
        except UsageError as error:
            talk(f"Not confirmed: {error}")
            return kept
        if kept.experiment is not None and kept.experiment.repeats(trial.experiment):
            return kept
        talk(f"Confirming {trial.experiment.bound.value}: {trial.experiment.what}, at {trial.rate:g} requests/s")
        bench = await _bench(kept, trial, at, workload, replace(target, url=at.url))
        return await carry_out(kept, trial, bench.run, out, lambda run: talk(f"  {run_words(run)}"))


async def _bench(kept: Kept, trial: Trial, server: OpenAIServer, workload: Workload, target: Target) -> Bench:
    from servingplan.benchmarking.changes import Variation  # noqa: PLC0415  loads numpy
    from servingplan.benchmarking.measuring import Bench  # noqa: PLC0415  as above
    from servingplan.benchmarking.prompts import halved  # noqa: PLC0415  as above
    from servingplan.benchmarking.ramp import counted  # noqa: PLC0415  as above

    if trial.experiment.variation is Variation.HALF_LENGTHS:
        workload = replace(workload, prompts=await counted(server, target.model, halved(workload.prompts)))
    workload = replace(workload, max_concurrency=trial.experiment.concurrency)
    alone = kept.asked.replicas == 1
    return Bench(server, target, workload, kept.effort, name=f"{kept.name}-confirm", alone=alone)
