"""What requests count as: the words of the API server's audit log, with few distinct values."""

from __future__ import annotations

import pytest

from servingplan.clients.accounting import describe_request


@pytest.mark.parametrize(
    ("method", "path", "query", "counted"),
    [
        ("GET", "/api/v1/namespaces/llm/pods/chat-0", {}, ("get", "pods")),
        ("GET", "/api/v1/namespaces/llm/pods", {"labelSelector": "a=b"}, ("list", "pods")),
        ("GET", "/api/v1/pods", {"watch": "true"}, ("watch", "pods")),
        (
            "GET",
            "/apis/servingplan.dev/v1alpha1/servingplans",
            {"watch": "1"},
            ("watch", "servingplans.servingplan.dev"),
        ),
        ("GET", "/api/v1/nodes", {}, ("list", "nodes")),
        ("GET", "/api/v1/namespaces", {}, ("list", "namespaces")),
        ("GET", "/api/v1/namespaces/llm", {}, ("get", "namespaces")),
        ("PATCH", "/apis/apps/v1/namespaces/llm/deployments/chat/scale", {}, ("patch", "deployments.apps/scale")),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/x/leases/y", {}, ("update", "leases.coordination.k8s.io")),
        ("POST", "/apis/events.k8s.io/v1/namespaces/x/events", {}, ("create", "events.events.k8s.io")),
        ("DELETE", "/api/v1/namespaces/llm/services/chat", {}, ("delete", "services")),
        ("GET", "/apis/apps/v1", {}, ("get", "discovery")),
        ("GET", "/api", {}, ("get", "discovery")),
        ("GET", "/version", {}, ("get", "discovery")),
        ("GET", "/", {}, ("get", "discovery")),
    ],
)
def test_a_request_counts_as_the_audit_log_names_it(method, path, query, counted) -> None:
    assert describe_request(method, path, query) == counted
