"""Which engine evidence is about: what a capacity was measured with, and what an evaluation's answers came from.

In: an `Engine`, or an identity as a status records it. Out: an `EngineIdentity`, and what two of them differ in.
Only what changes answers or speed is in it: evidence must outlive an edit of a port or of a timeout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from servingplan.planning.target import Engine
from servingplan.rendering.engine import ENGINE_CONTAINER, arguments
from servingplan.rendering.merge import by_key
from servingplan.rendering.metadata import stable_digest

WITHOUT_EFFECT = frozenset({"--port", "--served-model-name", "--shutdown-timeout", "--custom-histogram-buckets"})
"""Rendered arguments that change neither an answer nor how fast it comes."""

MODEL_VOLUME = "modelVolume"
"""The claim that holds the model, among the arguments: vLLM is told no more than a path in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineIdentity:
    """What an engine is, to evidence.

    image: as stated. arguments: one ``--flag=value`` or ``VARIABLE=value`` each, by name, without the model; and the
    volume that holds it.
    accelerator: ``nvidia.com/gpu x 2``, a replica's.
    """

    image: str
    model: str
    arguments: tuple[str, ...]
    accelerator: str

    @property
    def digest(self) -> str:
        """``sha256:`` and 64 hex digits over all of it; of an image with a digest, its name does not count."""
        parts = (_content(self.image), self.model, self.arguments, self.accelerator)
        return f"sha256:{stable_digest(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field in which two engines differ. now, then: their values; empty where one does not state it."""

    field: str
    now: str
    then: str

    def told(self, verb: str) -> str:
        """``--max-num-seqs 128, measured with 64``. verb: what was done with the other, for example measured."""
        now = f"{self.field} {self.now}" if self.now else f"no {self.field}"
        return f"{now}, {verb} {f'with {self.then}' if self.then else 'without'}"


def identity(engine: Engine) -> EngineIdentity:
    """The identity of an engine as the plan states it."""
    assigned = [*_flags(arguments(engine)[1:]), *_variables(engine), *_model_volume(engine)]
    effective = sorted((pair for pair in assigned if pair[0] not in WITHOUT_EFFECT), key=itemgetter(0))
    return EngineIdentity(
        image=engine.image,
        model=engine.model,
        arguments=tuple(f"{name}={value}" if value else name for name, value in effective),
        accelerator=f"{engine.accelerator_resource} x {engine.parallelism.gpus}",
    )


def differences(now: EngineIdentity, then: EngineIdentity) -> tuple[Difference, ...]:
    """What differs between two engines, by field; none where their digests are equal."""
    return tuple(_differences(now, then))


def _differences(now: EngineIdentity, then: EngineIdentity) -> Iterator[Difference]:
    if _content(now.image) != _content(then.image):
        yield Difference(field="image", now=now.image, then=then.image)
    if now.model != then.model:
        yield Difference(field="model", now=now.model, then=then.model)
    if now.accelerator != then.accelerator:
        yield Difference(field="accelerator", now=now.accelerator, then=then.accelerator)
    ours, theirs = _by_name(now.arguments), _by_name(then.arguments)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name, "") != theirs.get(name, ""):
            yield Difference(field=name, now=ours.get(name, ""), then=theirs.get(name, ""))


def _content(image: str) -> str:
    """What says which program it is: the digest where the reference has one, whatever mirror it is pulled from."""
    return image.partition("@")[2] or image


def _flags(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and value of each flag, however it is written: ``--a=1``, ``--a 1`` and ``--a_b``."""
    flag, values = "", list[str]()
    for argument in [*given, "-"]:
        if not argument.startswith("-") or _is_number(argument):
            values.append(argument)
            continue
        if flag:
            yield flag, " ".join(values)
        name, equals, value = argument.partition("=")
        flag, values = name.replace("_", "-"), [value] if equals else []


def _is_number(argument: str) -> bool:
    return argument[1:2].isdigit() or argument[1:2] == "."


def _variables(engine: Engine) -> Iterator[tuple[str, str]]:
    """Literal values that the plan's pod template gives the engine: vLLM reads settings from its environment too."""
    containers = by_key("containers", engine.pod_template.get("spec", {}).get("containers", ())) or {}
    for variable in containers.get((ENGINE_CONTAINER,), {}).get("env", ()):
        if "value" in variable:
            yield variable["name"], variable["value"]


def _model_volume(engine: Engine) -> Iterator[tuple[str, str]]:
    """On another volume, another model may have the same path."""
    if engine.model_volume is not None:
        yield MODEL_VOLUME, engine.model_volume.claim_name


def _by_name(assigned: Sequence[str]) -> dict[str, str]:
    """Values by name; what is only named is ``on``, and a name that comes more than once has all its values."""
    named: dict[str, str] = {}
    for name, _, value in (argument.partition("=") for argument in assigned):
        named[name] = f"{named[name]} {value}" if name in named else value or "on"
    return named
