"""Every word of a ramp's file is in its reference, once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from servingplan.benchmarking.changes import Bound, Variation
from servingplan.benchmarking.confirmation import Verdict
from servingplan.benchmarking.level import Because
from servingplan.benchmarking.run import VoidReason
from servingplan.benchmarking.search import Outcome

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("words", "page", "column"),
    [
        pytest.param(VoidReason, "reference/bench-json.md", 1, id="reasons of void runs"),
        pytest.param(Outcome, "reference/bench-json.md", 1, id="outcomes"),
        pytest.param(Because, "reference/bench-json.md", 2, id="reasons of levels"),
        pytest.param(Bound, "explanation/capacity.md", 1, id="bounds"),
        pytest.param(Variation, "explanation/capacity.md", 1, id="what a client changes"),
        pytest.param(Verdict, "reference/bench-json.md", 1, id="what an experiment says"),
    ],
)
def test_every_word_is_documented_once(words: type, page: str, column: int) -> None:
    rows = [line.split("|") for line in (DOCS / page).read_text().splitlines() if line.startswith("| `")]
    named = [row[column].strip().strip("`") for row in rows if len(row) > column + 1]
    assert sorted(word for word in named if word in set(words)) == sorted(words)
    assert all(re.fullmatch(r"[A-Z][A-Za-z]+", word.value) for word in words)
