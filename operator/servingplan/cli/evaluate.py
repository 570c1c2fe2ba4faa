"""``servingplan evaluate``: whether a variant may take the baseline's place, by a set of questions and one rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servingplan.cli.extras import needed
from servingplan.cli.output import HTML, JSON, TABLE, YAML, emit, output_option, write_report
from servingplan.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from servingplan.evaluating.evaluation import Evaluation
    from servingplan.evaluating.verdict import Rule

MARGIN = 0.02
"""Two points: the least that a set of some hundred items can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Whom to ask what, as typed."""

    baseline: str
    variant: str
    set_file: Path
    out: Path
    baseline_model: str | None
    variant_model: str | None
    repeat: bool
    concurrency: int
    max_tokens: int
    timeout: str
    chat: bool


@click.command("evaluate")
@click.option("--baseline", metavar="URL", help="The server that serves now.")
@click.option("--variant", metavar="URL", help="The server of the variant.")
@click.option("--set", "set_file", metavar="FILE", type=click.Path(path_type=Path), help="Questions and right answers.")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Every answer; an unfinished one goes on.")
@click.option(
    "--results",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Judge the scores of an evaluation of your own: id, baseline, variant.",
)
@click.option("--baseline-model", metavar="NAME", help="The model, where the server has several.")
@click.option("--variant-model", metavar="NAME", help="The model, where the server has several.")
@click.option("--minimum-score", type=click.FloatRange(0, 1), default=0.0, help="Of the variant, 0 to 1.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=MARGIN,
    show_default=True,
    help="By how much of the score the variant may be worse.",
)
@click.option(
    "--repeat-baseline/--no-repeat-baseline",
    "repeat",
    default=True,
    show_default=True,
    help="Ask the baseline twice, to see how it differs from itself.",
)
@click.option(
    "--concurrency", type=click.IntRange(1, 1000), default=4, show_default=True, help="Requests in flight to a server."
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=1024,
    show_default=True,
    help="Of an answer, where the set is silent.",
)
@click.option("--timeout", metavar="SPAN", default="5m", show_default=True, help="Of one answer.")
@click.option("--chat", is_flag=True, help="Send prompts as chat messages.")
@click.option(
    "--report",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the verdict there, in 4096 bytes; then every verdict ends with 0.",
)
@output_option(TABLE, JSON, YAML, HTML)
def command(
    *,
    results: Path | None,
    minimum_score: float,
    margin: float,
    report: Path | None,
    output: str,
    **asked: Any,
) -> None:
    """Ask a baseline and a variant the same questions, and say whether the variant is shown to be no worse.

    A set is JSON lines: {"prompt": "...", "answer": "Paris"}. It passes where the score reaches --minimum-score and the
    lower bound (95 %) of the difference reaches minus --margin. Keys of the servers: BASELINE_API_KEY, VARIANT_API_KEY,
    else OPENAI_API_KEY. The same command goes on after Ctrl-C.

    \b
      servingplan evaluate --baseline http://a:8000 --variant http://b:8000 --set set.jsonl --out answers.jsonl --chat
      servingplan evaluate --results scores.jsonl --minimum-score 0.8
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    _check(results, asked)
    _needs_evaluate()
    from servingplan.evaluating.verdict import Rule, Verdict  # noqa: PLC0415  loads numpy
    from servingplan.reporting.evaluation_document import report_text  # noqa: PLC0415  as above

    rule = Rule(minimum_score=minimum_score, margin=margin)
    found = _asked(Asking(**asked), rule) if results is None else _judged(results, rule)
    if report is not None:
        write_report(report, report_text(found))
    _show(found, output)
    verdict = found.judgement.verdict
    if verdict is not Verdict.PASSED and report is None:
        raise CheckFailed(f"the variant did not pass: {verdict.value}")


def _check(results: Path | None, asked: dict[str, Any]) -> None:
    """Raises UsageError where neither results nor whom to ask are stated, both, or whom to ask in part."""
    needed = {"--baseline": "baseline", "--variant": "variant", "--set": "set_file", "--out": "out"}
    given = [option for option, name in needed.items() if asked[name] is not None]
    if results is not None and given:
        raise UsageError(f"--results are of an evaluation that is over: leave out {', '.join(given)}")
    if results is None and len(given) < len(needed):
        missing = ", ".join(option for option in needed if option not in given)
        raise UsageError(f"{missing} missing: to ask, give all of {', '.join(needed)}; to judge alone, --results")


def _needs_evaluate() -> None:
    """Raises UsageError where the packages of ``servingplan[evaluate]`` are missing."""
    with needed("evaluate", extra="evaluate"):
        import aiohttp  # noqa: F401, PLC0415  asked for
        import jsonschema_rs  # noqa: F401, PLC0415  as above
        import numpy  # noqa: F401, PLC0415  as above
        import re2  # noqa: F401, PLC0415  as above


def _asked(whom: Asking, rule: Rule) -> Evaluation:
    from servingplan.cli.evaluate_run import run  # noqa: PLC0415  loads numpy

    return run(whom, rule)


def _judged(results: Path, rule: Rule) -> Evaluation:
    from servingplan.evaluating.evaluation import evaluation  # noqa: PLC0415  loads numpy
    from servingplan.evaluating.results import read_results  # noqa: PLC0415  as above

    found = read_results(results)
    return evaluation(found.ids, found.answers, rule, set_digest=found.digest)


def _show(found: Evaluation, output: str) -> None:
    if output == HTML:
        from servingplan.reporting.evaluation_html import page  # noqa: PLC0415  only where it is asked for

        click.echo(page(found))
        return
    from servingplan.reporting.evaluation import evaluation_view  # noqa: PLC0415  loads numpy
    from servingplan.reporting.evaluation_document import evaluation_document  # noqa: PLC0415  as above

    emit(output, evaluation_document(found), lambda: evaluation_view(found))
