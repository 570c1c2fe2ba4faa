"""The help of each verb, as people read it."""

from __future__ import annotations

import importlib
import re

import click
import pytest

from cli.runs import ROOT
from servingplan.cli.program import VERBS

REFERENCE = (ROOT / "docs" / "reference" / "cli.md").read_text()
EVERYWHERE = {"--help", "--output", "--kubeconfig", "--context", "--namespace"}
"""Options that the reference explains once, for all verbs that have them."""

OPTION = re.compile(r"--[a-z][a-z-]+")


@pytest.mark.parametrize("verb", VERBS)
def test_examples_in_a_verbs_help_stand_on_lines_of_their_own(cli, verb):
    text = cli(verb, "--help").output
    assert "\\b" not in text
    for line in text.splitlines():
        assert line.count("  servingplan ") <= 1


def entry(verb: str) -> str:
    """What the reference says under a verb: up to the next verb, or the next heading."""
    begins = re.search(rf"^\*\*`{verb}\b", REFERENCE, re.MULTILINE) or re.search(rf", \*\*`{verb}\b", REFERENCE)
    assert begins is not None, f"docs/reference/cli.md has no entry for {verb}"
    return re.split(r"^(?=\*\*`|## )", REFERENCE[begins.start() :], flags=re.MULTILINE)[begins.group().startswith("**")]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "operator"])
def test_the_reference_names_every_option_of_a_verb_and_no_other(verb):
    """Those of the operator stand in its help, with their environment variables."""
    module, name = VERBS[verb].place.split(":")
    command: click.Command = getattr(importlib.import_module(module), name)
    options = {
        option for each in command.params if isinstance(each, click.Option) for option in each.opts if "--" in option
    }
    named = set(OPTION.findall(re.sub(r"`[^`]*kubectl [^`]*`", "", entry(verb))))
    assert options - named <= EVERYWHERE
    assert named <= options
