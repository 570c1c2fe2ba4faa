"""``servingplan bench throughput``: tokens/s without an objective, and how long a batch takes on the reserve."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from servingplan.cli.bench_input import a_plan
from servingplan.cli.bench_run import needs_bench
from servingplan.cli.output import emit, output_option, talk
from servingplan.errors import UsageError


@click.command("throughput")
@click.option("--result", type=click.Path(path_type=Path), help="What `vllm bench throughput --output-json` wrote.")
@click.option("--model", help="Run `vllm bench throughput` on this model, here and now.")
@click.option("--vllm", default="vllm", show_default=True, help="The program that is run.")
@click.option("--input-len", type=click.IntRange(1), default=1024, show_default=True, help="Prompt tokens a request.")
@click.option("--output-len", type=click.IntRange(1), default=128, show_default=True, help="Output tokens a request.")
@click.option("--num-prompts", type=click.IntRange(1), default=1000, show_default=True, help="Requests of the run.")
@click.option("--requests", "batch", type=click.IntRange(1), help="Requests of the nightly batch.")
@click.option("--plan", "plan_file", metavar="FILE", help="The plan on whose reserve the batch runs.")
@click.option("--name", help="The plan of that name, where FILE holds several.")
@click.argument("arguments", nargs=-1, metavar="[-- ENGINE ARGUMENTS]")
@output_option()
def command(
    *,
    result: Path | None,
    model: str | None,
    batch: int | None,
    plan_file: str | None,
    name: str | None,
    arguments: tuple[str, ...],
    output: str,
    **run: Any,
) -> None:
    """Show tokens/s without an objective, and how long a batch of --requests takes on the reserve of a plan.

    \b
      servingplan bench throughput --result throughput.json --requests 50000 --plan plan.yaml
      servingplan bench throughput --model /models/qwen3-14b-fp8 --requests 50000 -- --max-model-len 8192
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    if (result is None) == (model is None):
        raise UsageError("give exactly one of --result, a file that is there, and --model, to run it now")
    needs_bench()
    from servingplan.benchmarking.throughput import batch_on_reserve, measure, read_throughput  # noqa: PLC0415  numpy

    plan = a_plan(plan_file, name)
    if result is not None:
        found = read_throughput(result)
    else:
        talk("Running vllm bench throughput; minutes")
        found = asyncio.run(measure(str(model), arguments=arguments, **run))
    times = None if batch is None else batch_on_reserve(found, batch, plan)
    document = {
        "requestsPerSecond": found.requests_per_second,
        "tokensPerSecond": found.tokens_per_second,
        **({} if times is None else {"batch": times.document}),
    }
    emit(output, document, lambda: "\n".join(found.lines + (() if times is None else times.lines)))
