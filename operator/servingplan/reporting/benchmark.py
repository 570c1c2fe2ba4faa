"""A ramp in the terminal: its levels, its finding, what bound the server, and why runs were void.

In: a kept ramp. Out: renderables and lines. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from servingplan.benchmarking.confirmation import Verdict as Answered
from servingplan.benchmarking.level import Because, Level, Verdict
from servingplan.benchmarking.record import Kept, at_capacity
from servingplan.benchmarking.run import Run, Seen
from servingplan.benchmarking.search import Outcome
from servingplan.reporting.tables import indented, plain_table

_WORDS = {
    Because.HOLDS: "the objectives hold",
    Because.MISSES: "too many miss an objective",
    Because.CANNOT_RECOVER: "so many miss that no further run can make up for it",
    Because.FALLS_BEHIND: "the server could not finish what it was sent",
    Because.QUEUE_RISES: "more and more wait",
    Because.TOO_CLOSE: "too close to the objectives to be told with these runs",
    Because.MORE_RUNS: "another run is needed",
    Because.LONGER_WINDOW: "it holds while more and more wait: looking longer",
}

_OUTCOMES = {
    Outcome.FOUND: "found",
    Outcome.OUT_OF_TIME: "not finished",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.NOTHING_HOLDS: "no rate holds the objectives, however low",
    Outcome.NOTHING_FAILS: "no rate fails, however high",
}

_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.UNDECIDED: "yellow", Verdict.OPEN: ""}
_ANSWERS = {Answered.CONFIRMED: "bold green", Answered.REFUTED: "bold red", Answered.UNCLEAR: "bold yellow"}


def ramp_view(kept: Kept) -> RenderableType:
    """Everything that a person needs to judge a capacity."""
    finding = kept.finding
    parts: list[RenderableType] = [_title(kept), "", _levels(finding.levels)]
    parts += [indented(Text(level_words(level), style="dim")) for level in finding.levels if _needs_words(level)]
    parts += ["", _capacity(kept)]
    if lines := list(_figures(kept)):
        parts += [indented(Text(line)) for line in lines]
    if (bound := kept.bottleneck) is not None:
        parts += ["", Text.assemble(("Bound by ", "bold"), (", ".join(one.value for one in bound.bounds), "bold"))]
        parts += [indented(Text(line)) for line in bound.evidence]
        parts += [indented(Text(f"doubt: {line}", style="yellow")) for line in bound.doubt]
        parts.append(indented(_decided(kept, bound.change.words)))
    if voids := [run for level in finding.levels for run in level.void]:
        parts += ["", Text("Void runs, which do not count:", style="bold yellow")]
        parts += [indented(Text(f"{run.rate:g}/s, seed {run.seed}: {void_words(run)}")) for run in voids]
    if unjudged := sorted({reason.value for run in kept.runs for reason in run.unjudged}):
        parts += ["", Text(f"Not judged, for lack of figures: {', '.join(unjudged)}", style="yellow")]
    return Group(*parts)


def _decided(kept: Kept, change: str) -> RenderableType:
    """What would decide, or what was tried and what it says."""
    found, experiment = kept.confirmation, kept.experiment
    if found is None or experiment is None:
        return Text(f"to decide: {change}")
    style = _ANSWERS[found.verdict]
    lines = [Text.assemble((found.verdict.value, style), f" by a run with {experiment.what}")]
    lines += [Text(line) for line in found.evidence]
    lines += [Text(f"doubt: {line}", style="yellow") for line in found.doubt]
    return Group(*lines)


def _title(kept: Kept) -> Text:
    what = kept.fingerprint
    engine = f"vLLM {what.vllm}" if what.vllm else "a server that does not say its version"
    title = Text.assemble((what.model, "bold"), f"  {engine} at {what.url}, {kept.asked.effort}")
    return title.append(f", a pool of {kept.asked.replicas}" if kept.asked.replicas > 1 else "")


def _levels(levels: tuple[Level, ...]) -> RenderableType:
    numbers = ("rate", "good", "from", "to", "runs", "TTFT p95", "TPOT p95", "in flight")
    table = plain_table(*numbers, "", numbers=numbers)
    for level in levels:
        bounds = level.bounds[0] if level.bounds else None
        table.add_row(
            f"{level.rate:g}/s",
            *(("", "", "") if bounds is None else (f"{x:.1%}" for x in (bounds.share, bounds.lower, bounds.upper))),
            f"{len(level.runs)}" + (f"+{len(level.void)}" if level.void else ""),
            *_cells(level.seen),
            Text(level.verdict.value, style=_STYLES[level.verdict]),
        )
    return table


def _needs_words(level: Level) -> bool:
    """Whether the figures beside it do not say why."""
    return level.because not in {Because.HOLDS, Because.MISSES}


def _cells(seen: Sequence[Seen]) -> tuple[str, str, str]:
    ttft = [one.ttft.p95 for one in seen if one.ttft is not None]
    tpot = [one.tpot.p95 for one in seen if one.tpot is not None]
    return (
        f"{_mean(ttft) * 1000:.0f} ms" if ttft else "",
        f"{_mean(tpot) * 1000:.0f} ms" if tpot else "",
        f"{_mean([one.in_flight_mean for one in seen]):.1f}" if seen else "",
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _capacity(kept: Kept) -> Text:
    finding, pool = kept.finding, kept.asked.replicas
    known = _OUTCOMES[finding.outcome]
    if finding.capacity is None:
        return Text.assemble(
            ("No capacity: ", "bold red"), f"{known}{': ' + finding.message if finding.message else ''}"
        )
    each = " a replica" if pool > 1 else ""
    text = Text.assemble((f"Capacity {finding.capacity / pool:.4g}/s{each}", "bold green"))
    if finding.failing is not None:
        text.append(f", below {finding.failing / pool:.4g}/s")
    return text.append(f"  ({known}{': ' + finding.message if finding.message else ''})")


def _figures(kept: Kept) -> Iterator[str]:
    figures = at_capacity(kept)
    if figures is None:
        return
    yield (
        f"there: {_number(figures['inFlightMean'])} in flight (p99 {_number(figures['inFlightP99'])}), "
        f"{_number(figures['inputTokens'])} tokens in, {_number(figures['outputTokens'])} out a request"
    )
    unloaded, prefill = figures["unloadedTtftP95Seconds"], figures["prefillTokensPerSecond"]
    rate = "" if prefill is None else f", {prefill:,.0f} prompt tokens/s"
    usage = figures["kvCacheUseP90"]
    yield f"without load: TTFT p95 {(unloaded or 0) * 1000:.0f} ms{rate}"
    if usage is not None:
        yield f"KV cache in use there: {usage:.0%} (p90)"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:,.4g}"


def run_words(run: Run) -> str:
    """One run in a line."""
    if run.voids:
        return f"void: {void_words(run)}"
    if run.unfinished:
        return "stopped: the server was still behind"
    sent = sum(block.sent for block in run.blocks)
    good = sum(block.met[0] for block in run.blocks)
    return f"{good} of {sent} good, in {run.took_s:.0f} s"


def void_words(run: Run) -> str:
    """Why a run does not count."""
    return "; ".join(f"{void.reason.value}: {void.message}" for void in run.voids)


def level_words(level: Level) -> str:
    """One level in a line."""
    return f"{level.rate:g}/s: {level.verdict.value}, {_WORDS[level.because]}"
