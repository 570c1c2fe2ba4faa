"""A ModelEvaluation's run, and what was found as its status shows it.

In: a `Comparison`, the report of a run that ended (JSON as ``api.evaluation_report`` checked it), what the trial's
engine says of itself. Out: a `RunnerJob`, and the result's fields of the status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from servingplan.planning.comparison import Asker, Comparison, Server
from servingplan.planning.reasons import Reason
from servingplan.planning.target import Engine, SecretKey
from servingplan.rendering.measured import Measured
from servingplan.rendering.runner import REPORT_PATH, WORK_MOUNT, FirstContainer, RunnerJob, data_path, job_name
from servingplan.rendering.trial import trial_name

Json = dict[str, Any]

PIECE = 1
"""The only piece of work, with one replica of the trial: answers do not depend on how many there are."""

KEYS = ("BASELINE_API_KEY", "VARIANT_API_KEY")
"""Where the command line, and a user's container, take the servers' keys from."""


def runner_job(comparison: Comparison, work: str) -> RunnerJob:
    """The run: servingplan's own questions, or a user's container first and then the judgement of its scores."""
    variant = variant_server(comparison)
    keys = dict(_keys(comparison.baseline, variant))
    asker = comparison.questions if isinstance(comparison.questions, Asker) else None
    file = f"{WORK_MOUNT}/{job_name(comparison.name, work, PIECE)}.jsonl"
    return RunnerJob(
        namespace=comparison.namespace,
        evidence=comparison.name,
        work=work,
        piece=PIECE,
        arguments=tuple(_arguments(comparison, variant, file)),
        runner=comparison.runner,
        data=None if isinstance(comparison.questions, Asker) else comparison.questions,
        longest=comparison.longest,
        keys=keys if asker is None else {},
        first=None if asker is None else _first(asker, comparison.baseline, variant, file, keys),
    )


def variant_server(comparison: Comparison) -> Server:
    """Where the variant answers: what serves it, or the trial pool."""
    variant = comparison.variant
    if isinstance(variant, Server):
        return variant
    return Server(
        name=trial_name(comparison.name), port=variant.port, model=variant.served_model_name, api_key=variant.api_key
    )


def _arguments(comparison: Comparison, variant: Server, file: str) -> Iterator[str]:
    yield "evaluate"
    if isinstance(comparison.questions, Asker):
        yield f"--results={file}"
    else:
        yield f"--baseline={_url(comparison.baseline)}"
        yield f"--variant={_url(variant)}"
        named = (("baseline", comparison.baseline.model), ("variant", variant.model))
        yield from (f"--{side}-model={model}" for side, model in named if model is not None)
        yield f"--set={data_path(comparison.questions)}"
        yield f"--out={file}"
        yield f"--concurrency={comparison.concurrency}"
        if comparison.chat:
            yield "--chat"
    yield f"--minimum-score={comparison.minimum_score:f}"
    yield f"--margin={comparison.margin:f}"
    yield f"--report={REPORT_PATH}"


def _first(asker: Asker, baseline: Server, variant: Server, file: str, keys: Mapping[str, SecretKey]) -> FirstContainer:
    """A user's container: it is told whom to ask, and where its scores go."""
    told = {"SERVINGPLAN_RESULTS": file}
    for side, server in (("BASELINE", baseline), ("VARIANT", variant)):
        told[f"SERVINGPLAN_{side}_URL"] = _url(server)
        if server.model is not None:
            told[f"SERVINGPLAN_{side}_MODEL"] = server.model
    return FirstContainer(name="asker", image=asker.image, args=asker.args, variables=told, keys=keys)


def _keys(baseline: Server, variant: Server) -> Iterator[tuple[str, SecretKey]]:
    for name, server in zip(KEYS, (baseline, variant), strict=True):
        if server.api_key is not None:
            yield name, server.api_key


def _url(server: Server) -> str:
    return f"http://{server.name}:{server.port}"


# ---- what was found ---------------------------------------------------------------------------------------


def outcome(report: Json) -> tuple[Reason, str]:
    """How the work ended."""
    return Reason(report["reason"]), report["message"]


def result(comparison: Comparison, report: Json, measured: Measured) -> Json:
    """The fields of the status that say what was found. The variant is what really ran in the trial."""
    fields = ("verdict", "score", "difference", "set")
    return {name: report[name] for name in fields} | {
        "variant": report.get("variant", {}) | _variant(comparison.variant, measured),
        "baseline": report.get("baseline", {})
        | ({"digest": comparison.baseline_digest} if comparison.baseline_digest else {}),
    }


def _variant(variant: Server | Engine, measured: Measured) -> Json:
    """Of a trial, what its engine is; of what serves, nothing but what it says is known."""
    known = measured.identity
    if isinstance(variant, Server) or known is None:
        return {}
    found = {
        "digest": known.digest,
        "image": known.image,
        "imageDigest": measured.image_digest,
        "model": known.model,
    }
    return {name: value for name, value in found.items() if value is not None}
