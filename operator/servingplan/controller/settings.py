"""The operator's settings, from flags and environment, checked once at the start.

In: what the command line and the environment state. Out: `OperatorSettings`, or one UsageError with everything
that is wrong. A flag counts before its variable, a variable before the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from servingplan.controller.clock import Clock, SystemClock, parse_demo_clock
from servingplan.errors import UsageError
from servingplan.planning.units import parse_duration
from servingplan.rendering.metadata import DEFAULT_INSTALLATION, field_manager

ENVIRONMENT_PREFIX = "SERVINGPLAN_"
DEMO_CLOCK_ALLOWED = "SERVINGPLAN_DEMO_CLOCK_ALLOWED"

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST_INSTALLATION = 40  # it becomes part of the Lease's name and of the field manager


class LogFormat(StrEnum):
    """How a log line looks."""

    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """What is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _seconds(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return parse_duration(value).total_seconds()


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
Seconds = Annotated[float, BeforeValidator(_seconds)]


class OperatorSettings(BaseModel):
    """How one operator process runs. Seconds accept a number or a duration such as ``5m``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kubeconfig: Path | None = Field(None, description="kubeconfig file; default: the pod's account, then the usual")
    context: str | None = Field(None, description="context of the kubeconfig")
    namespaces: Names = Field((), description="namespaces to watch, comma-separated; none: all")
    installation: str = Field(DEFAULT_INSTALLATION, description="name of this installation: field manager and Lease")
    lease_namespace: str | None = Field(None, description="where the Lease lives; default: the pod's namespace")
    leader_election: bool = Field(True, description="false only for a single local process")
    health_host: str = Field("0.0.0.0", description="address for health and metrics")  # noqa: S104  probes come from the node
    health_port: int = Field(8080, ge=0, le=65535, description="port for health and metrics; 0: a free one")
    log_format: LogFormat = Field(LogFormat.JSON, description="json (one object a line) or text")
    log_level: LogLevel = Field(LogLevel.INFO, description="debug, info or warning")
    relist_seconds: Seconds = Field(300.0, ge=5, le=3600, description="full comparison with the cluster, every")
    runner_image: str | None = Field(
        None, description="image of evidence runners that state none: vLLM and servingplan[bench,evaluate]"
    )
    sources_file: Path | None = Field(None, description="YAML file of the Prometheus sources that plans may name")
    ledger_days: int = Field(
        35, ge=0, le=366, description="so many days of decisions are kept, for explain --at; 0: none are written down"
    )
    workers: int = Field(4, ge=1, le=64, description="reconciles at the same time")
    demo_clock: str | None = Field(
        None,
        description=f"START@FACTORx[,INSTANT@FACTORx...][,since=REAL], a faster clock; needs {DEMO_CLOCK_ALLOWED}=yes",
    )

    @field_validator("namespaces")
    @classmethod
    def _are_namespaces(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _DNS_LABEL.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a namespace")
        return tuple(sorted(set(value)))

    @field_validator("installation")
    @classmethod
    def _is_label(cls, value: str) -> str:
        if not _DNS_LABEL.fullmatch(value) or len(value) > _LONGEST_INSTALLATION:
            raise ValueError(
                f"{value!r} must be lower-case letters, digits and dashes, at most {_LONGEST_INSTALLATION}"
            )
        return value

    @property
    def field_manager(self) -> str:
        """The field manager of everything that this installation writes."""
        return field_manager(self.installation)

    @property
    def lease_name(self) -> str:
        """The name of the Lease that this installation's processes compete for."""
        return f"{self.field_manager}-operator"

    def clock(self) -> Clock:
        """Make the clock that plans are evaluated on. Raises UsageError for a demo clock that cannot be read."""
        return SystemClock() if self.demo_clock is None else parse_demo_clock(self.demo_clock)


def read_settings(flags: Mapping[str, Any], environ: Mapping[str, str]) -> OperatorSettings:
    """Combine flags (None: not given) with ``SERVINGPLAN_<FIELD>`` variables and check them.

    Raises UsageError that names every setting that is wrong, by flag, and the demo clock's second switch where
    it is missing.
    """
    stated: dict[str, Any] = {}
    for field in OperatorSettings.model_fields:
        variable = environ.get(ENVIRONMENT_PREFIX + field.upper())
        if flags.get(field) not in (None, ()):
            stated[field] = flags[field]
        elif variable not in (None, ""):
            stated[field] = variable
    unknown = sorted(set(flags) - set(OperatorSettings.model_fields))
    if unknown:
        raise UsageError(f"no such setting: {', '.join(unknown)}")
    try:
        settings = OperatorSettings(**stated)
    except ValidationError as error:
        raise UsageError("; ".join(_sentence(problem) for problem in error.errors())) from error
    return _with_anchored_clock(settings, environ)


def _with_anchored_clock(settings: OperatorSettings, environ: Mapping[str, str]) -> OperatorSettings:
    """Check the demo clock's second switch, and write its anchor down, so that every clock made is the same."""
    if settings.demo_clock is None:
        return settings
    if environ.get(DEMO_CLOCK_ALLOWED) != "yes":
        raise UsageError(
            f"--demo-clock {settings.demo_clock!r} makes the operator act at wrong times on a real cluster; it is "
            f"for demos and tests, and needs {DEMO_CLOCK_ALLOWED}=yes in the environment as well"
        )
    return settings.model_copy(update={"demo_clock": parse_demo_clock(settings.demo_clock).written()})


def _sentence(problem: Any) -> str:
    field = str(problem["loc"][0])
    text = str(problem["msg"]).removeprefix("Value error, ")
    return f"--{field.replace('_', '-')} (or {ENVIRONMENT_PREFIX}{field.upper()}): {text}"
