"""``servingplan operator``: run the operator until it is told to stop.

Its options are the fields of the operator's settings, so that flags, variables and documentation cannot differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from servingplan.controller.settings import ENVIRONMENT_PREFIX, OperatorSettings, read_settings
from servingplan.errors import UsageError


def _settings_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, field in reversed(OperatorSettings.model_fields.items()):
        flag = f"--{name.replace('_', '-')}"
        is_switch = field.annotation is bool
        function = click.option(
            f"{flag}/--no-{name.replace('_', '-')}" if is_switch else flag,
            name,
            default=None,
            help=f"{field.description} [{ENVIRONMENT_PREFIX}{name.upper()}]",
        )(function)
    return function


@click.command("operator")
@_settings_options
def command(**flags: Any) -> None:
    """Run the operator. Every option can be set by the environment variable in brackets."""
    settings = read_settings(flags, os.environ)
    try:
        from servingplan.controller.app import run  # noqa: PLC0415  options are checked before the operator loads
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("servingplan"):
            raise
        raise UsageError(f"{error.name} is missing: install servingplan[operator]") from error
    run(settings)
