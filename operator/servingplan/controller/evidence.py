"""Reconcile evidence: one object of one of the evidence kinds, once. Look, decide the next step, act, report.

In: the key of an evidence object. Out: pool and Jobs as the step wants them, its status, and when to look again. All
kinds come through here; what differs is in ``evidence_kinds``. What is over is looked at no more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from servingplan.api.kinds import API_VERSION
from servingplan.api.referenced import RunnerDefaults, referenced_plans
from servingplan.api.v1alpha1 import KIND as PLAN_KIND
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller import evidence_seen as looks
from servingplan.controller.clock import Clock
from servingplan.controller.events import EventRecorder, EventType
from servingplan.controller.evidence_cluster import EvidenceCluster, Live
from servingplan.controller.evidence_hours import Hours, QuietHours
from servingplan.controller.evidence_kinds import EVIDENCE_KINDS, EvidenceKey, EvidenceKind, EvidenceWork, Json
from servingplan.errors import Conflict, InputError, Problem, Refused
from servingplan.planning.reasons import Reason
from servingplan.planning.work import JobState, Stage, Step, Work, WorkSeen, next_step
from servingplan.rendering.evidence import COMPLETE, Progress, as_seen, evidence_status, is_over, work_id
from servingplan.rendering.measured import measured_from_json
from servingplan.rendering.metadata import MEASURED_ANNOTATION, REPORT_ANNOTATION
from servingplan.rendering.stated import condition_of
from servingplan.rendering.times import wire_time

Object = Mapping[str, Any]

REFUSED_RETRY_S = 60.0
"""A refusal takes a person, or a quota that is freed."""

CONFLICT_RETRY_S = 0.5
"""Somebody wrote between our look and our write, as the Job's own controller does: look again."""

STARTING_EVERY_S, RUNNING_EVERY_S = 15.0, 60.0
"""Pods are not watched: what holds up a pool, or what a runner says that is started again, is read this often."""

