"""The program: its verbs, loaded when they are called, and the edge where errors become exit codes.

In: arguments. Out: the verb's output, or problems on standard error and an exit code. Imports no verb by itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from servingplan import __version__
from servingplan.errors import CheckFailed, ClusterError, InputError, ServingPlanError, UsageError

OK, PROBLEMS, USAGE, CLUSTER, CHECK = range(5)
"""Exit codes: fine; problems in the input; wrong usage; the cluster or a server; a check does not hold."""

_EXIT_CODES: Sequence[tuple[type[ServingPlanError], int]] = (
    (InputError, PROBLEMS),
    (UsageError, USAGE),
    (ClusterError, CLUSTER),
    (CheckFailed, CHECK),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A verb that is not imported yet. place: module and name, as in ``package.module:command``."""

    place: str
    summary: str
    section: str


_OFFLINE, _ON_CALL, _RUN = "Without a cluster", "For people on call", "Run it"


def _verb(name: str, section: str, summary: str) -> Verb:
    return Verb(place=f"servingplan.cli.{name}:command", summary=summary, section=section)


VERBS: Mapping[str, Verb] = {
    "plan": _verb("plan", _OFFLINE, "Show the coming days: replicas, lead, GPU-hours against a flat peak."),
    "validate": _verb("validate", _OFFLINE, "List every problem of plans, as the operator would."),
    "explain": _verb("explain", _OFFLINE, "Say why so many replicas, of a file or of a plan in the cluster."),
    "render": _verb("render", _OFFLINE, "Print the objects that the operator would apply."),
    "size": _verb("size", _OFFLINE, "Size a model: weights, KV cache, GPUs, replicas for base, burst and failure."),
    "profile": _verb("profile", _OFFLINE, "Learn the week of a workload from its logs, and suggest a plan."),
    "simulate": _verb("simulate", _OFFLINE, "Play a plan, and what else one might run, against a trace."),
    "bench": _verb("bench", _OFFLINE, "Measure what one replica serves at the objectives, and what binds it."),
    "evaluate": _verb("evaluate", _OFFLINE, "Say whether a variant is shown to be no worse than what serves."),
    "lint": _verb("lint", _OFFLINE, "Say what KEDA's cron triggers really do in the next year."),
    "import": _verb("importing", _OFFLINE, "Make a plan of KEDA's cron triggers."),
    "emit": _verb(
        "emit", _OFFLINE, "Print manifests for KEDA, HPA or CronJobs that do what a plan does for some weeks."
    ),
    "crd": _verb("crd", _OFFLINE, "Print the CustomResourceDefinitions."),
    "status": _verb("status", _ON_CALL, "Show plans in the cluster, and what is not good."),
    "next": _verb("next", _ON_CALL, "Show what happens next, and when."),
    "bill": _verb(
        "bill", _ON_CALL, "Show what a week cost: planned, spent, flat, and reactive autoscalers on the same arrivals."
    ),
    "suspend": _verb("suspend", _ON_CALL, "Keep a plan from changing replicas."),
    "resume": _verb("resume", _ON_CALL, "Let a suspended plan act again."),
    "override": _verb("override", _ON_CALL, "Ask for other replicas for some hours."),
    "operator": _verb("operator", _RUN, "Run the operator."),
    "demo": _verb("demo", _RUN, "Watch a working day in a few minutes, on a real control plane."),
}


class LazyProgram(click.Group):
    """Verbs are imported when called; errors of the package become exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """The verbs in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  as above
        """The verb of that name, imported now."""
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        module, name = verb.place.split(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{verb.place} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        """The verbs by section, from their summaries: no import."""
        for section in dict.fromkeys(verb.section for verb in VERBS.values()):
            with formatter.section(section):
                formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items() if verb.section == section])

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb; errors are told, and end the process with their code."""
        try:
            return super().invoke(ctx)
        except ServingPlanError as error:
            _tell(error, ctx)
            ctx.exit(next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), CLUSTER))


def _tell(error: ServingPlanError, ctx: click.Context) -> None:
    if isinstance(error, InputError):
        from servingplan.cli.problems import tell_problems  # noqa: PLC0415  only where there are problems

        tell_problems(error.problems, ctx)
    else:
        click.echo(f"Error: {error}", err=True)


@click.group(
    cls=LazyProgram,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 fine; 1 the input has problems; 2 wrong usage; 3 the cluster cannot be reached or refuses; "
    "4 a check that was asked for does not hold.",
)
@click.version_option(__version__, "-V", "--version", message="servingplan %(version)s")
def program() -> None:
    """Self-hosted LLM replicas that are ready before the ramp.

    Start with: servingplan plan FILE
    """
