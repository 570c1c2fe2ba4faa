"""Objects as we rendered them and as a real API server (1.36) gave them back right after the apply.

Recorded once, ``managedFields`` included: what the server adds, rewrites and leaves out is the server's, not a
guess of a test.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "rendering" / "served"
NAMES = ("worked-example", "full-engine", "odd-spellings")


def served_pairs() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """A name for people, what was rendered and what was served, of each recorded object."""
    return [
        (f"{name} {pair['rendered']['kind']}", pair["rendered"], pair["live"])
        for name in NAMES
        for pair in json.loads((FOLDER / f"{name}.json").read_text())
    ]


def served_deployment(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The Deployment of one recording: rendered and served."""
    return next((ours, live) for title, ours, live in served_pairs() if title == f"{name} Deployment")
