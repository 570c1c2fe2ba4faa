"""Every word of an evaluation is in its reference, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from servingplan.evaluating.record import Failure
from servingplan.evaluating.scorers import KINDS
from servingplan.evaluating.verdict import VERDICTS, Because

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "evaluation-json.md"
ROWS = [[cell.strip().strip("`") for cell in line.split("|")] for line in PAGE.read_text().splitlines() if "|" in line]


@pytest.mark.parametrize("words", [list(Because), list(Failure), list(KINDS)], ids=["reasons", "failures", "scorers"])
def test_every_word_is_documented_once(words: list[str]) -> None:
    named = [row[1] for row in ROWS if row[1:] and row[1] in words]
    assert sorted(named) == sorted(words)


def test_every_reason_stands_beside_its_verdict() -> None:
    said = {row[1]: row[2] for row in ROWS if row[1:] and row[1] in set(Because)}
    assert said == {reason.value: verdict.value for reason, verdict in VERDICTS.items()}


def test_every_scorer_names_its_keys() -> None:
    said = {row[1]: row[2] for row in ROWS if row[1:] and row[1] in KINDS}
    assert all(
        f"`{key}`" in f"`{said[name]}`" or key in said[name] for name, kind in KINDS.items() for key in kind.keys
    )
