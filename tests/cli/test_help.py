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

OPTION = re.compile(r"--[a-z][a-z0-9-]+")


@pytest.mark.parametrize("verb", VERBS)
def test_examples_in_a_verbs_help_stand_on_lines_of_their_own(cli, verb):
    text = cli(verb, "--help").output
    assert "\\b" not in text
    for line in text.splitlines():
        assert line.count("  servingplan ") <= 1


ENTRY = re.compile(r"^\*\*`.*?(?=^\*\*`|^##)", re.MULTILINE | re.DOTALL)
"""What the reference says under one verb, or under two: up to the next, or the next heading."""


def entry(verb: str) -> str:
    (found,) = [text for text in ENTRY.findall(REFERENCE) if f"**`{verb}" in text]
    return str(found)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "operator"])
def test_the_reference_names_every_option_of_a_verb_and_no_other(verb):
    """Those of the operator stand in its help, with their environment variables."""
    module, name = VERBS[verb].place.split(":")
    command: click.Command = getattr(importlib.import_module(module), name)
    options = {
        option
        for each in command.params
        if isinstance(each, click.Option)
        for option in (*each.opts, *each.secondary_opts)
        if "--" in option
    }
    named = set(OPTION.findall(re.sub(r"`[^`]*kubectl [^`]*`", "", entry(verb))))
    assert options - named <= EVERYWHERE
    assert named <= options
