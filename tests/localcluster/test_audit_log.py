"""Reading the API server's audit log."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from servingplan.localcluster.audit import AuditLog


def event(**changes):
    return {
        "requestReceivedTimestamp": "2026-12-01T06:48:00.250000Z",
        "verb": "patch",
        "requestURI": "/apis/apps/v1/namespaces/llm/deployments/chat/scale?fieldManager=x",
        "user": {"username": "system:serviceaccount:servingplan:operator"},
        "userAgent": "servingplan/0.1",
        "objectRef": {
            "apiGroup": "apps",
            "resource": "deployments",
            "subresource": "scale",
            "namespace": "llm",
            "name": "chat",
        },
        "responseStatus": {"code": 200},
    } | changes


@pytest.fixture
def audit(tmp_path):
    path = tmp_path / "audit.log"

    def written(*events, rest=""):
        path.write_text("".join(json.dumps(each) + "\n" for each in events) + rest)
        return AuditLog(path)

    return written


def test_a_write_is_read_with_all_that_identifies_it(audit):
    (write,) = audit(event()).entries()
    assert (write.verb, write.api_group, write.resource, write.subresource) == ("patch", "apps", "deployments", "scale")
    assert (write.namespace, write.name, write.code) == ("llm", "chat", 200)
    assert (write.user, write.user_agent) == ("system:serviceaccount:servingplan:operator", "servingplan/0.1")
    assert write.time == datetime(2026, 12, 1, 6, 48, 0, 250000, tzinfo=UTC)
    assert not write.dry_run


def test_an_impersonated_user_is_the_one_who_wrote(audit):
    (write,) = audit(event(impersonatedUser={"username": "stranger"})).entries()
    assert write.user == "stranger"


def test_a_dry_run_is_told_apart(audit):
    (write,) = audit(event(requestURI="/api/v1/namespaces/llm/configmaps?dryRun=All")).entries()
    assert write.dry_run


def test_entries_are_filtered_by_arrival_and_user(audit):
    log = audit(event(), event(requestReceivedTimestamp="2026-12-01T07:00:00Z", user={"username": "admin"}))
    assert [write.user for write in log.entries(since=datetime(2026, 12, 1, 7, tzinfo=UTC))] == ["admin"]
    assert [write.time.minute for write in log.entries(user="system:serviceaccount:servingplan:operator")] == [48]


def test_a_line_that_is_still_being_written_is_left_for_later(audit):
    assert len(audit(event(), rest='{"verb": "pat').entries()) == 1


def test_a_log_that_does_not_exist_yet_is_empty(tmp_path):
    assert AuditLog(tmp_path / "none").entries() == []
