"""The reconciler: one pass over one key, the same for all capabilities.

    not leading · not synced · gone · paused · observe-only     each ends the pass before a write, in this order
    collect ─▶ plan ─▶ brake ─▶ apply ─▶ status ─▶ events

An object that is being deleted is planned like any other: its finalizer's work is a plan too. An exception affects only
its own key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random
from typing import Any, Final, TypeVar

import msgspec

from nodeyard.apply.applier import Applier
from nodeyard.apply.outcome import Outcome, Result
from nodeyard.apply.recorder import Recorder, StandingEvents
from nodeyard.apply.status import StatusResult, StatusWriter
from nodeyard.client.errors import ClientError
from nodeyard.client.resources import view_kind
from nodeyard.plan.brake import Braked, brake
from nodeyard.plan.model import Blocked, ObjectRef, Plan, Planned
from nodeyard.plan.reasons import EngineReason
from nodeyard.process.clock import Clock
from nodeyard.process.logs import bound, get_logger
from nodeyard.runtime.annotations import (
    annotations_of,
    approval_ids,
    approvals,
    end_approvals,
    is_key_paused,
    is_same_version,
    root_ref,
    roots_of,
    user_edits_of,
)
from nodeyard.runtime.background import LoopInputs
from nodeyard.runtime.capability import (
    Capability,
    Event,
    Key,
    MetricsRecorder,
    PeerOperator,
    Report,
    View,
    WatchNotSynced,
)
from nodeyard.runtime.leader.write_fence import WriteFence
from nodeyard.runtime.metrics import CapabilityMetrics, EventLatency
from nodeyard.runtime.reconcile.expectations import Expectations, Subject, subject_of
from nodeyard.runtime.reconcile.freshness import Freshness
from nodeyard.runtime.reconcile.observe_only import (
    BLOCKED,
    BY_FLAG,
    REPLACED_OPERATOR_RUNNING,
    STALE,
    WATCH_BROKEN,
    EngineCondition,
    ObserveOnly,
    SharedHolds,
    held_condition,
    with_engine_conditions,
    with_observing,
)
from nodeyard.runtime.reconcile.passes import PassEvent, PassObserver
from nodeyard.runtime.reconcile.plan_executor import PlanExecutor
from nodeyard.runtime.reconcile.result import RETRIED, Ending, ReconcileResult, requeue_after, result_of
from nodeyard.runtime.settings import Settings
from nodeyard.watch.reservations import Reservations
from nodeyard.watch.shared_informer import full_name

SYNC_SECONDS: Final = 0.25
OBSERVE_SECONDS: Final = 30.0
# A plan is sent for at least this long before newer events replace its rest; else steady change would starve it.
SENDING_SECONDS: Final = 1.0
# Up to this many roots are compared before each write; with more, only after an event.
FEW_ROOTS: Final = 4
# An approval whose actions have been sent may have ended, and no event need follow.
APPROVED_SECONDS: Final = 1.0
# An ended approval that could not be removed is tried again.
ENDING_SECONDS: Final = 30.0
# A watch that recovers within this time is not reported in a status.
STALE_SECONDS: Final = 5.0

_NOT_WRITTEN = (Result.FAILED, Result.UNKNOWN, Result.CONFLICT, Result.DENIED)

_WARNING: Final = "Warning"

_log = get_logger("reconciler")

T = TypeVar("T")


@dataclass(frozen=True)
class Tools:
    """The collaborators of a reconciler."""

    view: View
    applier: Applier
    status_writer: StatusWriter
    recorder: Recorder
    fence_of: Callable[[Key], WriteFence]
    plan_executor: PlanExecutor
    clock: Clock
    metrics: CapabilityMetrics
    random: Random
    expectations: Expectations
    latency: EventLatency
    metrics_recorder: MetricsRecorder | None = None
    is_answered: Callable[[], bool] = lambda: True
    """Return True if everything that `collect` asked about the server itself was known."""
    loop_inputs: LoopInputs = field(default_factory=LoopInputs)
    freshness: Freshness | None = None
    publish: Callable[[], None] = lambda: None
    """Called when the held plans or observe-only mode have changed."""
    enqueue: Callable[[Key], None] = lambda _key: None
    """Queues another key."""
    reservations: Reservations = field(default_factory=Reservations)
    on_pass: PassObserver = lambda _event: None


class Reconciler:
    def __init__(self, capability: Capability, tools: Tools, settings: Settings) -> None:
        self._capability = capability
        self._tools = tools
        self._settings = settings
        self._observe_only = ObserveOnly(capability, settings, tools.metrics)
        self._standing = StandingEvents()
        self._required = required_kinds(capability)
        self.reports_staleness = False
        """True if a status reports stale caches, or writes were held for them."""
        self.held: dict[Key, Plan] = {}
        """The plans that wait for an approval, by key."""
        self._shared = SharedHolds()
        self.observe_reason = BY_FLAG if settings.observe else ""
        """Why the last pass was observe-only; empty if it was not."""

    async def reconcile(self, key: Key) -> ReconcileResult:
        """Reconcile a key. Raises nothing but CancelledError."""
        id = f"{self._tools.random.getrandbits(32):08x}"
        began = self._tools.clock.monotonic()
        self._tools.latency.begin(key)
        self._tools.expectations.begin(key)
        self._tools.reservations.begin(key)
        with bound(reconcile=id, capability=self._capability.name, key=key):
            try:
                result = await self._pass(key)
            except Exception:
                _log.exception("reconcile failed")
                result = ReconcileResult(Ending.ERROR)
            finally:
                self._tools.expectations.end(key)
                # A reservation that is left was not written: other keys may have it.
                for each in self._tools.reservations.release(key):
                    self._tools.enqueue(each)
        self._tools.metrics.reconcile_seconds.observe(self._tools.clock.monotonic() - began)
        self._tools.metrics.record_result(result.ending.value)
        self._tools.latency.end(key, result)
        self._tools.on_pass(PassEvent(self._capability.name, key, ending=result.ending))
        return result

    async def _pass(self, key: Key) -> ReconcileResult:
        tools, capability = self._tools, self._capability
        now, seen_at = tools.clock.now(), tools.clock.monotonic()
        if not tools.fence_of(key).may_write():
            return ReconcileResult(Ending.NOT_LEADING)
        if not self.is_synced():
            return ReconcileResult(Ending.NOT_SYNCED, SYNC_SECONDS)
        try:
            snapshot = capability.collect(tools.view, key, now)
        except WatchNotSynced:
            return ReconcileResult(Ending.NOT_SYNCED, SYNC_SECONDS)
        if not tools.is_answered():
            return ReconcileResult(Ending.NOT_SYNCED, SYNC_SECONDS)
        if snapshot is None:
            self.forget(key)
            return ReconcileResult(Ending.GONE)
        # Decided before loops get the key: they write nothing in observe-only mode.
        observing = self._observe_only.reason(tools.view, now)
        if observing != self.observe_reason:
            self.observe_reason = observing
            tools.publish()
        if capability.background is not None:
            tools.loop_inputs.put(key, capability.background.input(snapshot, now))
        roots, shared = capability.roots.of_key(tools.view, key), capability.roots.held(tools.view, key)
        if is_key_paused(capability, roots):
            _log.info("reconcile skipped", reason="Paused")
            # The loops continue while paused, and their input may change without an event.
            return ReconcileResult(Ending.PAUSED, OBSERVE_SECONDS if capability.background is not None else None)
        planned, braked = await self._plan(
            key, snapshot, now, approvals((*roots, *capability.roots.approval(tools.view, key)))
        )
        if not tools.reservations.reserve(key, planned.reserves, planned.waits_for):
            _log.info("reconcile restarted", reason="another key took or released a part of the same budget")
            return ReconcileResult(Ending.CONFLICT)
        self._record_plan(key, braked)
        tools.on_pass(PassEvent(capability.name, key, braked))
        if observing:
            return await self._observe(braked.now, roots, observing, now)
        if outdated := await self._verify(key, braked.now, roots):
            return outdated
        whole, is_final = planned, planned.is_final and braked.held is None
        planned = msgspec.structs.replace(planned, plan=braked.now, is_final=is_final)
        outcome = await self._apply(planned, seen_at, (*roots, *capability.roots.approval(tools.view, key)))
        outcome = msgspec.structs.replace(outcome, waited=tools.latency.waited(key))
        tools.on_pass(PassEvent(capability.name, key, braked, outcome))
        if outcome.is_complete:
            # The cache shows the writes from now on.
            tools.reservations.release(key)
        written = await self._report(snapshot, braked.now, outcome, self._refs(roots), now)
        result = self._result(braked.now, outcome, written)
        again = await self._end_approvals(whole, (*roots, *shared), outcome)
        return result if again is None else _requeue_within(result, again)

    def observes(self) -> str:
        """Return why nothing may be written now; empty if writes may go out."""
        return self._observe_only.reason(self._tools.view, self._tools.clock.now())

    @property
    def is_observing(self) -> bool:
        """True if the last pass was observe-only; constant time, any thread."""
        return self._observe_only.is_observing

    def forget(self, key: Key) -> None:
        """Forget a key that no longer exists, or that another replica owns."""
        if self.held.pop(key, None) is not None:
            self._requeue_shared(key, None, "")
            self._tools.publish()
        self._standing.forget(key)
        self._tools.loop_inputs.drop(key)
        self._tools.metrics.forget(key)
        if self._tools.metrics_recorder is not None:
            self._tools.metrics_recorder.forget(key)

    # the steps

    def is_synced(self) -> bool:
        """Return True if every required informer has synced. A plan from a partial cache would be wrong."""
        return all(map(self._tools.view.is_synced, self._required))

    async def _run(self, key: Key, work: Callable[[], T]) -> T:
        return work() if self._capability.plans_inline(key) else await self._tools.plan_executor(work)

    async def _plan(self, key: Key, snapshot: Any, now: datetime, approved: Collection[str]) -> tuple[Planned, Braked]:
        capability, limit = self._capability, self._settings.limit

        def plan() -> tuple[Planned, Braked]:
            planned = capability.plan(snapshot, now, ())
            return planned, brake(planned.plan, limit, capability.managed_nodes(snapshot), approved)

        began = self._tools.clock.monotonic()
        planned, braked = await self._run(key, plan)
        self._tools.metrics.plan_seconds.observe(self._tools.clock.monotonic() - began)
        return planned, braked

    def _record_plan(self, key: Key, braked: Braked) -> None:
        """Record the held part of a plan for the CLI and metrics, and log it once."""
        known = self.held.get(key)
        if braked.held is None:
            self.held.pop(key, None)
        else:
            self.held[key] = braked.held
            if known is None or known.id != braked.held.id:
                _log.warning("plan held", reason="NeedsApproval", id=braked.held.id, actions=len(braked.held.actions))
        if (known.id if known else "") != (braked.held.id if braked.held else ""):
            self._tools.publish()
        self._requeue_shared(key, braked.held, self._held_text(braked.now))
        self._tools.metrics.record_plan(braked.now, is_held=braked.held is not None)

    def _held_text(self, plan: Plan) -> str:
        """Return why a part of the plan is held; empty if nothing is."""
        blocked = next((each for each in plan.blocked if each.reason == EngineReason.NEEDS_APPROVAL), None)
        return "" if blocked is None else blocked.facts.text()

    def _requeue_shared(self, key: Key, held: Plan | None, message: str) -> None:
        """Requeue the keys of shared objects whose held edits have changed."""
        for ref in self._shared.hold(key, held, message):
            for each in self._capability.explain.keys_of(self._tools.view, ref):
                self._tools.enqueue(each)

    async def _observe(self, plan: Plan, roots: Sequence[Any], reason: str, now: datetime) -> ReconcileResult:
        """Log the actions and requeue: the end of the replaced operator causes no event."""
        for action in plan.actions:
            _log.info("action not sent", verb=action.verb.value, object=str(action.object), reason=action.reason,
                      mode="observe-only")  # fmt: skip
        seconds, peer = OBSERVE_SECONDS, self._observe_only.peer
        if reason != BY_FLAG and peer is not None:
            await self._report_peer(plan.key, roots, peer, now)
            if peer.until is not None:
                seconds = min(seconds, max(0.0, (peer.until - now).total_seconds()))
        requeue = requeue_after(plan, now)
        return ReconcileResult(Ending.OBSERVED, seconds if requeue is None else min(requeue, seconds))

    async def _report_peer(self, key: Key, roots: Sequence[Any], peer: PeerOperator, now: datetime) -> None:
        """Report the replaced operator on every root by event and condition; nothing else is written."""
        tools, message = self._tools, f"{peer.name} is still running: nothing is written. {peer.hand_over}".strip()
        known = self._refs(roots)
        self._record_events(
            key, [Event(ref, _WARNING, REPLACED_OPERATOR_RUNNING, message, is_standing=True) for _, ref in known]
        )
        writes = [write for root, ref in known if (write := with_observing(root, ref, message, now)) is not None]
        for result in await tools.status_writer.write(writes, self._cached, may_write=tools.fence_of(key).may_write):
            if result.result is not Result.DONE:
                _log.warning("status not written", object=str(result.object), reason=result.message)

    def _refs(self, roots: Sequence[Any]) -> list[tuple[Any, ObjectRef]]:
        return [(root, ref) for root in roots if (ref := root_ref(self._capability, root)) is not None]

    async def _verify(self, key: Key, plan: Plan, roots: Sequence[Any]) -> ReconcileResult | None:
        """While caches may be stale, read the roots before a write. Returns the result of the pass if they differ."""
        tools = self._tools
        fresh, stale = tools.freshness, self._staleness()
        if fresh is None or not stale or not plan.actions:
            return None
        known = roots_of(self._capability, plan.actions, self._refs(roots))
        known += self._refs(self._capability.roots.approval(tools.view, key))
        try:
            await fresh.refresh([ref for _, ref in known])
        except ClientError as error:
            self.reports_staleness = True
            _log.warning("writes held", reason=f"{stale}; reading the root objects failed: {error}")
            return ReconcileResult(Ending.FAILED)
        if all((shown := self._cached(ref)) is not None and is_same_version(shown, root) for root, ref in known):
            return None
        _log.info("reconcile restarted", reason=f"{stale}; a root object has changed")
        return ReconcileResult(Ending.CONFLICT)

    def _staleness(self, seconds: float = 0.0) -> str:
        return "" if self._tools.freshness is None else self._tools.freshness.staleness(seconds)

    async def _apply(self, planned: Planned, seen_at: float, roots: Sequence[Any]) -> Outcome:
        plan, tools = planned.plan, self._tools
        if not plan.actions:
            return Outcome()
        expected = _expected_writes(planned)
        tools.expectations.expect_writes(plan.key, (action.object for action in plan.actions), expected.values())
        until, fence = tools.clock.monotonic() + SENDING_SECONDS, tools.fence_of(plan.key)
        known = [(user_edits_of(root), ref) for root, ref in self._refs(roots) if self._cached(ref) is not None]

        def is_edited() -> bool:
            """Return True if a user edited, paused, approved or deleted a root: that stops the plan at once."""
            shown = ((edits, self._cached(ref)) for edits, ref in known)
            return any(now is None or user_edits_of(now) != edits for edits, now in shown)

        def may_write() -> bool:
            if not fence.may_write():
                return False
            is_outdated = tools.expectations.is_outdated(plan.key)
            if (is_outdated or len(known) <= FEW_ROOTS) and is_edited():
                return False
            return tools.clock.monotonic() < until or not (is_outdated or self._staleness())

        outcome = await tools.applier.apply(planned, may_write=may_write, seen_at=seen_at)
        tools.metrics.record_outcome(plan.key, outcome)
        if expected and outcome.is_complete:
            tools.expectations.confirm(plan.key, _versions(outcome, expected))
        return outcome

    async def _report(
        self, snapshot: Any, plan: Plan, outcome: Outcome, roots: Sequence[tuple[Any, ObjectRef]], now: datetime
    ) -> Sequence[StatusResult]:
        tools, reported_at = self._tools, self._tools.clock.now()

        def compute() -> Report:
            report = self._capability.report(snapshot, plan, outcome, reported_at)
            # Before the status is written, so that metrics match a status that is seen.
            if tools.metrics_recorder is not None and report.metrics is not None:
                tools.metrics_recorder.record(report.metrics)
            return report

        report = await self._run(plan.key, compute)
        may_write = tools.fence_of(plan.key).may_write
        shared = self._refs(self._capability.roots.held(tools.view, plan.key))
        conditions = {
            **self._conditions(plan, outcome, roots),
            **self._shared.conditions_of(ref for _, ref in shared),
        }
        merged = with_engine_conditions(report.statuses, (*roots, *shared), conditions, now)
        written = await tools.status_writer.write(merged, self._cached, may_write=may_write)
        self._record_events(plan.key, report.events)
        return written

    def _conditions(
        self, plan: Plan, outcome: Outcome, roots: Sequence[tuple[Any, ObjectRef]]
    ) -> Mapping[ObjectRef, Sequence[EngineCondition]]:
        """Return the reconciler's own conditions of each root."""
        found: dict[ObjectRef, list[EngineCondition]] = {}
        stale = self._staleness(STALE_SECONDS)
        self.reports_staleness = bool(stale)
        if stale:
            message = f"Caches are stale: {stale}. Root objects are read before each write."
            for _, ref in roots:
                found.setdefault(ref, []).append(EngineCondition(STALE, WATCH_BROKEN, message))
        if (held := self.held.get(plan.key)) is not None:
            for _, ref in roots_of(self._capability, held.actions, roots):
                found.setdefault(ref, []).append(held_condition(self._held_text(plan)))
        denials: dict[ObjectRef, list[Blocked]] = {}
        for each in outcome.results:
            if each.denial is not None:
                for _, ref in roots_of(self._capability, (each.action,), roots):
                    denials.setdefault(ref, []).append(each.denial)
        for ref, (first, *others) in denials.items():
            more = f" (and {len(others)} more)" if others else ""
            message = f"{first.object}: {first.facts.text()}{more}"
            found.setdefault(ref, []).append(EngineCondition(BLOCKED, first.reason, message))
        return found

    def _record_events(self, key: Key, events: Sequence[Event]) -> None:
        """Record events; those about a lasting state only when it begins."""
        for event in events:
            if not event.is_standing:
                self._record(event)
        for event in self._standing.new(key, (event for event in events if event.is_standing)):
            self._record(event)

    def _record(self, event: Event) -> None:
        if event.type == _WARNING:
            _log.warning("warning event", object=str(event.object), reason=event.reason, text=event.message)
        self._tools.recorder.record(event)

    def _cached(self, ref: ObjectRef) -> Any | None:
        return self._tools.view.get(view_kind(ref.api_version, ref.kind), ref.name, ref.namespace)

    async def _end_approvals(self, planned: Planned, roots: Sequence[Any], outcome: Outcome) -> float | None:
        """Remove the approvals on the roots that the plan no longer needs. Return when to look again, in seconds."""
        if not any(map(approval_ids, roots)):
            return None
        # With the versions that the status writes returned; an approval that arrived meanwhile is not in this plan.
        shown = [
            (now, ref)
            for root, ref in self._refs(roots)
            if (now := self._cached(ref)) is not None and annotations_of(now) == annotations_of(root)
        ]
        ended = end_approvals(shown, planned)
        if ended is None:
            return APPROVED_SECONDS if outcome.results and outcome.is_complete else None
        fence = self._tools.fence_of(planned.plan.key)
        removed = await self._tools.applier.apply(ended, may_write=fence.may_write)
        self._log_failures(removed)
        return None if removed.is_complete else ENDING_SECONDS

    def _log_failures(self, outcome: Outcome) -> None:
        waiting = Counter[str]()
        for each in outcome.results:
            if each.result in (Result.HELD, Result.SKIPPED):
                waiting[each.message] += 1
            elif each.result is not Result.DONE:
                _log.warning("action failed", result=each.result.value, object=str(each.action.object),
                             reason=each.message)  # fmt: skip
        for reason, count in waiting.items():
            _log.info("actions not sent", count=count, reason=reason)

    def _result(self, plan: Plan, outcome: Outcome, written: Sequence[StatusResult]) -> ReconcileResult:
        self._log_failures(outcome)
        unwritten = [each for each in written if each.result in _NOT_WRITTEN]
        for status in unwritten:
            _log.warning("status not written", object=str(status.object), result=status.result.value,
                         reason=status.message)  # fmt: skip
        result = result_of(plan, outcome, self._tools.clock.now(), self._settings.denied_retry)
        # Neither the rest of a held plan nor the status about a broken watch is triggered by an event: requeue.
        if result.ending is Ending.HELD and self._tools.fence_of(plan.key).may_write():
            result = _requeue_within(result, 0.0)
        elif self._staleness() and not self.reports_staleness:
            result = _requeue_within(result, STALE_SECONDS)
        if not unwritten or result.ending in RETRIED:
            return result
        is_denied = all(each.result is Result.DENIED for each in unwritten)
        return replace(result, ending=Ending.DENIED if is_denied else Ending.FAILED)


def _requeue_within(result: ReconcileResult, seconds: float) -> ReconcileResult:
    """Return the result with a requeue after at most these seconds."""
    after = seconds if result.requeue_after is None else min(result.requeue_after, seconds)
    return replace(result, requeue_after=after)


def required_kinds(capability: Capability) -> tuple[str, ...]:
    """Return the kinds that every plan of the capability depends on, as views name them."""
    return tuple(full_name(watch.resource) for watch in capability.watches if watch.needed is None)


def _expected_writes(planned: Planned) -> dict[str, ObjectRef]:
    """Return the objects of conditional writes by action id, if the plan is final. Their echoes can be recognised."""
    if not planned.is_final:
        return {}
    bound = {id for id, write in planned.writes.items() if write.resource_version}
    return {each.id: each.object for each in planned.plan.actions if each.id in bound and not each.object.cluster}


def _versions(outcome: Outcome, expected: Mapping[str, ObjectRef]) -> dict[Subject, set[str]]:
    """Return the resourceVersions that the responses of the expected writes returned."""
    found: dict[Subject, set[str]] = {}
    for each in outcome.results:
        if each.action.id in expected and each.version:
            found.setdefault(subject_of(each.action.object), set()).add(each.version)
    return found
