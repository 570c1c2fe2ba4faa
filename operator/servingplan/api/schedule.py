"""The wire of the schedule: base, windows, profile, calendars and overrides.

Place in the flow: part of ``v1alpha1``; ``resolve`` turns it into the values of ``planning.plan``.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from servingplan.api import rules
from servingplan.api.wire import (
    AS_SET,
    LOCAL_TIME_PATTERN,
    ConfigMapName,
    Duration,
    Name,
    Replicas,
    RequestsPerSecond,
    Wire,
    map_by,
    ruled,
)

Weekday = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
WallTime = Annotated[str, Field(max_length=5, json_schema_extra=ruled(rules.WALL_TIME))]
LocalTime = Annotated[str, Field(max_length=16, pattern=LOCAL_TIME_PATTERN)]
Cron = Annotated[str, Field(max_length=100, json_schema_extra=ruled(rules.PLAIN_CRON))]


class BaseSpec(Wire):
    """Demand outside all windows."""

    requests_per_second: RequestsPerSecond = Field(description="Requests/s where nothing else applies.")


class WindowSpec(Wire):
    """A recurring interval with its own demand, weekly (days, start, end) or by cron (cron, duration)."""

    keeps: ClassVar = (rules.WINDOW_FORM, rules.ONE_LEVEL, rules.CRON_DURATION)

    name: Name = Field(description="Name of the window, unique in the plan; shown in status and events.")
    days: Annotated[list[Weekday], Field(min_length=1, max_length=7)] | None = Field(
        default=None, description="Weekdays on which it starts, in the plan's zone.", json_schema_extra=AS_SET
    )
    start: WallTime | None = Field(default=None, description="Wall time at which it starts, for example 08:00.")
    end: WallTime | None = Field(
        default=None, description="Wall time at which it ends; at or before the start it is on the next date."
    )
    cron: Cron | None = Field(
        default=None, description="Cron expression with a plain minute and hour, in the plan's zone."
    )
    duration: Duration | None = Field(default=None, description="Elapsed time of a cron window, at most 168h.")
    requests_per_second: RequestsPerSecond | None = Field(
        default=None, description="Demand inside the window: the busiest five minutes, in requests/s."
    )
    replicas: Replicas | None = Field(
        default=None, description="Total replicas that must be ready inside the window, reserve included."
    )


class ProfileSpec(Wire):
    """The week by its busiest five minutes."""

    config_map: ConfigMapName = Field(description="ConfigMap with the key profile.csv.")


class CalendarSpec(Wire):
    """Dates that are not ordinary."""

    keeps: ClassVar = (rules.CALENDAR_FORM,)

    name: Name = Field(description="Name of the calendar, unique in the plan.")
    config_map: ConfigMapName = Field(description="ConfigMap with the key calendar.ics or dates.")
    treat_as: Literal["Base", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] | None = Field(
        default=None, description="Base: no windows start on its dates. Mon to Sun: they are like that weekday."
    )
    requests_per_second: RequestsPerSecond | None = Field(
        default=None, description="Demand on its dates, from local midnight to midnight, in requests/s."
    )


class OverrideSpec(Wire):
    """A one-off level that goes before everything else."""

    keeps: ClassVar = (rules.OVERRIDE_ORDERED, rules.ONE_LEVEL)

    name: Name = Field(description="Name of the override, unique in the plan.")
    start: LocalTime = Field(description="Local time at which it starts, for example 2026-12-01T07:00.")
    end: LocalTime = Field(description="Local time at which it ends.")
    requests_per_second: RequestsPerSecond | None = Field(default=None, description="Demand, in requests/s.")
    replicas: Replicas | None = Field(default=None, description="Total replicas, reserve included.")


class ScheduleSpec(Wire):
    """When how much demand is expected."""

    time_zone: Annotated[str, Field(min_length=1, max_length=64)] = Field(
        description="IANA time zone of every wall time in the plan, for example Europe/Berlin."
    )
    base: BaseSpec = Field(description="Demand where nothing else applies.")
    windows: Annotated[list[WindowSpec], Field(max_length=64)] = Field(
        default=[],
        description="Recurring windows; of those that overlap the largest counts.",
        json_schema_extra=map_by("name"),
    )
    profile: ProfileSpec | None = Field(default=None, description="Demand by hour of the week.")
    calendars: Annotated[list[CalendarSpec], Field(max_length=16)] = Field(
        default=[], description="Holidays and other special dates.", json_schema_extra=map_by("name")
    )
    overrides: Annotated[list[OverrideSpec], Field(max_length=64)] = Field(
        default=[],
        description="One-off levels; of those active the one with the latest start counts.",
        json_schema_extra=map_by("name"),
    )
