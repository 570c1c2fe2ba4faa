"""The program in this process, and files for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from servingplan.cli.program import program
from support.specs import document

Cli = Callable[..., Result]


@pytest.fixture
def cli() -> Cli:
    """Run a verb in this process, 80 columns wide."""
    return lambda *arguments, **options: CliRunner(env={"COLUMNS": "80"}).invoke(program, arguments, **options)


@pytest.fixture
def plan_file(tmp_path: Path) -> Callable[..., str]:
    """Write ServingPlans (or any objects) to a file; without any, the worked example with fields replaced."""

    def write(*objects: dict[str, Any], name: str = "plan.yaml", **spec: Any) -> str:
        file = tmp_path / name
        file.write_text("\n---\n".join(json.dumps(value) for value in objects or (document(**spec),)))
        return str(file)

    return write
