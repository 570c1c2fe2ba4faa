"""The pages under test, each made by the command that users give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from e2e.support.cli import run
from support.small_openai import small_server

PLAN = "examples/worked-example.yaml"
LOGS = "tests/data/logs"
MODELS = "tests/data/models"


def _printed(*arguments: str, codes: Sequence[int] = (0,)) -> str:
    """What the program prints on standard output. codes: the ways in which it may end."""
    done = run(*arguments)
    if done.code not in codes:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.code}: {done.err}")
    return done.out


def _by(*arguments: str) -> Callable[[Path], str]:
    return lambda _folder: _printed(*arguments)


def _evaluation(folder: Path) -> str:
    """A variant that is wrong where a question ends with 3, also in long words."""

    def right(question: str) -> str:
        return question.removeprefix("say ")

    def wrong(question: str) -> str:
        return f"no idea what {'x' * 200} may be" if question.endswith("3") else right(question)

    asked = folder / "set.jsonl"
    asked.write_text("".join(json.dumps({"prompt": f"say {n}", "answer": str(n)}) + "\n" for n in range(60)))
    with small_server(right) as baseline, small_server(wrong) as variant:
        servers = ("--baseline", baseline.url, "--variant", variant.url)
        files = ("--set", str(asked), "--out", str(folder / "answers.jsonl"))
        return _printed("evaluate", *servers, *files, "-o", "html", codes=(4,))


PAGES: Mapping[str, Callable[[Path], str]] = {
    "plan": _by("plan", PLAN, "--from", "2026-12-01", "-o", "html"),
    "plan with calendar and profile": _by(
        "plan", "examples/calendar-and-profile.yaml", "--from", "2026-12-21", "-o", "html"
    ),
    "plan with overrides": _by("plan", "examples/overrides.yaml", "--from", "2026-12-01", "-o", "html"),
    "bill": _by("bill", PLAN, "--week", "2025-W48", "--gpu-hour", "2.5", "-o", "html"),
    "profile": _by(
        *("profile", "from-log", f"{LOGS}/servegen-tenants-10min.csv", "--time-zone", "Asia/Shanghai"),
        *("--start", "2025-04-01T00:00", "--column", "rate=c26_rps", "--name", "chat", "--capacity", "1", "-o", "html"),
    ),
    "simulation": _by(
        *("simulate", PLAN, "--trace", f"{LOGS}/servegen-tenants-10min.csv", "--start", "2026-12-01T00:00"),
        *("--column", "rate=c26_rps", "--days", "2", "--scenario", "all", "--gpu-hour", "2.5", "-o", "html"),
    ),
    "sizes side by side": _by(
        *("size", "examples/models/qwen3-14b", f"{MODELS}/qwen3-8b.json", f"{MODELS}/qwen3-30b-a3b.json"),
        *("--plan", PLAN, "--compare", "-o", "html"),
    ),
    "size": _by("size", "examples/models/qwen3-14b", "--plan", PLAN, "-o", "html"),
    "evaluation": _evaluation,
}
"""What makes each page, by its name; given a folder to put files in."""
