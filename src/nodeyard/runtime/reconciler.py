"""One pass over one key, from what is observed to what is written: the shared loop of all capabilities.

    not leading · not synced · gone · paused · observing     each ends the pass before a write, in this order
    collect ─▶ plan ─▶ brake ─▶ apply ─▶ status ─▶ events

An object that is being deleted is planned like any other: what its finalizer waits for is a plan too. A pass that
raises concerns its key alone.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Final, Protocol, TypeVar

import msgspec

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.apply.standing import Standing
from nodeyard.apply.status import StatusResult
from nodeyard.plan.brake import Braked, brake
from nodeyard.plan.model import ObjectRef, Plan, Planned
from nodeyard.process.clock import Clock
from nodeyard.process.logs import bound, get_logger
from nodeyard.runtime.briefs import Briefs
from nodeyard.runtime.capability import Capability, Event, Key, Living, Measure, StatusWrite, View, Watch
from nodeyard.runtime.elections import Gate
from nodeyard.runtime.lag import Lag
from nodeyard.runtime.metrics import CapabilityMetrics
from nodeyard.runtime.news import News, Subject, subject_of
from nodeyard.runtime.observed import ORIGINAL_ALIVE, observed, resumed
from nodeyard.runtime.originals import BY_FLAG, Observing
from nodeyard.runtime.roots import approvals, is_paused, root_ref
from nodeyard.runtime.settings import Settings
from nodeyard.runtime.thinking import Thinker
from nodeyard.runtime.verdict import RETRIED, Ending, Verdict, verdict_of, wake_after

SYNC_SECONDS: Final = 0.25
OBSERVE_SECONDS: Final = 30.0
# A plan is sent for at least this long before newer events replace the rest of it, or under steady change nothing would
# ever be sent.
SENDING_SECONDS: Final = 1.0

_NOT_WRITTEN = (Result.FAILED, Result.UNKNOWN, Result.CONFLICT)

_WARNING: Final = "Warning"

_log = get_logger("reconciler")

T = TypeVar("T")


class Applying(Protocol):
    async def apply(self, planned: Planned, *, may_write: Callable[[], bool], seen_at: float) -> Outcome: ...


class Statuses(Protocol):
    async def write(
        self,
        writes: Sequence[StatusWrite],
        shown: Callable[[ObjectRef], Any | None],
        *,
        may_write: Callable[[], bool],
    ) -> Sequence[StatusResult]: ...


class Recording(Protocol):
    def record(self, occurrence: Event) -> None: ...


@dataclass(frozen=True)
class Tools:
    """What a reconciler works with."""

    view: View
    applier: Applying
    statuses: Statuses
    recorder: Recording
    gate_of: Callable[[Key], Gate]
    think: Thinker
    clock: Clock
    metrics: CapabilityMetrics
    random: Random
    news: News
    lag: Lag
    measure: Measure | None = None
    is_answered: Callable[[], bool] = lambda: True
    """Whether what `collect` asked about the server itself was known."""
    briefs: Briefs = field(default_factory=Briefs)


class Reconciler:
    def __init__(self, capability: Capability, tools: Tools, settings: Settings) -> None:
        self._capability = capability
        self._tools = tools
        self._settings = settings
        self._observing = Observing(capability, settings, tools.metrics)
        self._standing = Standing()
        self._vital = tuple(_name_of(watch) for watch in capability.watches if watch.needed is None)
        self.held: dict[Key, Plan] = {}
        """The plans that wait for an approval."""

    async def reconcile(self, key: Key) -> Verdict:
        """Never raises but to be cancelled."""
        id = f"{self._tools.random.getrandbits(32):08x}"
        began = self._tools.clock.monotonic()
        self._tools.lag.begin(key)
        self._tools.news.begin(key)
        with bound(reconcile=id, capability=self._capability.name, key=key):
            try:
                verdict = await self._pass(key)
            except Exception:
                _log.exception("reconcile failed")
                verdict = Verdict(Ending.ERROR)
            finally:
                self._tools.news.end(key)
        self._tools.metrics.reconcile_seconds.observe(self._tools.clock.monotonic() - began)
        self._tools.metrics.ended(verdict.ending.value)
        self._tools.lag.end(key, verdict)
        return verdict

    async def _pass(self, key: Key) -> Verdict:
        tools, capability = self._tools, self._capability
        now, seen_at = tools.clock.now(), tools.clock.monotonic()
        if not tools.gate_of(key).may_write():
            return Verdict(Ending.NOT_LEADING)
        if not self.is_synced():
            return Verdict(Ending.NOT_SYNCED, SYNC_SECONDS)
        snapshot = capability.collect(tools.view, key, now)
        if not tools.is_answered():
            return Verdict(Ending.NOT_SYNCED, SYNC_SECONDS)
        if snapshot is None:
            self.forget(key)
            return Verdict(Ending.GONE)
        # Before loops hear of the key: they write nothing where we only observe.
        observing = self._observing.reason(tools.view, now)
        self._brief(key, snapshot, now)
        roots = capability.roots(tools.view, key)
        if roots and not capability.plans_pauses and all(map(is_paused, roots)):
            _log.info("leaving alone", reason="paused")
            # A loop goes on, and what it was told may come to differ without an event.
            return Verdict(Ending.PAUSED, OBSERVE_SECONDS if capability.brief is not None else None)
        planned, braked = await self._plan(key, snapshot, now, approvals((*roots, *capability.wider(tools.view, key))))
        self._note(key, braked)
        if observing:
            return await self._observe(braked.now, roots, observing, now)
        is_final = planned.is_final and braked.held is None
        outcome = await self._apply(msgspec.structs.replace(planned, plan=braked.now, is_final=is_final), seen_at)
        outcome = msgspec.structs.replace(outcome, waited=tools.lag.waited(key))
        written = await self._report(snapshot, braked.now, outcome, self._refs(roots))
        return self._verdict(braked.now, outcome, written)

    def observes(self) -> str:
        """Why nothing is written now; empty when things are."""
        return self._observing.reason(self._tools.view, self._tools.clock.now())

    @property
    def is_observing(self) -> bool:
        """Whether the last pass found a reason to write nothing; constant time, any thread."""
        return self._observing.is_observing

    def forget(self, key: Key) -> None:
        """It names nothing any more, or another replica has it now."""
        self.held.pop(key, None)
        self._standing.forget(key)
        self._tools.briefs.drop(key)
        self._tools.metrics.forget(key)
        if self._tools.measure is not None:
            self._tools.measure.forget(key)

    # the steps

    def _brief(self, key: Key, snapshot: Any, now: datetime) -> None:
        if self._capability.brief is not None:
            self._tools.briefs.put(key, self._capability.brief(snapshot, now))

    def is_synced(self) -> bool:
        """A cache that has not been told everything would plan for a world that is not there."""
        return all(map(self._tools.view.is_synced, self._vital))

    async def _think(self, key: Key, work: Callable[[], T]) -> T:
        return work() if self._capability.is_small(key) else await self._tools.think(work)

    async def _plan(self, key: Key, snapshot: Any, now: datetime, approved: Collection[str]) -> tuple[Planned, Braked]:
        capability, limit = self._capability, self._settings.limit

        def think() -> tuple[Planned, Braked]:
            planned = capability.plan(snapshot, now, ())
            return planned, brake(planned.plan, limit, capability.managed(snapshot), approved)

        began = self._tools.clock.monotonic()
        planned, braked = await self._think(key, think)
        self._tools.metrics.plan_seconds.observe(self._tools.clock.monotonic() - began)
        return planned, braked

    def _note(self, key: Key, braked: Braked) -> None:
        """What is held, for all who ask, and once in the log."""
        known = self.held.get(key)
        if braked.held is None:
            self.held.pop(key, None)
        else:
            self.held[key] = braked.held
            if known is None or known.id != braked.held.id:
                _log.warning("holding", reason="NeedsApproval", id=braked.held.id, actions=len(braked.held.actions))
        self._tools.metrics.planned(braked.now, is_held=braked.held is not None)

    async def _observe(self, plan: Plan, roots: Sequence[Any], reason: str, now: datetime) -> Verdict:
        """Say what would be done, and look again: an original does not tell when it goes."""
        for action in plan.actions:
            _log.info("would act", verb=action.verb.value, object=str(action.object), reason=action.reason)
        seconds, living = OBSERVE_SECONDS, self._observing.living
        if reason != BY_FLAG and living is not None:
            await self._name_original(plan.key, roots, living, now)
            if living.until is not None:
                seconds = min(seconds, max(0.0, (living.until - now).total_seconds()))
        wake = wake_after(plan, now)
        return Verdict(Ending.OBSERVED, seconds if wake is None else min(wake, seconds))

    async def _name_original(self, key: Key, roots: Sequence[Any], living: Living, now: datetime) -> None:
        """On every root; nothing else is written."""
        tools, message = self._tools, f"{living.name} is alive: nothing is written. {living.hand_over}".strip()
        known = self._refs(roots)
        self._tell(key, [Event(ref, _WARNING, ORIGINAL_ALIVE, message, is_standing=True) for _, ref in known])
        writes = [write for root, ref in known if (write := observed(root, ref, message, now)) is not None]
        for result in await tools.statuses.write(writes, self._shown, may_write=tools.gate_of(key).may_write):
            if result.result is not Result.DONE:
                _log.warning("status not written", object=str(result.object), reason=result.message)

    def _refs(self, roots: Sequence[Any]) -> list[tuple[Any, ObjectRef]]:
        return [(root, ref) for root in roots if (ref := root_ref(self._capability, root)) is not None]

    async def _apply(self, planned: Planned, seen_at: float) -> Outcome:
        plan, tools = planned.plan, self._tools
        if not plan.actions:
            return Outcome()
        expected = _foreseen(planned)
        tools.news.writes(plan.key, (action.object for action in plan.actions), expected.values())
        until, gate = tools.clock.monotonic() + SENDING_SECONDS, tools.gate_of(plan.key)

        def may_write() -> bool:
            is_outdated = tools.news.has(plan.key) and tools.clock.monotonic() >= until
            return gate.may_write() and not is_outdated

        outcome = await tools.applier.apply(planned, may_write=may_write, seen_at=seen_at)
        tools.metrics.applied(plan.key, outcome)
        if expected and outcome.is_complete:
            tools.news.answered(plan.key, _versions(outcome, expected))
        return outcome

    async def _report(
        self, snapshot: Any, plan: Plan, outcome: Outcome, roots: Sequence[tuple[Any, ObjectRef]]
    ) -> Sequence[StatusResult]:
        tools = self._tools
        # All at once: going to another thread and back costs as much as most of it.
        report = functools.partial(self._think_back, snapshot, plan, outcome, tools.clock.now())
        writes, events = await self._think(plan.key, report)
        may_write = tools.gate_of(plan.key).may_write
        written = await tools.statuses.write(resumed(writes, roots), self._shown, may_write=may_write)
        self._tell(plan.key, events)
        return written

    def _think_back(
        self, snapshot: Any, plan: Plan, outcome: Outcome, now: datetime
    ) -> tuple[Sequence[StatusWrite], Sequence[Event]]:
        """What there is to say about a pass. Measured first: who reads the status reads metrics of the same pass."""
        if self._tools.measure is not None:
            self._tools.measure(snapshot, plan, outcome)
        capability = self._capability
        return capability.status(snapshot, plan, outcome, now), capability.events(snapshot, plan, outcome)

    def _tell(self, key: Key, events: Sequence[Event]) -> None:
        """What happened, and what has come to stand."""
        for event in events:
            if not event.is_standing:
                self._record(event)
        for event in self._standing.fresh(key, (event for event in events if event.is_standing)):
            self._record(event)

    def _record(self, event: Event) -> None:
        if event.type == _WARNING:
            _log.warning(event.message, object=str(event.object), reason=event.reason)
        self._tools.recorder.record(event)

    def _shown(self, ref: ObjectRef) -> Any | None:
        group = ref.api_version.rpartition("/")[0]
        return self._tools.view.get(f"{ref.kind}.{group}" if group else ref.kind, ref.name, ref.namespace)

    def _tell_failures(self, outcome: Outcome) -> None:
        waiting = Counter[str]()
        for each in outcome.results:
            if each.result in (Result.HELD, Result.SKIPPED):
                waiting[each.message] += 1
            elif each.result is not Result.DONE:
                _log.warning("action failed", result=each.result.value, object=str(each.action.object),
                             reason=each.message)  # fmt: skip
        for reason, count in waiting.items():
            _log.info("leaving actions", count=count, reason=reason)

    def _verdict(self, plan: Plan, outcome: Outcome, written: Sequence[StatusResult]) -> Verdict:
        self._tell_failures(outcome)
        unwritten = [each for each in written if each.result in _NOT_WRITTEN]
        for status in unwritten:
            _log.warning("status not written", object=str(status.object), reason=status.message)
        verdict = verdict_of(plan, outcome, self._tools.clock.now(), self._settings.denied_retry)
        is_worse = unwritten and verdict.ending not in RETRIED
        return Verdict(Ending.FAILED, verdict.wake_after, verdict.at_least) if is_worse else verdict


def _foreseen(planned: Planned) -> dict[str, ObjectRef]:
    """By action id, the objects that will be what their write says: it is bound to the version that was looked at."""
    if not planned.is_final:
        return {}
    bound = {id for id, write in planned.writes.items() if write.resource_version}
    return {each.id: each.object for each in planned.plan.actions if each.id in bound and not each.object.cluster}


def _versions(outcome: Outcome, expected: Mapping[str, ObjectRef]) -> dict[Subject, set[str]]:
    """What the expected writes led to, where the server's answer tells it."""
    found: dict[Subject, set[str]] = {}
    for each in outcome.results:
        if each.action.id in expected and each.version:
            found.setdefault(subject_of(each.action.object), set()).add(each.version)
    return found


def _name_of(watch: Watch) -> str:
    kind, group = watch.resource.kind, watch.resource.group
    return f"{kind}.{group}" if group else kind
