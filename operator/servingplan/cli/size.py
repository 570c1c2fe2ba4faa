"""``servingplan size``: from a model's config and a workload to GPUs, before anything is bought. Needs no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from servingplan.cli.output import HTML, JSON, TABLE, YAML, emit, loading_pictures, output_option, talk, with_options
from servingplan.errors import CheckFailed
from servingplan.hardware.engine import CACHE_DTYPES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from servingplan.hardware.study import Study

FORMATS = ("own", "fp8", "int8", "int4", "mxfp4")

_WORKLOAD = (
    click.option("--plan", "plan_file", metavar="FILE", help="Workload, objectives, capacity and engine of a plan."),
    click.option("--name", help="The plan of that name, where FILE holds several."),
    click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Requests/s of the busiest time."),
    click.option("--input-tokens", metavar="P:N,...", help="Prompt lengths: p50:600,p95:2400."),
    click.option("--output-tokens", metavar="P:N,...", help="Answer lengths: p50:180,p95:600."),
    click.option("--ttft", metavar="P:LIMIT", help="Objective of the first token: p95:1500ms."),
    click.option("--tpot", metavar="P:LIMIT", help="Objective of each further token: p95:60ms."),
    click.option("--e2el", metavar="P:LIMIT", help="Objective of a whole answer: p95:30s."),
    click.option(
        "--burst", default="2x10m", show_default=True, metavar="NxT", help="A multiple of the rate, how long."
    ),
    click.option(
        "--failure",
        type=click.Choice(["replica", "node"]),
        default="replica",
        show_default=True,
        help="What may be gone.",
    ),
    click.option("--spare", type=click.IntRange(0, 1000), help="Replicas for a canary and evaluation.  [default: 1]"),
    click.option(
        "--capacity",
        "capacities",
        multiple=True,
        metavar="[MODEL@GPU=]R",
        help="Measured requests/s of one replica, in the place of the estimate.",
    ),
)
_HARDWARE = (
    click.option("--accelerator", "names", multiple=True, metavar="GPU", help="One of the table; default: all."),
    click.option("--accelerators", "table", metavar="FILE", help="A table of your own."),
    click.option("--price", "prices", multiple=True, metavar="GPU=N", help="Of one GPU and hour."),
    click.option("--log", "log_file", metavar="FILE", help="A log of vLLM's start, in the place of estimated bytes."),
    click.option("--model-versions", type=click.IntRange(1, 1000), default=2, show_default=True, help="On disk."),
    click.option(
        "--metrics-retention", default="15d", show_default=True, metavar="T", help="How long metrics are kept."
    ),
    click.option("--scrape-interval", default="15s", show_default=True, metavar="T", help="How often they are read."),
)
_SERVING = (
    click.option(
        "--quantization",
        "formats",
        multiple=True,
        type=click.Choice(FORMATS),
        help="Linear weights in another format than the checkpoint's own.",
    ),
    click.option("--tensor", type=click.IntRange(1, 1024), help="GPUs of a stage.  [default: as few as do]"),
    click.option("--pipeline", type=click.IntRange(1, 1024), help="Stages.  [default: as few as do]"),
    click.option("--max-model-len", type=click.IntRange(min=1), help="Tokens.  [default: the model's]"),
    click.option("--max-num-seqs", type=click.IntRange(min=1), help="[default: vLLM's for the GPU]"),
    click.option("--max-num-batched-tokens", type=click.IntRange(min=1), help="[default: vLLM's for the GPU]"),
    click.option(
        "--gpu-memory-utilization",
        "utilization",
        type=click.FloatRange(0, 1, min_open=True),
        help="[default: vLLM's]",
    ),
    click.option("--kv-cache-dtype", "cache_dtype", type=click.Choice(CACHE_DTYPES), help="[default: auto]"),
    click.option("--prefix-caching/--no-prefix-caching", default=None, help="[default: on]"),
    click.option("--vllm", "version", metavar="V", help="Release whose rules count.  [default: 0.32]"),
)


@click.command("size")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@with_options(*_WORKLOAD, *_HARDWARE, *_SERVING)
@click.option("--compare", is_flag=True, help="Every model, format and accelerator side by side, without details.")
@output_option(TABLE, JSON, YAML, HTML)
def command(*, models: tuple[str, ...], compare: bool, output: str, **flags: Any) -> None:
    """Say which GPUs a MODEL needs, and how many for a workload: at its base, in a burst, and with a failure.

    MODEL is a folder with config.json and safetensors files, of which headers alone are read, or a config.json;
    NAME=MODEL names it. Without a workload one replica is sized.

    \b
      servingplan size models/qwen3-8b --max-model-len 16384
      servingplan size models/qwen3-8b --plan plan.yaml --accelerator L40S
      servingplan size a b --plan plan.yaml --compare --price L40S=1.1 -o html > sizes.html
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    from servingplan.cli.sizing import sized  # noqa: PLC0415  the help loads no models and no plans
    from servingplan.cli.sizing_workload import Flags  # noqa: PLC0415  as above
    from servingplan.reporting.sizing_document import study_document  # noqa: PLC0415  as above

    found, notes = sized(models, Flags(**flags))
    for note in notes:
        talk(f"Note: {note}")
    if output == HTML:
        _page(found)
    else:
        emit(output, study_document(found), lambda: _view(found, compare=compare))
    if found.best is None:
        raise CheckFailed(_nothing_passes(found))


def _view(found: Study, *, compare: bool) -> RenderableType:
    from servingplan.reporting.sizing_tables import comparison_view, study_view  # noqa: PLC0415  JSON needs no tables

    return comparison_view(found) if compare else study_view(found)


def _page(found: Study) -> None:
    with loading_pictures(HTML):
        from servingplan.reporting.sizing_html import page  # noqa: PLC0415  matplotlib takes a second to load
    click.echo(page(found))


def _nothing_passes(found: Study) -> str:
    first = found.options[0]
    if len(found.options) == 1:
        return f"{first.model.name} on {first.accelerator.name}: {first.why_not}"
    return (
        f"none of {len(found.options)} options passes; {first.model.name} on {first.accelerator.name}: {first.why_not}"
    )
