"""What the verbs of ``profile`` share: options for the suggested plan, and how a profile is printed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from servingplan.cli.extras import needed
from servingplan.cli.instants import now, parse_span
from servingplan.cli.output import (
    HTML,
    JSON,
    PNG,
    SVG,
    TABLE,
    YAML,
    emit,
    loading_pictures,
    output_option,
    talk,
    with_options,
    write_image,
    yaml_text,
)
from servingplan.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from servingplan.profiling.manifests import Wishes
    from servingplan.profiling.profile import Profile

MANIFESTS = "manifests"
_NAMELESS = "workload"
_COMING_YEARS = 2
"""Years of holidays that a calendar holds after the present one."""

_API_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "ScaledObject": "keda.sh/v1alpha1",
}

suggestion_options = with_options(
    click.option("--name", help="Name of the plan; -o manifests needs it."),
    click.option("-n", "--namespace", default="default", show_default=True, help="Its namespace."),
    click.option("--capacity", metavar="RPS", help="What one replica serves within its objectives, in requests/s."),
    click.option("--target", metavar="KIND/NAME", help="What runs.  [default: Deployment/NAME]"),
    click.option(
        "--lead", default="10m", show_default=True, metavar="SPAN", help="How long a replica takes to be ready."
    ),
    click.option(
        "--follow",
        type=click.Choice(["windows", "profile"]),
        default="windows",
        show_default=True,
        help="A schedule of few windows, or of the profile's every slot.",
    ),
    click.option("--windows", type=click.IntRange(0, 8), help="How many windows.  [default: those that pay]"),
    output_option(TABLE, JSON, YAML, MANIFESTS, HTML, SVG, PNG),
)
"""The options of a suggested plan, and the output's form; passed on as keyword arguments of `printed`."""

holidays_option = click.option("--holidays", metavar="PLACE", help="Name days off, suggest a calendar: DE, or DE-BE.")
"""Where holidays count."""

week_options = with_options(
    click.option(
        "--slot", type=click.Choice(["hour", "10m"]), help="Steps of the week.  [default: what the log allows]"
    ),
    click.option(
        "--across",
        type=click.Choice(["median", "highest"]),
        default="median",
        show_default=True,
        help="What stands for several weeks.",
    ),
    holidays_option,
)
"""The options of how a week is made."""


log_options = with_options(
    click.option(
        "--log-time-zone", metavar="ZONE", help="Of logged times without an offset.  [default: that of the week]"
    ),
    click.option("--start", metavar="T", help="When a log begins that counts its times from 0."),
    click.option("--year", type=click.IntRange(2000, 2100), help="Of times that name none, as vLLM's."),
    click.option("--format", "form", metavar="FORMAT", help="Format of all logs.  [default: each is recognised]"),
    click.option("--column", "columns", multiple=True, metavar="MEANING=NAME", help="Which column is what: time=ts."),
    click.option("--path", "paths", metavar="REGEX", help="Paths of requests that count.  [default: those for tokens]"),
    click.option(
        "--broken",
        type=click.FloatRange(0, 100),
        default=1.0,
        show_default=True,
        metavar="PERCENT",
        help="Lines of a file that may be broken.",
    ),
    click.option("--deferrable", multiple=True, metavar="WHAT=VALUE", help="Requests that can wait: tenant=nightly."),
)
"""The options of how logs are read."""

_LOG_FLAGS = ("log_time_zone", "start", "year", "form", "columns", "paths", "broken", "deferrable")


def log_flags(flags: dict[str, Any]) -> dict[str, Any]:
    """The options of `log_options`, taken out of all that a verb was given."""
    return {name: flags.pop(name) for name in _LOG_FLAGS}


