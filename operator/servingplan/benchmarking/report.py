"""A ramp's result in few words, for the termination message by which a runner hands it back.

In: a ramp that ended. Out: one line of JSON in the shape of ``api.benchmark_report``, at most `REPORT_BYTES` long: what
says least is left out until it fits. The whole ramp stays in its own file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from servingplan.benchmarking.record import Kept, document
from servingplan.rendering.runner import REPORT_BYTES

Json = dict[str, Any]

_SENTENCE = 300
"""Characters of a sentence that are kept where the whole is too long."""


def report(kept: Kept) -> str:
    """The report of a ramp that ended. Rates of levels are the pool's, the others those of one replica."""
    whole = document(kept)
    finding = whole["finding"]
    found: Json = {
        "outcome": finding["outcome"],
        "message": finding["message"],
        "started": whole["started"],
        "requestsPerSecond": finding["requestsPerSecond"],
        "failingRequestsPerSecond": finding["failingRequestsPerSecond"],
        "levels": [_level(level) for level in whole["levels"]],
        "bottleneck": _stated(whole["bottleneck"]),
        "atCapacity": _stated(finding["atCapacity"]),
        "vllm": kept.fingerprint.vllm,
        "dataset": kept.fingerprint.dataset,
    }
    return _fitting(found)


def _stated(part: Json | None) -> Json | None:
    return None if part is None else {key: value for key, value in part.items() if value is not None}


def _level(level: Json) -> Json:
    void = [one["reason"] for run in level["void"] for one in run["voids"]]
    because = {"voidBecause": sorted(set(void))} if void else {}
    kept = ("rate", "verdict", "because", "runs")
    return {name: level[name] for name in kept} | {"void": len(level["void"])} | because


def _fitting(found: Json) -> str:
    """The text, after as many of the cuts as it takes."""
    text = _text(found)
    for cut in _cuts(found):
        if len(text) <= REPORT_BYTES:
            break
        cut()
        text = _text(found)
    return text


def _text(found: Json) -> str:
    # ASCII: then bytes are characters.
    stated = {key: value for key, value in found.items() if value is not None}
    return json.dumps(stated, separators=(",", ":"))


def _cuts(found: Json) -> Iterator[Callable[[], None]]:
    """Sentences are shortened, then levels go, those furthest from the capacity first."""
    yield lambda: found.update(message=found["message"][:_SENTENCE])
    if found["bottleneck"] is not None:
        yield lambda: found.update(bottleneck=_shortened(found["bottleneck"]))
    middle = _middle(found["levels"])
    for level in sorted(found["levels"], key=lambda level: abs(math.log(level["rate"] / middle)), reverse=True):
        yield lambda gone=level: found["levels"].remove(gone)  # type: ignore[misc]  # bound now, not when it is called


def _shortened(bottleneck: Json) -> Json:
    """The first of its sentences, each cut."""
    return {
        name: [sentence[:_SENTENCE] for sentence in value[:2]] if isinstance(value, list) else value[:_SENTENCE]
        for name, value in bottleneck.items()
    }


def _middle(levels: list[Json]) -> float:
    """The largest rate that passed, or the smallest at all."""
    passed = [level["rate"] for level in levels if level["verdict"] == "Pass"]
    return float(max(passed, default=min((level["rate"] for level in levels), default=1.0)))
