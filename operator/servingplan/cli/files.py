"""Plans from files: read, resolved, and every problem with the file it is in.

In: paths as given on the command line. Out: plans, or an InputError that lists all problems of all files.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servingplan.api.documents import Document, PlanDocument, read_plans
from servingplan.api.resolve import resolve
from servingplan.cli.problems import FileProblem, in_file
from servingplan.errors import InputError, InvalidPlan, UsageError
from servingplan.planning.plan import Plan

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One plan of a file: the plan, or what is wrong with it."""

    document: Document
    plan: Plan | None
    problems: Sequence[FileProblem]


def is_file(what: str, name: str | None) -> bool:
    """Whether a verb's FILE|NAME is a file: by its ending, by a slash, or because there is one.

    Raises UsageError for a ``--name`` where there is no file to choose from.
    """
    if what == "-" or what.endswith(_SUFFIXES) or "/" in what or Path(what).exists():
        return True
    if name is not None:
        raise UsageError(f"--name chooses a plan of a file, and there is no file {what}")
    return False


def check_files(paths: Sequence[str]) -> tuple[Checked, ...]:
    """Every plan of the files. Raises InputError for files that cannot be read."""
    return tuple(_check(found) for found in read_plans(paths, standard_input=sys.stdin))


def _check(found: PlanDocument) -> Checked:
    try:
        return Checked(document=found.document, plan=resolve(found.document.body, found.references), problems=())
    except InvalidPlan as error:
        problems = tuple(in_file(found.document, problem) for problem in error.problems)
        return Checked(document=found.document, plan=None, problems=problems)


def plans_from(paths: Sequence[str], name: str | None = None) -> tuple[Plan, ...]:
    """The plans of the files, or the one of that name. Raises InputError with all problems, UsageError for the name."""
    return tuple(plan for plan, _ in _checked_from(paths, name))


def _checked_from(paths: Sequence[str], name: str | None) -> tuple[tuple[Plan, Mapping[str, Any]], ...]:
    checked = check_files(paths)
    if name is not None:
        known = ", ".join(found.document.name for found in checked)
        checked = tuple(found for found in checked if found.document.name == name)
        if not checked:
            raise UsageError(f"there is no plan {name!r} in {', '.join(paths)}; there are: {known}")
    problems = [problem for found in checked for problem in found.problems]
    if problems:
        raise InputError(*problems)
    return tuple((found.plan, found.document.body) for found in checked if found.plan is not None)


def one_plan_from(path: str, name: str | None, *, option: str) -> Plan:
    """The only plan of a file, or the one of that name. Raises UsageError where there are several."""
    return one_checked_from(path, name, option=option)[0]


def one_checked_from(path: str, name: str | None, *, option: str) -> tuple[Plan, Mapping[str, Any]]:
    """The same, with the ServingPlan as it is written."""
    found = _checked_from([path], name)
    if len(found) > 1:
        names = ", ".join(plan.name for plan, _ in found)
        raise UsageError(f"{path} holds several plans ({names}): choose one with {option}")
    return found[0]