def named_values(option: str, texts: tuple[str, ...], known: tuple[str, ...]) -> dict[str, list[str]]:
    """``tenant=nightly`` as lists by what stands before the sign. Raises UsageError."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not value or name not in known:
            raise UsageError(f"{option} {text!r}: write one of {', '.join(known)}, =, and a name: {known[0]}=NAME")
        found.setdefault(name, []).append(value)
    return found


def needs_profiling() -> None:
    """Raises UsageError where the packages of ``servingplan[profile]`` are missing."""
    with needed("profile", extra="profile"):
        import numpy  # noqa: F401, PLC0415  asked for


def holiday_names(place: str | None, first_year: int) -> Mapping[date, str]:
    """Holidays from a year to some years ahead; none where no place is stated. Raises UsageError."""
    if place is None:
        return {}
    try:
        from servingplan.profiling.holidays import holidays_of  # noqa: PLC0415  takes a moment, and a package of its own
    except ModuleNotFoundError as error:
        raise UsageError("--holidays needs holidays: pip install 'servingplan[profile]'") from error
    return holidays_of(place, range(first_year, now().year + _COMING_YEARS + 1))


def printed(profile: Profile, *, output: str, **chosen: Any) -> None:
    """Print a profile in the form that is asked for."""
    from servingplan.profiling.record import document  # noqa: PLC0415  loads numpy

    if output == MANIFESTS:
        if chosen["name"] is None:
            raise UsageError("-o manifests needs --name, the plan's name")
        _manifests(profile, _wishes(profile, **chosen))
    elif output in {SVG, PNG}:
        with loading_pictures(output):
            from servingplan.reporting.profile_chart import week_chart  # noqa: PLC0415  matplotlib takes a second
            from servingplan.reporting.profile_rows import schedule_rows  # noqa: PLC0415  loads numpy

        def draw() -> bytes:
            return week_chart(profile, schedule_rows(profile, _wishes(profile, **chosen)), output)

        write_image(output, draw, example="week.png")
    elif output == HTML:
        with loading_pictures(output):
            from servingplan.reporting.profile_html import page  # noqa: PLC0415  as above
        click.echo(page(profile, _wishes(profile, **chosen)))
    else:
        emit(output, document(profile), lambda: _view(profile, _wishes(profile, **chosen)))


def _view(profile: Profile, wishes: Wishes) -> RenderableType:
    from servingplan.reporting.profile_tables import profile_view  # noqa: PLC0415  JSON needs no tables

    return profile_view(profile, wishes)


def _manifests(profile: Profile, wishes: Wishes) -> None:
    from servingplan.profiling.manifests import suggestion  # noqa: PLC0415  loads numpy

    found = suggestion(profile, wishes)
    for remark in found.remarks:
        talk(f"Note: {remark}.")
    sys.stdout.write(yaml_text(found.objects))


def _wishes(
    profile: Profile,
    *,
    name: str | None,
    namespace: str,
    capacity: str | None,
    target: str | None,
    lead: str,
    follow: str,
    windows: int | None,
    holidays: str | None,
) -> Wishes:
    from servingplan.profiling.manifests import Follow, Wishes  # noqa: PLC0415  loads numpy

    return Wishes(
        name=name or _NAMELESS,
        namespace=namespace,
        target=_target(target or f"Deployment/{name or _NAMELESS}"),
        capacity=None if capacity is None else _positive(capacity),
        lead=parse_span(lead, "--lead"),
        follow=Follow(follow),
        windows=windows,
        holidays=holiday_names(holidays, profile.start.year),
    )


def _positive(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise UsageError(f"--capacity {text!r} is no number of requests/s") from None
    if not (number.is_finite() and number > 0):
        raise UsageError(f"--capacity {text} must be more than 0 requests/s")
    return number


def _target(text: str) -> dict[str, str]:
    version, _, rest = text.rpartition("/")
    kind = version.rpartition("/")[2]
    stated = version.rpartition("/")[0] or _API_VERSIONS.get(kind, "")
    if not kind or not rest or not stated:
        raise UsageError(
            f"--target {text!r}: write KIND/NAME of {', '.join(_API_VERSIONS)}, or apps/v1/KIND/NAME of others"
        )
    return {"apiVersion": stated, "kind": kind, "name": rest}
