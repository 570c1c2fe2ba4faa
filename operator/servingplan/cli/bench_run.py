"""``servingplan bench run``: the goodput ramp over ``vllm bench serve`` against a running server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servingplan.benchmarking.effort import EFFORTS, STANDARD
from servingplan.cli.bench_confirm import confirm_options, confirmed
from servingplan.cli.bench_input import a_plan, burstiness, objective_options, objectives
from servingplan.cli.extras import needed
from servingplan.cli.instants import now
from servingplan.cli.output import emit, output_option, talk, write_report
from servingplan.cli.stopping import finished
from servingplan.errors import CheckFailed, UsageError
from servingplan.planning.plan import Objectives, Plan
from servingplan.planning.units import parse_duration

if TYPE_CHECKING:
    from servingplan.benchmarking.level import Level
    from servingplan.benchmarking.ramp import Progress
    from servingplan.benchmarking.record import Asked, Fingerprint, Kept, Unloaded
    from servingplan.benchmarking.run import Run
    from servingplan.benchmarking.search import Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the person asks for, as typed."""

    url: str
    prompts: Path
    out: Path
    model: str | None
    tokenizer: str | None
    vllm: str
    chat: bool
    effort: str
    start: float | None
    longest: str | None
    cv: float
    prefix_hit_share: float
    replicas: int
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    confirm: bool
    confirm_url: str | None


@click.command("run")
@click.option("--url", required=True, help="The server, as in http://localhost:8000.")
@click.option(
    "--prompts", required=True, type=click.Path(path_type=Path), help="Your prompts: prompt and output_tokens."
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The result; an unfinished one goes on.")
@objective_options
@click.option("--model", help="The model, where the server has several.")
@click.option("--tokenizer", help="Name or path of the tokenizer, where the model's name does not lead to it.")
@click.option("--vllm", default="vllm", show_default=True, help="The program whose `bench serve` sends the requests.")
@click.option("--chat", is_flag=True, help="Send prompts as chat messages.")
@click.option("--effort", type=click.Choice(list(EFFORTS)), default=STANDARD.name, show_default=True)
@click.option("--start", type=click.FloatRange(0, min_open=True), help="First rate, requests/s.")
@click.option("--longest", metavar="SPAN", help="All runs together, as in 2h; default: 4h, quick 30m.")
@click.option("--cv", type=click.FloatRange(0.1), default=1.0, show_default=True, help="Of times between arrivals.")
@click.option(
    "--prefix-hit-share", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="Of the workload."
)
@click.option("--replicas", type=click.IntRange(1), default=1, show_default=True, help="Of the pool behind the URL.")
@click.option("--max-num-seqs", type=click.IntRange(1), help="Of the engine, where it does not say.")
@click.option("--max-num-batched-tokens", type=click.IntRange(1), help="Of the engine, where it does not say.")
@confirm_options
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the result there too, in 4,096 bytes, and exit 0.",
)
@output_option()
def command(
    *,
    plan_file: str | None,
    name: str | None,
    ttft: str | None,
    tpot: str | None,
    e2el: str | None,
    goodput_share: float | None,
    report: Path | None,
    output: str,
    **options: Any,
) -> None:
    """Find the largest rate that the server at URL serves at the objectives.

    Prompts are JSON lines: {"prompt": "...", "output_tokens": 180}. Every run is kept in --out: the same command goes
    on after Ctrl-C. The key of the server is taken from OPENAI_API_KEY.

    \b
      servingplan bench run --url http://localhost:8000 --plan plan.yaml --prompts prompts.jsonl --out capacity.json
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    plan = a_plan(plan_file, name)
    limits = objectives(plan, goodput_share=goodput_share, ttft=ttft, tpot=tpot, e2el=e2el)
    request = Request(**options)
    needs_bench()
    kept = finished(_ramp(request, plan, limits), lambda: _kept_words(request.out))
    from servingplan.benchmarking.record import document  # noqa: PLC0415  loads numpy
    from servingplan.benchmarking.report import report as report_of  # noqa: PLC0415  as above
    from servingplan.benchmarking.search import Outcome  # noqa: PLC0415  as above
    from servingplan.reporting.benchmark import ramp_view  # noqa: PLC0415  as above

    emit(output, document(kept), lambda: ramp_view(kept))
    if report is not None:
        # That the ramp ended is in the exit code, how is in the report.
        write_report(report, report_of(kept))
        return
    finding = kept.finding
    if finding.outcome is not Outcome.FOUND:
        raise CheckFailed(f"no capacity was found: {finding.outcome.value}. {finding.message}".strip())


def needs_bench() -> None:
    """Raises UsageError where the packages of ``servingplan[bench]`` are missing."""
    with needed("bench", extra="bench"):
        import aiohttp  # noqa: F401, PLC0415  asked for
        import numpy  # noqa: F401, PLC0415  as above
        import prometheus_client  # noqa: F401, PLC0415  as above


def _kept_words(path: Path) -> str:
    from servingplan.benchmarking.record import read  # noqa: PLC0415  loads numpy

    return f"Kept in {path}: {_runs(read(path)) if path.exists() else '0 runs'}"


def _runs(kept: Kept) -> str:
    return f"{len(kept.runs)} run{'' if len(kept.runs) == 1 else 's'}"


async def _ramp(request: Request, plan: Plan | None, limits: Objectives) -> Kept:
    from servingplan.benchmarking import ramp  # noqa: PLC0415  loads numpy
    from servingplan.benchmarking.command import Target  # noqa: PLC0415  as above
    from servingplan.benchmarking.measuring import Bench, Workload  # noqa: PLC0415  as above
    from servingplan.benchmarking.prompts import read_prompts  # noqa: PLC0415  as above
    from servingplan.benchmarking.record import read  # noqa: PLC0415  as above
    from servingplan.clients.openai_server import KEY_VARIABLE, OpenAIServer  # noqa: PLC0415  as above

    prompts = read_prompts(request.prompts)
    async with OpenAIServer(request.url, key=os.environ.get(KEY_VARIABLE), chat=request.chat) as server:
        talk(f"Looking at {server.url}")
        fingerprint = await ramp.look(
            server, model=request.model, chat=request.chat, prompts=prompts, stated=_stated(request, plan)
        )
        workload = Workload(
            prompts=await ramp.counted(server, fingerprint.model, prompts),
            objectives=limits,
            burstiness=burstiness(request.cv),
            prefix_hit_share=request.prefix_hit_share,
        )
        target = Target(
            vllm=request.vllm,
            url=server.url,
            model=fingerprint.model,
            tokenizer=request.tokenizer,
            chat=request.chat,
        )
        before = read(request.out) if request.out.exists() else None
        # A new name has the instant in it, so that no cache knows it.
        name = f"ramp-{now():%Y%m%dT%H%M%S%f}" if before is None else before.name
        bench = Bench(server, target, workload, EFFORTS[request.effort], name=name, alone=request.replicas == 1)
        if before is not None:
            kept = _going_on(before, request, limits, fingerprint)
        else:
            talk("Asking one request at a time")
            alone = await ramp.unloaded(bench, prompts)
            kept = _new(request, plan, limits, name=name, fingerprint=fingerprint, alone=alone)
        kept = await ramp.climb(kept, bench.run, request.out, _progress())
        if request.confirm or request.confirm_url:
            kept = await confirmed(kept, request.out, server, target, workload, url=request.confirm_url)
        return kept


def _stated(request: Request, plan: Plan | None) -> dict[str, int | None]:
    """Engine arguments from the options, else from the plan's engine."""
    engine = None if plan is None else plan.engine
    return {
        "max_num_seqs": request.max_num_seqs or (None if engine is None else engine.max_num_seqs),
        "max_num_batched_tokens": request.max_num_batched_tokens
        or (None if engine is None else engine.max_num_batched_tokens),
    }


