"""Events for people: what happened to a plan, posted as events.k8s.io/v1, repeated ones as a series.

In: an object, a reason and a note. Out: requests to the API server, in the background. A post that fails is
logged and forgotten: events never hold up or fail a reconcile.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol

from servingplan.clients.references import ObjectRef
from servingplan.errors import ClusterError, NotFound

EVENTS_API = "events.k8s.io/v1"

MAX_NOTE_BYTES = 1024
"""The API server refuses longer notes."""

MAX_NAME = 253
"""The longest name of an object."""

_log = logging.getLogger(__name__)

Key = tuple[str, str, str, str]


class EventType(StrEnum):
    """What kubectl shows in its TYPE column."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventClient(Protocol):
    """What the recorder needs of a Kubernetes client."""

    async def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create the Event."""

    async def merge_patch(self, ref: ObjectRef, body: Mapping[str, Any]) -> dict[str, Any]:
        """Patch the Event. Raises NotFound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLimits:
    """What bounds events. Seconds are real ones.

    window_s: a repetition within this after the last one belongs to the same series. series_every_s: a series
    is updated at most this often; what happens meanwhile is counted. kept: series that are remembered.
    waiting: events that wait for the API server; more are dropped, and that is logged.
    """

    window_s: float = 600.0
    series_every_s: float = 60.0
    kept: int = 4096
    waiting: int = 1024


@dataclass(slots=True, kw_only=True)
class _Series:
    """One event and its repetitions. ref is None until it was posted."""

    manifest: dict[str, Any]
    count: int = 1
    last_seen: datetime
    last_seen_s: float
    sent_at_s: float = 0.0
    sent_count: int = 0
    ref: ObjectRef | None = None
    waiting: bool = field(default=False)


class EventRecorder:
    """Posts events about objects. `record` never waits and never raises; `run` does the posting."""

    def __init__(
        self,
        *,
        client: EventClient,
        controller: str,
        instance: str,
        limits: EventLimits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance[:128]
        self._limits = limits or EventLimits()
        self._monotonic = monotonic
        self._series: OrderedDict[Key, _Series] = OrderedDict()
        self._waiting: asyncio.Queue[_Series] = asyncio.Queue(maxsize=self._limits.waiting)

    def record(
        self,
        regarding: Mapping[str, Any],
        *,
        reason: str,
        note: str,
        action: str,
        event_type: EventType = EventType.NORMAL,
        related: Mapping[str, Any] | None = None,
    ) -> None:
        """Post, in the background, that something happened to an object.

        regarding, related: objects with apiVersion, kind and metadata. action: what the operator did or tried,
        CamelCase. The same object, reason and note within the window become one series.
        """
        key = (str(regarding["metadata"].get("uid", "")), event_type, reason, note)
        now, now_s = datetime.now(UTC), self._monotonic()
        series = self._series.get(key)
        if series is not None and now_s - series.last_seen_s <= self._limits.window_s:
            series.count += 1
            series.last_seen, series.last_seen_s = now, now_s
        else:
            manifest = self._manifest(
                regarding,
                reason=reason,
                note=note,
                action=action,
                event_type=event_type,
                related=related,
                now=now,
            )
            series = _Series(manifest=manifest, last_seen=now, last_seen_s=now_s)
            self._series[key] = series
        self._series.move_to_end(key)
        while len(self._series) > self._limits.kept:
            self._series.popitem(last=False)
        self._send_later(series)

    async def run(self) -> None:
        """Post events until cancelled."""
        while True:
            await self._send(await self._waiting.get())

    async def flush(self) -> None:
        """Post what waits now."""
        while not self._waiting.empty():
            await self._send(self._waiting.get_nowait())

    def _send_later(self, series: _Series) -> None:
        too_soon = self._monotonic() - series.sent_at_s < self._limits.series_every_s
        if series.waiting or (series.sent_count and too_soon):
            return
        try:
            self._waiting.put_nowait(series)
            series.waiting = True
        except asyncio.QueueFull:
            _log.warning("events wait for the API server; dropped: %s", series.manifest["note"])

    async def _send(self, series: _Series) -> None:
        series.waiting = False
        count = series.count
        try:
            if series.ref is None:
                await self._create(series, count)
            else:
                await self._update(series, count)
        except ClusterError as error:
            _log.warning("an event was not posted: %s", error)
        except Exception:  # noqa: BLE001  an event must never end the task that posts the others
            _log.exception("an event was not posted: %s", series.manifest.get("note"))
        else:
            series.sent_at_s, series.sent_count = self._monotonic(), count

    async def _create(self, series: _Series, count: int) -> None:
        manifest = {**series.manifest}
        if count > 1:
            manifest["series"] = _series_of(series, count)
        await self._client.create(manifest)
        series.ref = ObjectRef.of(manifest)

    async def _update(self, series: _Series, count: int) -> None:
        if series.ref is None or count == series.sent_count:
            return
        try:
            await self._client.merge_patch(series.ref, {"series": _series_of(series, count)})
        except NotFound:  # events are kept for an hour; the series outlived it
            await self._create(series, count)

    def _manifest(
        self,
        regarding: Mapping[str, Any],
        *,
        reason: str,
        note: str,
        action: str,
        event_type: EventType,
        related: Mapping[str, Any] | None,
        now: datetime,
    ) -> dict[str, Any]:
        metadata = regarding["metadata"]
        digest = hashlib.sha256(f"{metadata.get('uid')}/{event_type}/{reason}/{note}/{now.timestamp()}".encode())
        suffix = f".{digest.hexdigest()[:16]}"
        manifest = {
            "apiVersion": EVENTS_API,
            "kind": "Event",
            "metadata": {
                "name": str(metadata["name"])[: MAX_NAME - len(suffix)] + suffix,
                "namespace": metadata.get("namespace") or "default",
            },
            "eventTime": _micro_time(now),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "type": str(event_type),
            "reason": reason[:128],
            "action": action[:128],
            "note": _shortened(note),
            "regarding": _reference(regarding),
        }
        if related is not None:
            manifest["related"] = _reference(related)
        return manifest


def _reference(subject: Mapping[str, Any]) -> dict[str, Any]:
    metadata = subject["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion") if metadata.get(key)}
    return {"apiVersion": subject["apiVersion"], "kind": subject["kind"], **kept}


def _series_of(series: _Series, count: int) -> dict[str, Any]:
    return {"count": count, "lastObservedTime": _micro_time(series.last_seen)}


def _shortened(note: str) -> str:
    raw = note.encode()
    if len(raw) <= MAX_NOTE_BYTES:
        return note
    return raw[: MAX_NOTE_BYTES - 4].decode(errors="ignore") + " ..."


def _micro_time(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
