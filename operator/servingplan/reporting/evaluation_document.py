"""An evaluation as data: everything for programs, and a short report for whoever started a Job.

In: an `Evaluation`. Out: plain JSON; keys whose value is not known are left out. docs/reference/evaluation-json.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servingplan.evaluating.evaluation import SIDES, Evaluation, Result, message, remarks
from servingplan.evaluating.record import FORMAT, Answer, Role, Served
from servingplan.evaluating.verdict import Difference
from servingplan.rendering.runner import REPORT_BYTES

REPORT_FORMAT = "servingplan.dev/evaluation-report/v1"

_NAME_BYTES = 400
_DIGITS = 6


def evaluation_document(found: Evaluation) -> dict[str, Any]:
    """Everything: the verdict first, then every item."""
    asked = {} if found.header is None else {"maxTokens": found.header.max_tokens, "chat": found.header.chat}
    return {
        "format": FORMAT,
        **_judged(found),
        **({"asked": asked} if asked else {}),
        "items": [_item(result) for result in found.results],
    }


def report_text(found: Evaluation) -> str:
    """The short report as one line of at most `REPORT_BYTES` bytes, without items."""
    report = {"format": REPORT_FORMAT, **_judged(found)}
    for without in ((), ("remarks",), ("remarks", "baseline", "variant")):
        text = json.dumps({key: value for key, value in report.items() if key not in without}, ensure_ascii=False)
        if len(text.encode()) < REPORT_BYTES:
            break
    return text + "\n"


def _judged(found: Evaluation) -> dict[str, Any]:
    judged, header = found.judgement, found.header
    served = {} if header is None else {"baseline": _served(header.baseline), "variant": _served(header.variant)}
    times = {"startedAt": header and header.started, "finishedAt": found.finished}
    return {
        "verdict": judged.verdict.value,
        "reason": judged.because.value,
        "message": message(judged),
        "remarks": list(remarks(found)),
        "rule": {"minimumScore": judged.rule.minimum_score, "margin": judged.rule.margin},
        "score": {
            "baseline": _rounded(judged.baseline),
            "variant": _rounded(judged.variant.mean),
            "variantUpperBound": _rounded(judged.variant.upper),
        },
        "difference": _difference(judged.difference),
        "failures": {role.value: sum(found.failures(role).values()) for role in SIDES},
        "set": {"digest": found.set, "items": judged.items},
        **served,
        **{key: value for key, value in times.items() if value},
    }


def _difference(found: Difference) -> dict[str, Any]:
    known = {
        "mean": _rounded(found.bounds.mean),
        "lowerBound": _rounded(found.bounds.lower),
        "upperBound": _rounded(found.bounds.upper),
        "discordant": _rounded(found.discordant),
        "baselineDiscordant": None if found.baseline_discordant is None else _rounded(found.baseline_discordant),
        "items": found.items,
        "needed": found.needed,
    }
    return {key: value for key, value in known.items() if value is not None}


def _served(served: Served) -> dict[str, str]:
    known = {"url": _short(served.url), "model": _short(served.model), "vllm": served.vllm}
    return {key: value for key, value in known.items() if value}


def _short(name: str) -> str:
    return name.encode()[:_NAME_BYTES].decode("utf-8", "ignore")


def _item(result: Result) -> dict[str, Any]:
    answers: Mapping[Role, Answer | None] = {role: result.of(role) for role in Role}
    return {
        "id": result.id,
        **({} if result.item is None else {"scorer": result.item.scorer.kind}),
        **{role.value: _answer(answer) for role, answer in answers.items() if answer is not None},
    }


def _answer(answer: Answer) -> dict[str, Any]:
    known = {
        "failure": answer.failure and answer.failure.value,
        "detail": answer.detail,
        "read": answer.read,
        "text": answer.text,
        "digest": answer.digest,
        "finish": answer.finish,
        "tokens": answer.tokens,
        "at": answer.at,
    }
    return {"score": _rounded(answer.score), **{key: value for key, value in known.items() if value not in {None, ""}}}


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
