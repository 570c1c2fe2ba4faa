"""The rendered pod, run by a real kubelet: probes, key, volumes, environment, and the Service in front of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from e2e.node.fixtures import clear
from e2e.node.plans import NOON, complete, run_in, served, service_address
from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock
from e2e.support.plans import behind_service, deployments, pods, until_condition, until_ready
from e2e.support.shared import Run, shared_run
from e2e.support.workloads import is_ready
from servingplan.rendering.probes import STARTUP_PERIOD

KEY = "a-key-of-a-test"
GIB = 2**30
PROBED_PROMPT = "Hello"


def volume(name, path, *, modes):
    """A volume of the node's own disk, and the claim that is bound to it."""
    size = {"storage": "1Gi"}
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": path.name},
            "spec": {
                "capacity": size,
                "accessModes": modes,
                "storageClassName": "",
                "hostPath": {"path": str(path), "type": "DirectoryOrCreate"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "accessModes": modes,
                "storageClassName": "",
                "volumeName": path.name,
                "resources": {"requests": size},
            },
        },
    )


@pytest.fixture(scope="module")
def running(cluster, installation, engine_image, tmp_path_factory) -> Iterator[Run]:
    """Two replicas of ``chat`` with volumes and a key, ready."""
    folder = tmp_path_factory.mktemp("pods")

    def prepare(kubectl):
        kubectl("create", "secret", "generic", "engine-key", f"--from-literal=token={KEY}")
        models = folder / f"models-{folder.name}"
        models.mkdir()
        (models / "weights").write_text("of a model")
        kubectl.apply(*volume("models", models, modes=["ReadOnlyMany"]))
        kubectl.apply(*volume("caches", folder / f"caches-{folder.name}", modes=["ReadWriteMany"]))

    with shared_run(cluster, installation, folder, demo_clock(NOON, 1), prepare=prepare) as run:
        engine = {
            "apiKeySecretRef": {"name": "engine-key", "key": "token"},
            "modelVolume": {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
            "cacheVolume": {"persistentVolumeClaim": {"claimName": "caches"}},
        }
        run.kubectl.apply(served("chat", run.namespace, engine_image, replicas=2, engine=engine))
        until_ready(run.kubectl, 2, "chat", timeout_s=90)
        yield run
        clear(cluster, run.namespace)


def completions(run: Run, pod: str, *options: str) -> list[dict[str, object]]:
    """The completions that an engine was asked for."""
    lines = [json.loads(line) for line in run.kubectl("logs", pod, *options).splitlines()]
    return [line for line in lines if line["event"] == "completion"]


def test_a_start_is_one_real_completion_and_no_more(running):
    until_condition(running.kubectl, "chat", "Ready", "True", "AsPlanned")
    for pod in pods(running.kubectl, "chat"):
        (asked,) = completions(running, pod["metadata"]["name"])
        assert (asked["prompt"], asked["max_tokens"]) == (PROBED_PROMPT, 1)


def test_the_engine_wants_the_key_of_the_secret_which_no_manifest_holds(running):
    address = service_address(running.kubectl, "chat")
    assert complete(address).status == 401
    assert complete(address, key=KEY).whole
    for kind in ("deployments", "pods", "servingplans"):
        assert KEY not in running.kubectl("get", kind, "-o", "yaml")


def test_shared_memory_is_memory_of_the_size_that_was_rendered(running):
    (pod, _) = pods(running.kubectl, "chat")
    program = (
        "import os; found = os.statvfs('/dev/shm'); print(found.f_blocks * found.f_frsize); "
        "print([line.split()[2] for line in open('/proc/mounts') if line.split()[1] == '/dev/shm'][-1])"
    )
    size, kind = run_in(running.kubectl, pod["metadata"]["name"], program).split()
    assert (int(size), kind) == (4 * GIB, "tmpfs")


def test_replicas_share_the_caches_of_their_fingerprint_and_write_no_model(running):
    first, second = (pod["metadata"]["name"] for pod in pods(running.kubectl, "chat"))
    variables = "[os.environ[name] for name in ('VLLM_CACHE_ROOT', 'TRITON_CACHE_DIR', 'TORCHINDUCTOR_CACHE_DIR')]"
    write = f"import os; [(os.makedirs(p), open(p + '/kernel', 'w').write(p)) for p in {variables}]"
    run_in(running.kubectl, first, write)
    read = f"import os; [print(open(p + '/kernel').read()) for p in {variables}]"
    paths = run_in(running.kubectl, second, read).split()
    assert len({path.rpartition("/")[0] for path in paths}) == 1
    assert len(set(paths)) == 3
    assert all(path.startswith("/cache/reference-") and "/nvidia.com_gpu/" in path for path in paths)
    refused = "import errno\ntry: open('/models/x', 'w')\nexcept OSError as error: print(errno.errorcode[error.errno])"
    assert run_in(running.kubectl, first, refused).strip() == "EROFS"
    assert run_in(running.kubectl, first, "print(open('/models/weights').read())").strip() == "of a model"


def test_no_service_and_no_account_finds_its_way_into_the_engine(running):
    """A Service named vllm would set VLLM_PORT to a URL; this one would set CHAT_PORT."""
    (pod, _) = pods(running.kubectl, "chat")
    assert running.kubectl.json("get", "service", "chat")["spec"]["clusterIP"]
    name = pod["metadata"]["name"]
    environment = json.loads(run_in(running.kubectl, name, "import json, os; print(json.dumps(dict(os.environ)))"))
    assert not [key for key in environment if key.startswith("CHAT_")]
    account = "import os; print(os.path.exists('/var/run/secrets/kubernetes.io/serviceaccount'))"
    assert run_in(running.kubectl, name, account).strip() == "False"


def test_a_replica_that_hangs_leaves_the_service_is_restarted_and_verified_again(running):
    """Out of the Service after three misses of its readiness, restarted after six of its liveness."""
    address = service_address(running.kubectl, "chat")
    hung, other = sorted(behind_service(running.kubectl, "chat"))
    run_in(
        running.kubectl,
        hung,
        "import urllib.request as u; u.urlopen(u.Request('http://localhost:8000/break', method='POST'))",
    )
    eventually(lambda: behind_service(running.kubectl, "chat"), lambda found: found == {other}, what="one endpoint")
    running.until("chat", "ReserveIntact", "False")
    assert {complete(address, key=KEY).replica for _ in range(20)} == {other}

    def restarted():
        pod = running.kubectl.json("get", "pod", hung)
        return pod["status"]["containerStatuses"][0]["restartCount"] == 1 and is_ready(pod)

    eventually(restarted, what=f"{hung} restarted and ready", timeout_s=60 + 6 * STARTUP_PERIOD.total_seconds())
    (asked, *_) = eventually(lambda: completions(running, hung), what=f"the completion that verified {hung} again")
    assert asked["prompt"] == PROBED_PROMPT
    eventually(lambda: behind_service(running.kubectl, "chat"), lambda found: len(found) == 2, what="two endpoints")
    seen = {complete(address, key=KEY).replica for _ in range(60)}
    assert seen == {hung, other}
    assert deployments(running.kubectl)["chat"]["spec"]["replicas"] == 2
    running.until("chat", "ReserveIntact", "True")
