"""What serves: the image that a pod runs, and the accelerators of its node, as they say themselves.

In: what a pod's status and a node's labels hold. Out: values that can be compared with what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a node says of its accelerators; empty where it does not."""

    product: str = ""
    driver: str = ""


PRODUCT_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
DRIVER_LABELS = ("nvidia.com/cuda.driver-version.full", "amd.com/gpu.driver-version")
"""Where the makers' own device labellers write what a node has."""


def hardware_of(labels: Mapping[str, str]) -> Hardware:
    """What the labels of a node say of its accelerators."""
    return Hardware(
        product=next((labels[label] for label in PRODUCT_LABELS if label in labels), ""),
        driver=next((labels[label] for label in DRIVER_LABELS if label in labels), ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPod:
    """A pod that serves. image: its digest, empty where it does not say. hardware: None where its node is not read."""

    image: str = ""
    hardware: Hardware | None = None


def digest_of(image_id: str) -> str:
    """The digest in a pod's ``imageID``, with or without the repository that it was pulled from."""
    return image_id.rpartition("@")[2]
