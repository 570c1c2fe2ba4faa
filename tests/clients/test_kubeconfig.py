"""Where the API server is found, and what is said when it is not."""

from __future__ import annotations

import base64
import json
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from servingplan.clients.credentials import EXEC_REFRESH_EARLY, ExecCredential, ExecPlugin, TokenFile
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.errors import Refused, Unreachable, UsageError


def config(**changes: object) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "contexts": [
            {"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "llm"}},
            {"name": "other", "context": {"cluster": "c", "user": "nobody"}},
            {"name": "anonymous", "context": {"cluster": "c"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://one:6443"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        **changes,
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def user(**stated: object) -> dict:
    return config(users=[{"name": "u", "user": stated}])


def cluster(**stated: object) -> dict:
    return config(clusters=[{"name": "c", "cluster": {"server": "https://one:6443", **stated}}])


async def test_the_current_context_gives_server_namespace_and_token(tmp_path: Path) -> None:
    endpoint = load_endpoint(kubeconfig=write(tmp_path / "config", config()))
    assert (endpoint.server, endpoint.namespace) == ("https://one:6443", "llm")
    assert (await endpoint.credentials.current()).token == "secret"


async def test_a_context_without_user_is_anonymous(tmp_path: Path) -> None:
    endpoint = load_endpoint(kubeconfig=write(tmp_path / "config", config()), context="anonymous")
    assert (await endpoint.credentials.current()).token is None


def test_the_first_of_several_files_counts(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a" / "config", {"current-context": "", "clusters": cluster(**{"proxy-url": "http://p"})["clusters"]}
    )
    second = write(tmp_path / "b" / "config", config())
    missing = tmp_path / "missing"
    endpoint = load_endpoint(environ={"KUBECONFIG": f"{first}:{missing}:{second}"})
    assert endpoint.proxy_url == "http://p"
    assert endpoint.namespace == "llm"


def test_files_are_found_beside_the_kubeconfig_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA TEXT")
    (tmp_path / "c.pem").write_text("CERT TEXT")
    (tmp_path / "k.pem").write_text("KEY TEXT")
    content = cluster(**{"certificate-authority": "ca.pem", "tls-server-name": "kubernetes"})
    content["users"] = [{"name": "u", "user": {"client-certificate": "c.pem", "client-key": "k.pem"}}]
    endpoint = load_endpoint(kubeconfig=write(tmp_path / "config", content))
    assert (endpoint.ca, endpoint.certificate, endpoint.key) == ("CA TEXT", "CERT TEXT", "KEY TEXT")
    assert endpoint.tls_server_name == "kubernetes"


def test_data_counts_before_a_file(tmp_path: Path) -> None:
    data = base64.b64encode(b"CA DATA").decode()
    content = cluster(**{"certificate-authority": "missing.pem", "certificate-authority-data": data})
    assert load_endpoint(kubeconfig=write(tmp_path / "config", content)).ca == "CA DATA"


def _pod(folder: Path) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text("first\n")
    (folder / "ca.crt").write_text("CA")
    (folder / "namespace").write_text("servingplan-system")
    return {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}


async def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    endpoint = load_endpoint(environ=_pod(tmp_path / "sa"), service_account=tmp_path / "sa")
    assert (endpoint.server, endpoint.namespace, endpoint.ca) == ("https://[fd00::1]:6443", "servingplan-system", "CA")
    assert (await endpoint.credentials.current()).token == "first"


def test_a_named_kubeconfig_counts_before_the_pod(tmp_path: Path) -> None:
    named = write(tmp_path / "config", config())
    endpoint = load_endpoint(kubeconfig=named, environ=_pod(tmp_path / "sa"), service_account=tmp_path / "sa")
    assert endpoint.server == "https://one:6443"


def test_a_pod_without_token_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="automountServiceAccountToken"):
        load_endpoint(environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, service_account=tmp_path)


@pytest.mark.parametrize(
    ("content", "context", "says"),
    [
        pytest.param(config(), "prod", "no context 'prod'; it has: anonymous, dev, other", id="unknown context"),
        pytest.param(config(), "other", "no user 'nobody'", id="unknown user"),
        pytest.param(config(clusters=[]), None, "no cluster 'c'; it has: none", id="unknown cluster"),
        pytest.param(config(**{"current-context": ""}), None, "no current-context", id="no context"),
        pytest.param(config(clusters=[{"name": "c", "cluster": {}}]), None, "has no server", id="no server"),
        pytest.param(user(**{"as": "admin", "token": "x"}), None, "impersonation", id="impersonation"),
        pytest.param(user(**{"auth-provider": {"name": "gcp"}}), None, "use exec", id="auth provider"),
        pytest.param(user(username="a", password="b"), None, "basic authentication", id="basic"),
        pytest.param(user(exec={"apiVersion": "client.authentication.k8s.io/v1"}), None, "no command", id="exec"),
        pytest.param(
            user(exec={"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}),
            None,
            "is not supported",
            id="old exec",
        ),
        pytest.param(cluster(**{"certificate-authority-data": "!"}), None, "not base64", id="bad data"),
        pytest.param(cluster(**{"certificate-authority": "no.pem"}), None, "no.pem cannot be read", id="no file"),
        pytest.param(["x"], None, "holds no kubeconfig", id="no mapping"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_one_sentence(tmp_path: Path, content, context, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_endpoint(kubeconfig=write(tmp_path / "config", content), context=context)
    assert says in str(refused.value)


def test_a_file_that_is_no_yaml_and_one_that_is_missing_are_said(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("a: [")
    with pytest.raises(UsageError, match="is not YAML"):
        load_endpoint(kubeconfig=tmp_path / "broken")
    with pytest.raises(UsageError, match="cannot be read"):
        load_endpoint(kubeconfig=tmp_path / "missing")
    with pytest.raises(UsageError, match="no kubeconfig at"):
        load_endpoint(environ={"HOME": str(tmp_path)})


async def test_a_rotated_token_file_is_read_again_after_a_minute_or_a_refusal(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "token"
    path.write_text("first")
    source = TokenFile(path, monotonic=lambda: now[0])
    assert (await source.current()).token == "first"
    path.write_text("second")
    assert (await source.current()).token == "first"
    now[0] = 60.0
    assert (await source.current()).token == "second"
    path.write_text("third")
    source.forget()
    assert (await source.current()).token == "third"


async def test_an_empty_token_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(UsageError, match="is empty"):
        await TokenFile(tmp_path / "token").current()


def plugin(script: Path, *, timeout_s: float = 30.0, command: str = "", hint: str = "") -> ExecPlugin:
    return ExecPlugin(
        command=command or str(script),
        args=("for", "test"),
        env={"REGION": "eu"},
        api_version="client.authentication.k8s.io/v1",
        install_hint=hint,
        cluster={"server": "https://one"},
        timeout_s=timeout_s,
    )


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


COUNTING = """
count = open(__file__ + ".count", "a+"); count.write("x"); count.seek(0); n = len(count.read())
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
token = " ".join([str(n), *sys.argv[1:], os.environ["REGION"], info["spec"]["cluster"]["server"]])
print(json.dumps({"kind": "ExecCredential", "status": {"token": token, "expirationTimestamp": %r}}))
"""


async def test_an_exec_plugin_is_asked_once_and_told_about_the_cluster(tmp_path: Path) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    source = ExecCredential(plugin(script(tmp_path / "login", COUNTING % later)))
    assert (await source.current()).token == "1 for test eu https://one"
    assert (await source.current()).token == "1 for test eu https://one"
    source.forget()
    assert (await source.current()).token == "2 for test eu https://one"


async def test_an_exec_plugin_is_asked_again_shortly_before_its_token_expires(tmp_path: Path) -> None:
    soon = (datetime.now(UTC) + EXEC_REFRESH_EARLY / 2).isoformat()
    source = ExecCredential(plugin(script(tmp_path / "login", COUNTING % soon)))
    assert (await source.current()).token.startswith("1 ")
    assert (await source.current()).token.startswith("2 ")


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        pytest.param("sys.exit('no session, log in first')", Refused, "no session, log in first", id="fails"),
        pytest.param("print('hello')", Refused, "printed no ExecCredential", id="no JSON"),
        pytest.param("print('{}')", Refused, "printed no ExecCredential", id="no status"),
        pytest.param("print('{\"status\": {}}')", Refused, "neither a token nor", id="empty status"),
        pytest.param("time.sleep(60)", Unreachable, "did not finish within 0.5 s", id="hangs"),
    ],
)
async def test_what_is_wrong_with_an_exec_plugin_is_one_sentence(tmp_path: Path, body, kind, says: str) -> None:
    timeout_s = 0.5 if kind is Unreachable else 30.0
    with pytest.raises(kind, match=says):
        await ExecCredential(plugin(script(tmp_path / "login", body), timeout_s=timeout_s)).current()


async def test_a_plugin_that_is_not_installed_says_how_to(tmp_path: Path) -> None:
    missing = plugin(tmp_path, command="no-such-login", hint="install it with the cloud's tools")
    with pytest.raises(Refused, match="install it with the cloud's tools"):
        await ExecCredential(missing).current()
