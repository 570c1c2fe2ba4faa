"""Layouts that a model can have on an accelerator, smallest first, and what is to be said of one.

In: a model and an accelerator. Out: `Layout`s that vLLM accepts, and advice with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from servingplan.hardware.accelerator import Accelerator, Link
from servingplan.hardware.memory import COMFORTABLE, Memory
from servingplan.hardware.model import Attention, AttentionLayer, Model, Role
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.weights import total_bytes

MOST_NODES = 4
"""Pipelines over more nodes than this are not proposed."""

MOST_EXPERT_SHARE = 0.5
"""From this share of the weights on, experts are worth a word."""


def layouts(model: Model, accelerator: Accelerator) -> Iterator[Layout]:
    """Within a node tensor parallel alone, by powers of two; beyond it pipeline stages of the largest of them."""
    within = [size for size in _powers_of_two(accelerator.gpus_per_node) if _divides(model, size)]
    for size in within:
        yield Layout(tensor=size)
    for nodes in range(2, MOST_NODES + 1):
        if nodes <= len(model.layers):
            yield Layout(tensor=within[-1], pipeline=nodes)


def _powers_of_two(highest: int) -> Iterator[int]:
    size = 1
    while size <= highest:
        yield size
        size *= 2


def problem(model: Model, layout: Layout) -> str | None:
    """Why vLLM would refuse a layout; None where it does not."""
    if not _divides(model, layout.tensor):
        return f"its {model.heads} attention heads and {model.kv_heads} KV heads cannot be split over {layout.tensor}"
    if layout.pipeline > len(model.layers):
        return f"its {len(model.layers)} layers cannot be split over {layout.pipeline} pipeline stages"
    return None


def _divides(model: Model, tensor: int) -> bool:
    """Heads must divide; KV heads divide, or are copied a whole number of times."""
    return model.heads % tensor == 0 and (model.kv_heads % tensor == 0 or tensor % model.kv_heads == 0 or model.latent)


def advice(model: Model, layout: Layout, accelerator: Accelerator, found: Memory) -> tuple[str, ...]:
    """What to do about parallelism, one sentence a rule, each with its reason."""
    return (
        _parallelism(layout, accelerator, found),
        *_copies(model, layout),
        *_experts(model, layout),
    )


def _parallelism(layout: Layout, accelerator: Accelerator, found: Memory) -> str:
    if layout.pipeline > 1:
        return (
            f"Needs more than a node: tensor parallel over {layout.tensor} GPUs of each of {layout.pipeline} nodes, "
            "pipeline stages across nodes, because the links within a node are the fast ones."
        )
    if layout.tensor > 1:
        link = " Over PCIe each all-reduce costs more: NVLink would be faster." if accelerator.link is Link.PCIE else ""
        return (
            f"Takes {layout.tensor} GPUs of one node: tensor parallel, because each GPU reads its share of the weights "
            f"at the same time as the others.{link} More traffic: more replicas."
        )
    if found.comfortable:
        return "Fits one GPU comfortably: stay on one, and add replicas for traffic, which scale without communication."
    return (
        f"Fits one GPU with less than {COMFORTABLE:.0%} of its memory left for the cache: "
        "expect preemptions at long prompts, and measure."
    )


def _copies(model: Model, layout: Layout) -> Iterator[str]:
    if model.latent and layout.tensor > 1:
        yield (
            "Latent attention is copied to every GPU of a tensor-parallel replica: "
            "data-parallel attention keeps one copy of a request's cache."
        )
    elif layout.tensor > model.kv_heads and any(_by_heads(cache) for cache in model.caches):
        copies = layout.tensor // model.kv_heads
        yield f"It has {model.kv_heads} KV heads: beyond TP{model.kv_heads} each is held {copies} times."


def _by_heads(cache: object) -> bool:
    return isinstance(cache, AttentionLayer) and cache.kind is not Attention.LATENT


def _experts(model: Model, layout: Layout) -> Iterator[str]:
    if model.experts is None or layout.gpus == 1:
        return
    share = sum(part.size for part in model.weights if part.role is Role.EXPERTS) / total_bytes(model)
    if share >= MOST_EXPERT_SHARE:
        yield (
            f"Experts are {share:.0%} of the weights: try expert parallelism, which keeps each of the "
            f"{model.experts.count} whole on one GPU instead of a slice on all; uneven routing speaks against it."
        )
