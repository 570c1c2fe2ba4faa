"""The program as a whole: what it loads, its exit codes, what goes to which stream."""

from __future__ import annotations

import importlib
import os
import re
import sys

import click
import pexpect
import pytest

from cli.runs import SIZE_EXAMPLE, WORKED_EXAMPLE, process
from servingplan import __version__
from servingplan.cli.program import VERBS, program

HEAVY = ("kubernetes", "rich", "matplotlib", "pydantic", "kopf", "aiohttp", "jinja2", "servingplan.planning")

COLOUR = re.compile(r"\x1b\[(?:\d+;)*3[0-7]m")

OFFLINE = {
    "plan": ["plan", WORKED_EXAMPLE],
    "plan-json": ["plan", WORKED_EXAMPLE, "-o", "json"],
    "plan-html": ["plan", WORKED_EXAMPLE, "-o", "html"],
    "validate": ["validate", WORKED_EXAMPLE],
    "explain": ["explain", WORKED_EXAMPLE],
    "render": ["render", WORKED_EXAMPLE],
    "crd": ["crd"],
    "size": ["size", SIZE_EXAMPLE, "--plan", WORKED_EXAMPLE],
}


def loaded_after(arguments: list[str]) -> set[str]:
    code = (
        "import sys, io\nfrom servingplan.cli.program import program\n"
        f"try:\n    program({arguments!r}, standalone_mode=False)\nexcept SystemExit:\n    pass\n"
        "print('|'.join(sys.modules), file=sys.stderr)"
    )
    done = process(code=code)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split("|"))


def test_help_loads_nothing_but_the_program():
    assert not loaded_after(["--help"]) & set(HEAVY)


@pytest.mark.parametrize("arguments", OFFLINE.values(), ids=OFFLINE)
def test_a_verb_without_a_cluster_loads_no_cluster_client(arguments):
    assert not loaded_after(arguments) & {"kubernetes", "kopf", "aiohttp"}


def test_data_for_programs_loads_no_tables_and_no_pictures():
    assert not loaded_after(OFFLINE["plan-json"]) & {"rich", "matplotlib", "jinja2"}


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "demo"])
def test_every_verb_of_the_help_is_there_and_says_what_it_does(verb):
    module, name = VERBS[verb].place.split(":")
    command = getattr(importlib.import_module(module), name)
    assert isinstance(command, click.Command)
    assert command.name == verb
    assert command.help


def test_help_lists_every_verb_with_its_summary(cli):
    text = cli("--help").output
    assert all(f"  {verb} " in text for verb in VERBS)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["plan", WORKED_EXAMPLE], 0, ""),
        (["plan", "/nowhere.yaml"], 1, "/nowhere.yaml: there is no such file"),
        (["plan"], 2, "Missing argument"),
        (["plan", WORKED_EXAMPLE, "--from", "yesterday"], 2, "'yesterday' is no time"),
        (["nonsense"], 2, "No such command"),
        (["explain", WORKED_EXAMPLE, "--name", "other"], 2, "there are: support-chat"),
        (["override", "x", "--for", "2h"], 2, "exactly one of --replicas"),
        (["override", "x", "--replicas", "2"], 2, "exactly one of --for"),
        (["override", "x"], 2, "--list"),
        (["status", "--kubeconfig", "/nowhere"], 3, "the kubeconfig cannot be used"),
        (["operator", "--workers", "many"], 2, "--workers"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else None,
)
def test_exit_codes_with_one_clear_sentence(arguments, code, words):
    done = process(*arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (code == 0)


def test_a_cluster_that_does_not_answer_is_one_sentence(tmp_path):
    file = tmp_path / "config"
    file.write_text(
        "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}], users: [{name: u, user: {}}]}"
    )
    done = process("status", "--kubeconfig", str(file))
    assert done.returncode == 3
    assert "the cluster does not answer" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_the_client_a_verb_says_how_to_get_it(tmp_path):
    code = (
        "import sys\nsys.modules['kubernetes'] = None\nfrom servingplan.cli.program import program\nprogram(['status'])"
    )
    done = process(code=code)
    assert done.returncode == 2
    assert "pip install 'servingplan[cluster]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_pipe_gets_no_colour():
    assert "\x1b[" not in process("plan", WORKED_EXAMPLE).stdout


def test_a_terminal_gets_colour_unless_it_asks_for_none():
    assert COLOUR.search(in_terminal(TERM="xterm-256color"))
    assert not COLOUR.search(in_terminal(TERM="xterm-256color", NO_COLOR="1"))


def in_terminal(**environment: str) -> str:
    """What a real terminal is sent."""
    without = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "TERM"}}
    arguments = ["-m", "servingplan.cli", "plan", WORKED_EXAMPLE]
    child = pexpect.spawn(sys.executable, arguments, env={**without, **environment}, timeout=60, encoding="utf-8")
    child.expect(pexpect.EOF)
    return str(child.before)


def test_a_terminal_that_knows_only_ascii_still_shows_the_plan():
    done = process("plan", WORKED_EXAMPLE, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "window working-day" in done.stdout


def test_the_version_is_the_packages(cli):
    assert cli("--version").output == f"servingplan {__version__}\n"


def test_the_program_completes_its_verbs():
    done = process(_SERVINGPLAN_COMPLETE="bash_complete", COMP_WORDS="servingplan sus", COMP_CWORD="1", code=COMPLETE)
    assert "suspend" in done.stdout


COMPLETE = "from servingplan.cli.program import program; program(prog_name='servingplan')"


def test_the_group_is_the_one_that_is_installed():
    assert set(program.list_commands(click.Context(program))) == set(VERBS)
