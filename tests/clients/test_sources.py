"""The sources file: what an administrator may say, and every mistake in it at once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from servingplan.clients.engine_series import NoReading
from servingplan.clients.sources import DEFAULT_TIMEOUT_S, Authorization, Source, parse_sources, read_sources
from servingplan.errors import UsageError
from servingplan.planning.reasons import Reason

FULL = """\
sources:
  default:
    url: https://prometheus.monitoring.svc:9090/prefix/
    caFile: /etc/sources/default/ca.crt
    basicAuth: {usernameFile: /etc/sources/default/username, passwordFile: /etc/sources/default/password}
    tenant: {name: X-Scope-OrgID, value: team-a}
    timeout: 1500ms
    matchers: {cluster: berlin-1}
  mimir:
    url: http://mimir:8080/prometheus
    bearerTokenFile: /etc/sources/mimir/token
"""


def one(**stated: object) -> Source:
    return parse_sources({"sources": {"default": {"url": "http://prometheus:9090", **stated}}}, where="f")["default"]


def test_a_file_that_says_everything_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text(FULL)

    sources = read_sources(file)

    default = sources["default"]
    assert default.url == "https://prometheus.monitoring.svc:9090/prefix"
    assert (default.timeout, dict(default.matchers)) == (1.5, {"cluster": "berlin-1"})
    assert (default.tenant.name, default.tenant.value) == ("X-Scope-OrgID", "team-a")
    assert default.basic_auth.password_file == Path("/etc/sources/default/password")
    assert (sources["mimir"].timeout, sources["mimir"].bearer_token_file) == (
        DEFAULT_TIMEOUT_S,
        Path("/etc/sources/mimir/token"),
    )


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        pytest.param({"url": "prometheus:9090"}, "no address", id="no scheme"),
        pytest.param({"url": "ftp://prometheus"}, "no address", id="another scheme"),
        pytest.param({"url": "http://prometheus:port"}, "no address", id="a port that is none"),
        pytest.param({"url": "http://user:secret@prometheus"}, "credentials are files", id="a password in the address"),
        pytest.param({"url": "http://prometheus/?a=b"}, "no user, password, query", id="a query"),
        pytest.param({"caFile": "/ca"}, "needs an address that begins with https", id="a CA without TLS"),
        pytest.param(
            {"bearerTokenFile": "/t", "basicAuth": {"usernameFile": "/u", "passwordFile": "/p"}},
            "exclude each other",
            id="two ways to log in",
        ),
        pytest.param({"basicAuth": {"usernameFile": "/u"}}, "passwordFile", id="a user without a password"),
        pytest.param({"tenant": {"name": "Authorization", "value": "x"}}, "cannot be a tenant's", id="our own header"),
        pytest.param({"tenant": {"name": "X-A", "value": "a\r\nB: c"}}, "printable", id="a header in a header"),
        pytest.param({"timeout": "soon"}, "not a duration", id="no duration"),
        pytest.param({"timeout": "20s"}, "less than or equal to 9", id="longer than a poll"),
        pytest.param({"matchers": {"pod": "a"}}, "cannot be matched", id="a label of ours"),
        pytest.param({"query": "up"}, "query", id="a field that does not exist"),
    ],
)
def test_what_cannot_be_is_refused(stated: dict, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        one(**stated)


def test_every_problem_is_named_at_once_with_its_place() -> None:
    document = {"sources": {"a": {"url": "nowhere"}, "b": {"timeout": -1}, "Bad Name": {"url": "http://p"}}}
    with pytest.raises(UsageError) as caught:
        parse_sources(document, where="/etc/sources.yaml")
    text = str(caught.value)
    for part in ("/etc/sources.yaml", "sources.a.url", "sources.b.url", "sources.b.timeout", "'Bad Name'"):
        assert part in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("sources: [", "no YAML", id="no YAML"),
        pytest.param("- a", "valid dictionary", id="a list"),
        pytest.param("", "valid dictionary", id="empty"),
        pytest.param("source: {}", "sources", id="a misspelt key"),
    ],
)
def test_a_file_that_is_no_sources_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(UsageError, match=says):
        read_sources(tmp_path / "s.yaml")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_sources(tmp_path / "none.yaml")


def test_a_rotated_secret_is_used_with_the_next_request(tmp_path: Path) -> None:
    """As the kubelet does it: the mounted name is a link into a folder that is replaced at once."""
    for version, token in (("1", "first"), ("2", "other")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "token").write_text(f"{token}\n")
        os.utime(tmp_path / version / "token", (1, 1))
    (tmp_path / "current").symlink_to("1")
    authorization = Authorization("default", one(bearerTokenFile=str(tmp_path / "current" / "token")))
    before = authorization.headers()
    (tmp_path / "new").symlink_to("2")
    (tmp_path / "new").rename(tmp_path / "current")

    assert (before, authorization.headers()) == ({"Authorization": "Bearer first"}, {"Authorization": "Bearer other"})


def test_basic_authentication_and_tenant_are_headers(tmp_path: Path) -> None:
    (tmp_path / "u").write_text("planner\n")
    (tmp_path / "p").write_text("päss\n")
    source = one(
        basicAuth={"usernameFile": str(tmp_path / "u"), "passwordFile": str(tmp_path / "p")},
        tenant={"name": "X-Scope-OrgID", "value": "a|b"},
    )
    assert Authorization("default", source).headers() == {
        "Authorization": "Basic cGxhbm5lcjpww6Rzcw==",
        "X-Scope-OrgID": "a|b",
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(None, "cannot be read", id="missing"),
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"a\nb", "more than one line", id="two lines"),
        pytest.param(b"\xff\xfe", "no text", id="binary"),
    ],
)
def test_a_secret_that_cannot_be_used_is_a_reason_and_no_crash(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    authorization = Authorization("default", one(bearerTokenFile=str(tmp_path / "token")))
    with pytest.raises(NoReading, match=says) as caught:
        authorization.headers()
    assert caught.value.reason is Reason.METRICS_REFUSED
    assert "source default: bearerTokenFile" in str(caught.value)


def test_whom_to_trust_changes_with_the_file_only(tmp_path: Path) -> None:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out ca.pem -days 2 -subj /CN=ca"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    authorization = Authorization("default", one(url="https://prometheus", caFile=str(tmp_path / "ca.pem")))
    first = authorization.trusted()

    assert first is not None
    assert authorization.trusted() is first
    assert [ca["subject"] for ca in first.get_ca_certs()] == [((("commonName", "ca"),),)]
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(NoReading, match="holds no certificate"):
        authorization.trusted()


def test_an_address_without_tls_trusts_nobody() -> None:
    assert Authorization("default", one()).trusted() is None
