"""The ledger's writer: an entry for each decision that means something new, in a ConfigMap of its plan.

In: entries of reconciles that write a status. Out: one write for each that differs in meaning from the last one that is
there, made against the state that was seen, so that two leaders lose nothing of each other. It never fails a
reconcile: what cannot be written waits for the next entry, and that is said once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from servingplan.clients.gate import NotLeading
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.events import EventRecorder, EventType
from servingplan.controller.metrics import OperatorMetrics
from servingplan.controller.store import Key
from servingplan.errors import ClusterError, Conflict, NotFound, Refused
from servingplan.planning.ledger import Entry
from servingplan.planning.reasons import Reason
from servingplan.rendering.ledger import (
    Change,
    Pages,
    is_ledger_of,
    last_entry,
    ledger_manifest,
    ledger_name,
    meaning,
    with_entries,
)
from servingplan.rendering.metadata import Owner

Object = Mapping[str, Any]

MOST_WAITING = 100
"""Entries of a plan that wait while its ledger cannot be written: a week of most plans. The oldest go first."""

TRIES = 3
"""How often an entry is written where another process wrote in between, or took the ledger away."""

_log = logging.getLogger(__name__)


class LedgerKeeper:
    """Writes the ledgers of all plans. days: how many days that have entries are kept."""

    def __init__(
        self,
        *,
        client: KubernetesClient,
        events: EventRecorder,
        metrics: OperatorMetrics,
        installation: str,
        days: int,
    ) -> None:
        self._client = client
        self._events = events
        self._metrics = metrics
        self._installation = installation
        self._days = days
        self._last: dict[Key, tuple[object, ...]] = {}
        self._waiting: dict[Key, list[Entry]] = {}
        self._failing: set[Key] = set()

    def verify_anew(self) -> None:
        """Read every ledger again before it is taken to say what was written last: somebody else may have written."""
        self._last.clear()

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a plan that is gone."""
        self._last.pop(key, None)
        self._waiting.pop(key, None)
        self._failing.discard(key)

    async def note(self, key: Key, document: Object, entry: Entry) -> None:
        """Write an entry down, with those that wait, unless it says what the last one said.

        Raises NotLeading alone: whoever leads now decides the same and writes it down.
        """
        waiting = self._waiting.get(key, [])
        said = meaning(waiting[-1]) if waiting else self._last.get(key)
        due = waiting if said == meaning(entry) else [*waiting, entry][-MOST_WAITING:]
        if not due:
            return
        try:
            await self._write(key, document, due)
        except NotLeading:
            raise
        except ClusterError as error:
            self._waiting[key] = due
            self._failed(key, document, error)
        else:
            self._waiting.pop(key, None)
            self._last[key] = meaning(due[-1])
            self._failing.discard(key)

    async def _write(self, key: Key, document: Object, entries: list[Entry]) -> None:
        ref = ObjectRef(api_version="v1", kind="ConfigMap", name=ledger_name(key.name), namespace=key.namespace)
        for attempt in range(1, TRIES + 1):
            try:
                await self._write_once(ref, key, document, entries)
            except (Conflict, NotFound):
                if attempt == TRIES:
                    raise
            else:
                return

    async def _write_once(self, ref: ObjectRef, key: Key, document: Object, entries: list[Entry]) -> None:
        """Write entries over the state that is there. Raises Conflict where another process wrote in between."""
        live = await self._client.find(ref)
        owner = Owner.of(document)
        if live is None:
            new = ledger_manifest(key.name, key.namespace, owner, self._installation, self._changed({}, entries))
            await self._client.create(new)
            return
        if not is_ledger_of(live, owner.uid):
            raise Refused(f"{ref} exists and is not this plan's, so it is not touched: delete or rename it")
        pages = live.get("binaryData") or {}
        newest = last_entry(pages)
        if newest is not None and meaning(newest) == meaning(entries[0]):
            entries = entries[1:]  # a process that ended before it wrote the status had written it down
        if entries:
            body = {"binaryData": self._changed(pages, entries)}
            await self._client.merge_patch(ref, body, resource_version=live["metadata"]["resourceVersion"])

    def _changed(self, pages: Pages, entries: list[Entry]) -> Change:
        return with_entries(pages, entries, days=self._days)

    def _failed(self, key: Key, document: Object, error: ClusterError) -> None:
        self._metrics.ledger_failed(type(error).__name__)
        if key in self._failing:
            return
        self._failing.add(key)
        _log.warning("%s: decisions are not written down: %s; they wait for the next one", key, error)
        self._events.record(
            document,
            reason=Reason.LEDGER_NOT_WRITTEN,
            note=f"decisions are not written down, and wait for the next one: {error}",
            action="Note",
            event_type=EventType.WARNING,
        )
