"""Falls of the real vLLM in real containers while it streams: what drains loses nothing, what does not loses some."""

from __future__ import annotations

import time

from e2e.support.plans import edit, until_condition, until_ready
from e2e.vllm.clients import Connections, End
from e2e.vllm.containers import CAPACITY, always, engine, plan, undrained_deployment, undrained_service
from e2e.vllm.engines import LONGEST_ANSWER
from e2e.vllm.falls import Fall
from e2e.vllm.load import Counts, Load, count
from servingplan.rendering.metadata import PLAN_LABEL
from support.specs import document, targeting

FALLS = 10
STREAMS = 5
REPLICAS = 4
CLIENTS = 40
MANY_AT_ONCE = {"maxNumSeqs": 16}
START_S = 600
"""Several engines that start at once on two processors take minutes."""


def address(kubectl, service):
    found = kubectl.json("get", "service", service)["spec"]
    return f"http://{found['clusterIP']}:{found['ports'][0]['port']}"


def tell(name: str, *lines: object) -> None:
    """For the record: shown with -s, and of a test that fails."""
    for line in lines:
        print(f"{name}: {line}", flush=True)


class Falls:
    """Falls of one workload by one replica each, and what became of the requests meanwhile."""

    def __init__(self, kubectl, workload, watcher) -> None:
        self.kubectl, self.workload, self.watcher = kubectl, workload, watcher
        self.seen: list[Fall] = []
        self.lost: list[Counts] = []

    def down(self, replicas: int, load: Load, lower) -> Fall:
        """From one more to `replicas`: wait until every replica is busy, ask for the fall, wait until it is over."""
        self.watcher.until_each_has(STREAMS + 1, replicas + 1)
        since = time.time()
        lower(replicas)
        fall = self.watcher.until_gone(self.workload, since)
        during = count([each for each in load.ended() if each.ended >= fall.decided])
        tell(self.workload, f"{replicas + 1} to {replicas}: {fall}; {during}")
        self.seen.append(fall)
        return fall

    @property
    def busy(self) -> list[Fall]:
        """Those of replicas that had streams enough."""
        return [fall for fall in self.seen if fall.streams >= STREAMS]


def test_ten_falls_under_streams_cut_none_for_clients_with_a_connection_per_request(
    kubectl, namespace, run_operator, sources_file, environment, vllm_image, watch
):
    kubectl.apply(plan("chat", namespace, engine(environment, vllm_image, **MANY_AT_ONCE), replicas=REPLICAS))
    run_operator(f"--sources-file={sources_file}")
    falls = Falls(kubectl, "chat", watch("chat", selector=f"{PLAN_LABEL}=chat"))
    counts = []
    while len(falls.busy) < FALLS:
        assert len(falls.seen) < 2 * FALLS, "replicas that left had too few streams"
        edit(kubectl, "chat", schedule=always(REPLICAS))
        until_ready(kubectl, REPLICAS, "chat", timeout_s=START_S)
        until_condition(kubectl, "chat", "MetricsAvailable", "True")
        with Load(address(kubectl, "chat"), tokens=LONGEST_ANSWER, clients=CLIENTS) as load:
            for replicas in range(REPLICAS - 1, 0, -1):
                if len(falls.busy) < FALLS:
                    falls.down(replicas, load, lambda n: edit(kubectl, "chat", schedule=always(n)))
        counts.append(load.counts())
        tell("round", counts[-1], *counts[-1].losses)

    assert sum(each.whole for each in counts) > FALLS * STREAMS
    assert [each.losses for each in counts] == [()] * len(counts)
    assert all(fall.out < fall.scaled < fall.gone and fall.idle is not None for fall in falls.busy)
    assert all(fall.idle < fall.scaled for fall in falls.busy)


def test_a_fall_without_a_drain_by_vllms_default_loses_streams(
    kubectl, namespace, run_operator, environment, vllm_image, watch
):
    arguments = ("--max-num-seqs=16", "--dtype=bfloat16")
    kubectl.apply(undrained_deployment(environment, vllm_image, "bare", arguments), undrained_service("bare"))
    spec = targeting(name="bare") | {
        "schedule": always(2),
        "capacity": {"requestsPerSecond": CAPACITY},
        "reserve": {"replicas": 0},
        "scaleDown": {"step": 1, "every": "15s"},
    }
    kubectl.apply(document("bare", namespace, **spec))
    run_operator()
    until_ready(kubectl, 2, "bare", timeout_s=START_S)
    falls = Falls(kubectl, "bare", watch("bare", selector="app=bare"))
    with Load(address(kubectl, "bare"), tokens=LONGEST_ANSWER, clients=20, patience_s=30) as load:
        fall = falls.down(1, load, lambda n: edit(kubectl, "bare", schedule=always(n)))
    counts = load.counts()
    tell("bare", counts, *counts.losses)

    assert fall.streams >= STREAMS
    assert counts.lost > 0


def test_clients_that_keep_their_connection_are_counted(
    kubectl, namespace, run_operator, sources_file, environment, vllm_image, watch
):
    """No promise is made to them on a bare Service: an endpoint that is taken out keeps the connections it has."""
    kept = engine(environment, vllm_image, **MANY_AT_ONCE, drainTimeout="1m")
    kubectl.apply(plan("kept", namespace, kept, replicas=2))
    run_operator(f"--sources-file={sources_file}")
    until_ready(kubectl, 2, "kept", timeout_s=START_S)
    until_condition(kubectl, "kept", "MetricsAvailable", "True")
    falls = Falls(kubectl, "kept", watch("kept", selector=f"{PLAN_LABEL}=kept"))
    with Load(
        address(kubectl, "kept"), tokens=LONGEST_ANSWER, clients=20, connections=Connections.KEPT, patience_s=60
    ) as load:
        fall = falls.down(1, load, lambda n: edit(kubectl, "kept", schedule=always(n)))
        time.sleep(10)
    counts = load.counts()
    tell("kept", counts, *counts.losses)

    assert fall.streams >= STREAMS
    assert [each for each in load.ended() if each.end is End.WHOLE and each.begun > fall.gone], "they never came back"
    assert fall.scaled - fall.decided >= 60 - 1, "it was not given its drain"