def _going_on(kept: Kept, request: Request, limits: Objectives, fingerprint: Fingerprint) -> Kept:
    """The ramp in the file. Raises UsageError where it is another than what is asked for."""
    from servingplan.benchmarking.ramp import same_ramp  # noqa: PLC0415  loads numpy

    asked = _asked(request, limits, start=kept.asked.start)
    if (differs := same_ramp(kept, asked, fingerprint)) is not None:
        raise UsageError(f"{request.out} holds another ramp: {differs}. Name another file with --out")
    talk(f"Going on with {_runs(kept)} in {request.out}")
    return kept.longer(asked.longest_s)


def _new(
    request: Request, plan: Plan | None, limits: Objectives, *, name: str, fingerprint: Fingerprint, alone: Unloaded
) -> Kept:
    """A ramp without runs. alone: the server without load, which says where to start if nobody does."""
    from servingplan.benchmarking.record import Kept  # noqa: PLC0415  loads numpy

    start = request.start or _start(plan, request.replicas) or 1 / alone.latency_s
    return Kept(
        name=name,
        started=now().isoformat(timespec="seconds"),
        asked=_asked(request, limits, start=start),
        fingerprint=fingerprint,
        unloaded=alone,
    )


def _start(plan: Plan | None, replicas: int) -> float | None:
    """One rung below what the plan says a pool of this size serves."""
    from servingplan.benchmarking.search import LADDER  # noqa: PLC0415  loads numpy
    from servingplan.planning.sizing import capacity_per_replica  # noqa: PLC0415  only with a plan

    return None if plan is None else float(capacity_per_replica(plan.capacity, replicas)) * replicas / LADDER


def _asked(request: Request, limits: Objectives, *, start: float) -> Asked:
    from servingplan.benchmarking.record import Asked  # noqa: PLC0415  loads numpy

    try:
        longest = EFFORTS[request.effort].longest_s
        longest = longest if request.longest is None else parse_duration(request.longest).total_seconds()
    except ValueError as error:
        raise UsageError(f"--longest: {error}") from None
    return Asked(
        objectives=limits,
        effort=request.effort,
        start=start,
        longest_s=longest,
        burstiness=burstiness(request.cv),
        prefix_hit_share=request.prefix_hit_share,
        replicas=request.replicas,
    )


def _progress() -> Progress:
    from servingplan.benchmarking.ramp import Progress  # noqa: PLC0415  loads numpy
    from servingplan.reporting.benchmark import level_words, run_words  # noqa: PLC0415  as above

    def before(step: Measure, number: int) -> None:
        talk(f"Run {number + 1}: {step.rate:g} requests/s{', a longer window' if step.extended else ''}")

    def after(run: Run, level: Level) -> None:
        talk(f"  {run_words(run)}")
        talk(f"  {level_words(level)}")

    return Progress(before_run=before, after_run=after)
