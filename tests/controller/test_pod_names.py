"""Which pods of the past were a workload's, by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from servingplan.controller.pod_names import pods_like


def a_pod(name: str, begins: str = "", template: str = "") -> Mapping[str, object]:
    labels = {"pod-template-hash": template} if template else {}
    return {"metadata": {"name": name, "generateName": begins, "labels": labels}}


LONG = "a" * 52
CASES = {
    "a Deployment's, of every revision": (
        a_pod("chat-7d4f9c6b58-x2k9z", "chat-7d4f9c6b58-", template="7d4f9c6b58"),
        ["chat-7d4f9c6b58-x2k9z", "chat-65b8-ffbbb"],
        ["chat-large-7d4f9c6b58-x2k9z", "chat-large-x2k9z", "my-chat-7d4f9c6b58-x2k9z", "chat-0"],
    ),
    "a Deployment's whose name leaves no room": (
        a_pod(f"{LONG}-7d4f9x2k9z", f"{LONG}-7d4f9c6b58-", template="7d4f9c6b58"),
        [f"{LONG}-7d4f9x2k9z", f"{LONG}-65b8cbbbbb"],
        [f"{LONG}b-7d4f9x2k9z"],
    ),
    "a StatefulSet's": (a_pod("chat-3", "chat-"), ["chat-0", "chat-12"], ["chat-large-0", "chat-a"]),
    "a LeaderWorkerSet's": (a_pod("chat-0-1", "chat-0-"), ["chat-0-1", "chat-0-2"], ["chat-large-0-1"]),
    "what something else makes": (a_pod("ray-worker-x8zq", "ray-worker-"), ["ray-worker-b2cd"], ["x-ray-worker-b2cd"]),
    "one that stands alone": (a_pod("chat"), ["chat"], ["chat-1", "chats"]),
    "a dot is a dot": (a_pod("v1.5-0"), ["v1.5-1"], ["v1x5-1"]),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "alike", "others"), CASES.values(), ids=CASES)
def test_a_workload_s_pods_are_told_by_their_names(pod, alike, others):
    pattern = re.compile(pods_like(pod))

    assert [name for name in alike if not pattern.fullmatch(name)] == []
    assert [name for name in others if pattern.fullmatch(name)] == []
