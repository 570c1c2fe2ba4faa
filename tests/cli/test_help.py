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


def commands() -> dict[str, click.Command]:
    """Every command by the words that call it, but the operator, whose options stand in its help."""
    found: dict[str, click.Command] = {}
    for verb in VERBS.keys() - {"operator"}:
        module, name = VERBS[verb].place.split(":")
        command = getattr(importlib.import_module(module), name)
        below = command.commands if isinstance(command, click.Group) else {}
        found |= {f"{verb} {each}": sub for each, sub in below.items()} or {verb: command}
    return found


COMMANDS = commands()


@pytest.mark.parametrize("called", sorted(COMMANDS))
def test_the_reference_names_every_option_of_a_command_and_no_other(called):
    options = {
        option
        for each in COMMANDS[called].params
        if isinstance(each, click.Option)
        for option in (*each.opts, *each.secondary_opts)
        if "--" in option
    }
    named = set(OPTION.findall(re.sub(r"`[^`]*kubectl [^`]*`", "", entry(called))))
    assert options - named <= EVERYWHERE
    assert named <= options
