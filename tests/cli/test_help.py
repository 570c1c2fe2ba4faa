"""The help of each verb, as people read it."""

from __future__ import annotations

import pytest

from servingplan.cli.program import VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_examples_in_a_verbs_help_stand_on_lines_of_their_own(cli, verb):
    text = cli(verb, "--help").output
    assert "\\b" not in text
    for line in text.splitlines():
        assert line.count("  servingplan ") <= 1
