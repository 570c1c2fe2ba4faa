"""Problems of the input, told: all of them, each with file, path, reason and what to do.

In: the problems of an `InputError`. Out: lines on standard error, and for programs a document on standard output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from servingplan.cli.output import JSON, YAML, asked_form, emit
from servingplan.errors import Problem

if TYPE_CHECKING:
    from servingplan.api.documents import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem(Problem):
    """A problem of one plan in a file. line: where the plan starts, from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        """``plans.yaml:1: spec.bounds: message [Reason]``."""
        where = f" {self.path}:" if self.path else ""
        return f"{self.file}:{self.line}:{where} {self.message} [{self.reason}]"


def in_file(document: Document, problem: Problem) -> FileProblem:
    """A problem with the file it is in."""
    return FileProblem(
        file=document.file, line=document.line, path=problem.path, reason=problem.reason, message=problem.message
    )


def problem_document(problem: Problem) -> dict[str, Any]:
    """A problem as JSON, with its file where it has one."""
    place = {"file": problem.file, "line": problem.line} if isinstance(problem, FileProblem) else {}
    return {**place, "path": problem.path, "reason": problem.reason, "message": problem.message}


def tell_problems(problems: Sequence[Problem], ctx: click.Context) -> None:
    """List all problems; a program that asked for JSON or YAML gets them as data too."""
    form = asked_form(ctx)
    if form in {JSON, YAML}:
        emit(form, {"problems": [problem_document(problem) for problem in problems]}, table=str)
    for problem in problems:
        click.echo(str(problem), err=True)
    click.echo(f"{len(problems)} problem{'' if len(problems) == 1 else 's'}", err=True)
