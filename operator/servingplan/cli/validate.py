"""``servingplan validate``: every problem of every plan, in the operator's words. Needs no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from servingplan.cli.files import Checked, check_files
from servingplan.cli.output import emit, output_option
from servingplan.cli.problems import problem_document
from servingplan.cli.program import PROBLEMS
from servingplan.errors import Problem
from servingplan.rendering.acceptance import unaccepted


@click.command("validate")
@click.argument("files", nargs=-1, required=True)
@output_option()
@click.pass_context
def command(ctx: click.Context, files: Sequence[str], output: str) -> None:
    """List every problem of the plans in FILES, as the operator's condition PlanValid would.

    Ends with 1 where a plan has problems; warnings alone end with 0.
    """
    checked = check_files(files)
    emit(output, {"plans": [_document(found) for found in checked]}, lambda: _view(checked))
    if any(found.problems for found in checked):
        ctx.exit(PROBLEMS)


def _document(found: Checked) -> dict[str, Any]:
    document = found.document
    return {
        "file": document.file,
        "line": document.line,
        "plan": {"namespace": document.namespace, "name": document.name},
        "valid": found.plan is not None,
        "problems": [problem_document(problem) for problem in found.problems],
        "warnings": [problem_document(warning) for warning in _warnings(found)],
    }


def _warnings(found: Checked) -> Sequence[Problem]:
    return () if found.plan is None else (*found.plan.warnings, *unaccepted(found.plan))


def _view(checked: Sequence[Checked]) -> Any:
    from rich.console import Group  # noqa: PLC0415  JSON needs no tables
    from rich.text import Text  # noqa: PLC0415  as above

    from servingplan.reporting.tables import problems_view  # noqa: PLC0415  as above

    parts: list[Any] = []
    for found in checked:
        document = found.document
        line = Text.assemble((f"{document.namespace}/{document.name}", "bold"), f" ({document.file}:{document.line}): ")
        parts.append(line.append("valid", "green") if found.plan else line.append("not valid", "bold red"))
        if found.problems:
            parts.append(problems_view(found.problems, heading=_counted(len(found.problems))))
        if warnings := _warnings(found):
            parts.append(problems_view(warnings, heading="Warnings"))
    return Group(*parts)


def _counted(number: int) -> str:
    return f"{number} problem{'' if number == 1 else 's'}"
