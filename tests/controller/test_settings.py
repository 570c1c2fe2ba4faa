"""Settings: flags before variables before defaults, and a demo clock that needs two switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from servingplan.controller.clock import SystemClock
from servingplan.controller.settings import DEMO_CLOCK_ALLOWED, LogFormat, read_settings
from servingplan.errors import UsageError

DEMO = "2026-12-01T06:30:00+01:00@60x,since=2026-11-29T20:00:00Z"


def test_nothing_stated_gives_the_defaults() -> None:
    settings = read_settings({}, {})
    assert settings.namespaces == ()
    assert settings.leader_election
    assert settings.log_format is LogFormat.JSON
    assert isinstance(settings.clock(), SystemClock)


def test_a_flag_counts_before_its_variable_and_a_flag_not_given_does_not() -> None:
    environ = {"SERVINGPLAN_WORKERS": "8", "SERVINGPLAN_HEALTH_PORT": "9090", "SERVINGPLAN_CONTEXT": ""}
    settings = read_settings({"workers": 2, "health_port": None, "context": None}, environ)
    assert (settings.workers, settings.health_port, settings.context) == (2, 9090, None)


def test_variables_are_read_as_people_write_them() -> None:
    environ = {
        "SERVINGPLAN_NAMESPACES": "llm, batch,llm",
        "SERVINGPLAN_RELIST_SECONDS": "2m",
        "SERVINGPLAN_LEADER_ELECTION": "false",
        "SERVINGPLAN_KUBECONFIG": "/etc/kube/config",
    }
    settings = read_settings({}, environ)
    assert settings.namespaces == ("batch", "llm")
    assert settings.relist_seconds == 120
    assert not settings.leader_election
    assert settings.kubeconfig == Path("/etc/kube/config")


def test_two_installations_have_two_field_managers_and_two_leases() -> None:
    usual, second = read_settings({}, {}), read_settings({"installation": "team-b"}, {})
    assert (usual.field_manager, usual.lease_name) == ("servingplan", "servingplan-operator")
    assert (second.field_manager, second.lease_name) == ("servingplan-team-b", "servingplan-team-b-operator")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"workers": 0}, "--workers (or SERVINGPLAN_WORKERS)"),
        ({"health_port": 70000}, "--health-port"),
        ({"relist_seconds": "soon"}, "'soon' is not a duration"),
        ({"relist_seconds": "1s"}, "--relist-seconds"),
        ({"namespaces": "Team A"}, "'Team A' is no name of a namespace"),
        ({"installation": "Prod!"}, "lower-case letters"),
        ({"log_format": "xml"}, "--log-format"),
        ({"colour": "red"}, "no such setting: colour"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_setting_is_named_by_its_flag(flags: dict, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_settings(flags, {})
    assert says in str(refused.value)


def test_all_wrong_settings_are_named_at_once() -> None:
    with pytest.raises(UsageError) as refused:
        read_settings({"workers": 0, "log_level": "loud"}, {})
    assert "--workers" in str(refused.value)
    assert "--log-level" in str(refused.value)


@pytest.mark.parametrize("allowed", [None, "", "no", "YES", "true", "1"])
def test_the_demo_clock_needs_its_second_switch(allowed: str | None) -> None:
    environ = {} if allowed is None else {DEMO_CLOCK_ALLOWED: allowed}
    with pytest.raises(UsageError, match=f"{DEMO_CLOCK_ALLOWED}=yes"):
        read_settings({"demo_clock": DEMO}, environ)


def test_the_second_switch_alone_changes_nothing() -> None:
    assert isinstance(read_settings({}, {DEMO_CLOCK_ALLOWED: "yes"}).clock(), SystemClock)


def test_a_demo_clock_that_cannot_be_read_is_refused_at_the_start() -> None:
    with pytest.raises(UsageError, match="from 1x to 3600x"):
        read_settings({"demo_clock": "2026-12-01T06:30:00Z@9000x"}, {DEMO_CLOCK_ALLOWED: "yes"})


def test_an_anchor_that_was_not_given_is_fixed_once_for_all_clocks() -> None:
    settings = read_settings({"demo_clock": "2026-12-01T06:30:00Z@60x"}, {DEMO_CLOCK_ALLOWED: "yes"})
    assert ",since=" in settings.demo_clock
    assert settings.clock().describe() == settings.clock().describe() == settings.demo_clock