LAST_WORDS = "; its last words: "

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One look at an evidence object that resolves."""

    document: Object
    work: EvidenceWork
    live: Live
    reports: Mapping[int, Json]
    unreadable: str
    hours: Hours
    step: Step


class EvidenceReconciler:
    """Reconciles evidence objects, one at a time per key."""

    def __init__(
        self,
        *,
        client: KubernetesClient,
        clock: Clock,
        events: EventRecorder,
        installation: str,
        defaults: RunnerDefaults,
        quiet_hours: QuietHours,
        wake_at: Callable[[EvidenceKey, datetime | None], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._events = events
        self._defaults = defaults
        self._quiet_hours = quiet_hours
        self._wake_at = wake_at
        self._cluster = EvidenceCluster(client=client, installation=installation)

    async def reconcile(self, key: EvidenceKey) -> float | None:
        """Bring one object's work and status up to date. Returns the real seconds after which to do it again.

        Raises ClusterError.
        """
        ref = ObjectRef(api_version=API_VERSION, kind=key.kind, name=key.name, namespace=key.namespace)
        document = await self._client.find(ref)
        self._wake_at(key, None)
        if document is None or document["metadata"].get("deletionTimestamp"):
            return None  # what runs for it goes with it
        try:
            return await (self._over(document) if is_over(document) else self._reconcile(key, document))
        except Conflict:
            return CONFLICT_RETRY_S

    async def _reconcile(self, key: EvidenceKey, document: Object) -> float | None:
        kind = EVIDENCE_KINDS[key.kind]
        plans = {name: await self._plan(key.namespace, name) for name in sorted(referenced_plans(document))}
        live = await self._cluster.look(document)
        try:
            work = kind.resolve(document, plans, self._defaults)
        except InputError as error:
            return await self._invalid(document, live, error.problems)
        hours = await self._quiet_hours.of(key.namespace, work.quiet_hours_of, plans)
        case = await self._case(document, kind, work, live, hours)
        if hours.until is not None:
            self._wake_at(key, hours.until)
        return await self._act(case)

    async def _over(self, document: Object) -> None:
        """What is over stays so: an edit of `suspend` is seen, and changes nothing."""
        if (status := as_seen(document)) != document["status"]:
            await self._cluster.write_status(document, status)

    async def _plan(self, namespace: str, name: str) -> Object | None:
        ref = ObjectRef(api_version=API_VERSION, kind=PLAN_KIND, name=name, namespace=namespace)
        return await self._client.find(ref)

    async def _invalid(self, document: Object, live: Live, problems: Sequence[Problem]) -> float | None:
        """Nothing runs of what makes no sense."""
        await self._cluster.bring_about(live)
        message = f"nothing runs while the spec has {len(problems)} problem{'s' * (len(problems) > 1)}"
        await self._report(document, Reason.INVALID, message, problems=problems)
        return None

    # ---- look and decide ----

    async def _case(self, document: Object, kind: EvidenceKind, work: EvidenceWork, live: Live, hours: Hours) -> _Case:
        live = await self._with_reports(live)
        reports, unreadable = _reports(kind, live)
        wanted = Work(pieces=work.pieces, pool=work.trial is not None, suspend=work.suspend, may_run=hours.quiet)
        seen = WorkSeen(
            ready=looks.ready_replicas(live.pool) if live.pool is not None and live.has_pool else None,
            jobs={piece: looks.job_state(job) for piece, job in live.jobs.items()},
            results=frozenset(reports),
        )
        return _Case(
            document=document,
            work=work,
            live=live,
            reports=reports,
            unreadable=unreadable,
            hours=hours,
            step=next_step(wanted, seen),
        )

    async def _with_reports(self, live: Live) -> Live:
        """The same, with the report of each Job that is done copied from its pod, once."""
        jobs = dict(live.jobs)
        for piece, job in live.jobs.items():
            if looks.job_state(job) is JobState.DONE and looks.annotation(job, REPORT_ANNOTATION) is None:
                words = looks.last_words(await self._cluster.job_pods(live, piece))
                if words is not None:
                    jobs[piece] = await self._cluster.keep_report(live, piece, words.text)
        return replace(live, jobs=jobs)

    # ---- act and tell ----

    async def _act(self, case: _Case) -> float | None:
        step, work = case.step, case.work
        run = work.job(step.piece, case.reports) if step.runs else None
        try:
            await self._cluster.bring_about(case.live, trial=work.trial, replicas=step.replicas, run=run)
        except Refused as refusal:
            await self._report(case.document, Reason.APPLY_REFUSED, str(refusal))
            return REFUSED_RETRY_S
        if step.stage is Stage.OVER:
            reason, message = work.outcome(case.reports)
            await self._report(case.document, reason, message, result=self._result(case))
            return None
        reason, message = await self._words(case)
        await self._report(case.document, reason, message)
        return {Stage.STARTING: STARTING_EVERY_S, Stage.RUNNING: RUNNING_EVERY_S}.get(step.stage)

    def _result(self, case: _Case) -> Json:
        """The result, with what was measured as it was read when each piece was done."""
        jobs = [case.live.jobs[piece] for piece in sorted(case.reports)]
        measured = [measured_from_json(looks.annotation(job, MEASURED_ANNOTATION)) for job in jobs]
        times = {"startedAt": self._started(case), "finishedAt": self._finished(jobs)}
        return case.work.result(case.reports, measured[0]) | {
            name: time for name, time in times.items() if time is not None
        }

    def _started(self, case: _Case) -> str | None:
        stated = case.reports[min(case.reports)].get("started")
        return None if stated is None else wire_time(self._clock.from_real(datetime.fromisoformat(stated)))

    def _finished(self, jobs: Sequence[Object]) -> str | None:
        ends = [job.get("status", {}).get("completionTime") for job in jobs]
        known = [datetime.fromisoformat(end) for end in ends if end is not None]
        return wire_time(self._clock.from_real(max(known))) if known else None

    async def _words(self, case: _Case) -> tuple[Reason, str]:
        """Where the work stands, in a machine's and in people's words."""
        match case.step.stage:
            case Stage.SUSPENDED:
                return (
                    Reason.SUSPENDED,
                    "spec.suspend is true; nothing runs, and what was done is kept by the work volume",
                )
            case Stage.WAITING:
                return Reason.WAITING_FOR_QUIET_HOURS, case.hours.words
            case Stage.STARTING:
                pods = await self._cluster.pool_pods(case.live)
                wanted = case.step.replicas
                return Reason.ENGINE_STARTING, looks.starting_words(case.live.pool, pods, wanted, self._clock)
            case Stage.FAILED:
                return Reason.RUNNER_FAILED, await self._failure(case)
        return Reason.RUNNING, await self._running(case)

    async def _running(self, case: _Case) -> str:
        """What runs, and what it said where it had to be started again."""
        piece = case.step.piece
        text = f"the runner works with {piece} replica{'s' * (piece != 1)}"
        words = looks.last_words(await self._cluster.job_pods(case.live, piece)) if piece in case.live.jobs else None
        if words is None or not words.restarts:
            return text
        times = "once" if words.restarts == 1 else f"{words.restarts} times"
        return f"{text}; it was started again {times}, after exit code {words.code}{LAST_WORDS}{words.text}"

    async def _failure(self, case: _Case) -> str:
        """Why a runner failed. Its pod may be gone already: then it is known from when it was started again."""
        piece = case.step.piece
        job = case.live.jobs[piece]
        name = f"Job {job['metadata']['name']}"
        if looks.job_state(job) is JobState.DONE:
            return f"{name} is done, but {case.unreadable}"
        words = looks.last_words(await self._cluster.job_pods(case.live, piece))
        before = condition_of(case.document.get("status", {}), COMPLETE).get("message", "")
        last = before.partition(LAST_WORDS)[2] if words is None else words.text
        text = f"{name} failed: {looks.why_failed(job)}"
        return f"{text}{LAST_WORDS}{last}" if last else text

    async def _report(
        self,
        document: Object,
        reason: Reason,
        message: str,
        *,
        problems: Sequence[Problem] = (),
        result: Json | None = None,
    ) -> None:
        """Write the status where it changes, and tell of it. Raises Conflict."""
        progress = Progress(
            generation=document["metadata"]["generation"],
            work=work_id(document),
            now=self._clock.now(),
            reason=reason,
            message=message,
            problems=problems,
            result=result,
        )
        old = document.get("status", {})
        new = evidence_status(progress, old)
        if new == old or not await self._cluster.write_status(document, new):
            return
        was, now = condition_of(old, COMPLETE), condition_of(new, COMPLETE)
        if (was.get("reason"), was.get("status")) == (now["reason"], now["status"]):
            return
        bad = reason in {Reason.RUNNER_FAILED, Reason.INVALID, Reason.APPLY_REFUSED}
        text = f"{COMPLETE} is {now['status']}: {now['message']}"
        self._events.record(
            document,
            reason=reason.value,
            note=text,
            action="Measure",
            event_type=EventType.WARNING if bad else EventType.NORMAL,
        )
        name = f"{document['kind']} {document['metadata']['namespace']}/{document['metadata']['name']}"
        _log.log(logging.WARNING if bad else logging.INFO, "%s: %s: %s", name, reason.value, text)


def _reports(kind: EvidenceKind, live: Live) -> tuple[dict[int, Json], str]:
    """What the Jobs that are done handed back, by piece; and why one of them cannot be read."""
    found: dict[int, Json] = {}
    unreadable = "its pod is gone, and its report with it"
    for piece, job in sorted(live.jobs.items()):
        text = looks.annotation(job, REPORT_ANNOTATION)
        if text is None or looks.job_state(job) is not JobState.DONE:
            continue
        try:
            found[piece] = kind.read_report(text)
        except InputError as error:
            unreadable = f"its report cannot be read: {error.problems[0]}"
    return found, unreadable
