"""The plans of all keys, kept current for the page.

    watch event ──key──▶ marked ──debounced──▶ collect (event loop) ──▶ plan, brake, fold (thread) ──▶ feed

One key is planned at a time. A key that this process reconciles itself is not planned twice: the reconciler's passes
are shown instead (`observe`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.dashboard.feed import ATTENTION, Feed, Visible
from nodeyard.dashboard.plan_summary import members_of, summarize
from nodeyard.dashboard.wire import Held, PlanSummary
from nodeyard.kube.conditions import TRUE
from nodeyard.plan.brake import JOINT, Braked, Limit
from nodeyard.plan.explain import HELD_TYPE
from nodeyard.plan.identity import assign_id, with_actions
from nodeyard.plan.model import Action, Decision, ObjectRef, Plan
from nodeyard.process.aio import first_of
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.annotations import root_ref
from nodeyard.runtime.capability import Capability, Key, WatchNotSynced
from nodeyard.runtime.dry_plan import DryPlan, prepare_plan
from nodeyard.runtime.reconcile.passes import PassEvent
from nodeyard.runtime.reconcile.plan_executor import PlanExecutor, ThreadPlanExecutor
from nodeyard.runtime.reconcile.reconciler import required_kinds
from nodeyard.runtime.reconcile.result import Ending
from nodeyard.runtime.surface import Attention, Severity
from nodeyard.watch.view import CacheView

DEBOUNCE_SECONDS: Final = 1.0
RESYNC_SECONDS: Final = 600.0

_Subject: TypeAlias = tuple[str, Key]

_log = get_logger("dashboard")


class LivePlanner:
    def __init__(
        self,
        views: Mapping[str, tuple[Capability, CacheView]],
        feed: Feed,
        clock: Clock,
        *,
        is_led: Callable[[str, Key], bool] = lambda _capability, _key: False,
        executor: PlanExecutor | None = None,
    ) -> None:
        """`is_led` tells whether this process reconciles a key of a capability."""
        self._views = views
        self._feed = feed
        self._clock = clock
        self._is_led = is_led
        self._executor = executor or ThreadPlanExecutor("dashboard")
        self._lock = asyncio.Lock()
        self._marked: dict[_Subject, None] = {}
        self._unfolded: dict[_Subject, tuple[Braked, Outcome | None] | None] = {}
        self._wakes: dict[_Subject, datetime] = {}
        self._paused: set[_Subject] = set()
        """Keys whose last pass here ended because they are paused."""
        self._wake = asyncio.Event()
        self._braked: dict[_Subject, Braked] = {}
        self._summaries: dict[str, dict[Key, PlanSummary]] = {name: {} for name in views}
        self.limits: Mapping[str, Limit] = {}
        """The limits of the running operators, by capability."""

    # input

    def mark(self, capability: str, key: Key) -> None:
        """Plan a key again soon."""
        self._marked[capability, key] = None
        self._wake.set()

    def mark_all(self, capability: str = "") -> None:
        """Plan every key of a capability again, or of all."""
        for name, (each, view) in self._views.items():
            if capability in ("", name) and self._is_synced(each, view):
                known = {key for of, key in self._braked if of == name}
                for key in (*each.all_keys(view), *known):
                    self.mark(name, key)

    def set_limits(self, limits: Mapping[str, Limit]) -> None:
        changed = [name for name in self._views if limits.get(name) != self.limits.get(name)]
        self.limits = limits
        for name in changed:
            self.mark_all(name)

    def observe(self, event: PassEvent) -> None:
        """Take a pass of this process's own reconciler; constant work."""
        if event.capability not in self._views:
            return
        subject = event.capability, event.key
        if event.ending is Ending.PAUSED:
            # The reconciler does not plan it; a dry plan says that it is paused.
            self._paused.add(subject)
            self.mark(*subject)
        elif event.braked is not None or event.ending is Ending.GONE:
            self._paused.discard(subject)
            self._unfolded[subject] = None if event.braked is None else (event.braked, event.outcome)
            self._wake.set()

    # reading

    def dry_plan(self, capability: str, key: Key) -> DryPlan | None:
        """Return the shown plan of a key with its present root objects; None if there is none."""
        braked = self._braked.get((capability, key))
        if braked is None:
            return None
        each, view = self._views[capability]
        return DryPlan(each, key, braked, (), each.roots.of_key(view, key), each.roots.approval(view, key))

    def holding(self, id: str) -> list[tuple[DryPlan, Plan]]:
        """Return the plans of all keys that hold this id or all of its parts, each with its held part."""
        parts = frozenset(id.split(JOINT))
        found = [
            (self.dry_plan(*subject), braked.held)
            for subject, braked in self._braked.items()
            if braked.held is not None and parts.issubset(braked.held.id.split(JOINT))
        ]
        return [(dry_plan, held) for dry_plan, held in found if dry_plan is not None]

    def actions(self, capability: str, key: Key, group: str) -> Sequence[Action]:
        """Return the actions of one group of a plan, running and held ones; of all groups if it is empty."""
        braked = self._braked.get((capability, key))
        if braked is None:
            return ()
        parts = [braked.now.actions, *([braked.held.actions] if braked.held else [])]
        if not group:
            return [action for part in parts for action in part]
        return [action for part in parts for action in members_of(part).get(group, ())]

    async def explain(self, ref: ObjectRef, visible: Visible) -> list[tuple[DryPlan, Decision]]:
        """Return the decisions about an object, each with the plan that contains it."""
        found = []
        for name, (capability, view) in self._views.items():
            if (visible is not None and name not in visible) or not self._is_synced(capability, view):
                continue
            for key in sorted(set(capability.explain.keys_of(view, ref))):
                planned = await self._make_plan(name, key, (ref,))
                if planned is not None:
                    found += [(planned, decision) for decision in planned.decisions]
        return found

    # running

    async def run(self) -> None:
        """Plan what is marked, until cancelled."""
        resync_at = self._clock.monotonic() + RESYNC_SECONDS
        while True:
            await first_of(self._wake.wait(), self._clock.sleep(self._idle_seconds(resync_at)))
            await self._clock.sleep(DEBOUNCE_SECONDS)
            self._wake.clear()
            if self._clock.monotonic() >= resync_at:
                resync_at = self._clock.monotonic() + RESYNC_SECONDS
                self.mark_all()
            now = self._clock.now()
            for subject in [each for each, at in self._wakes.items() if at <= now]:
                del self._wakes[subject]
                self._marked[subject] = None
            await self._plan_marked()
            await self._publish()

    def close(self) -> None:
        self._executor.close()

    def _idle_seconds(self, resync_at: float) -> float:
        now = self._clock.now()
        seconds = [(at - now).total_seconds() for at in self._wakes.values()]
        return max(0.0, min([resync_at - self._clock.monotonic(), *seconds]))

    async def _plan_marked(self) -> None:
        marked, self._marked = self._marked, {}
        published_at = self._clock.monotonic()
        for name, key in marked:
            if self._is_passed(name, key):
                continue
            capability, view = self._views[name]
            if not self._is_synced(capability, view):
                # Marked again when a kind has synced.
                continue
            try:
                planned = await self._make_plan(name, key)
            except Exception:
                _log.exception("dashboard plan failed", capability=name, key=key)
                continue
            if self._is_passed(name, key):
                # The reconciler took over meanwhile; its pass is newer.
                continue
            self._unfolded[name, key] = None if planned is None else (planned.braked, None)
            if self._clock.monotonic() - published_at > DEBOUNCE_SECONDS:
                published_at = self._clock.monotonic()
                await self._publish()

    async def _make_plan(self, name: str, key: Key, explain: Sequence[ObjectRef] = ()) -> DryPlan | None:
        capability, view = self._views[name]
        async with self._lock:
            view.reservations.drop(key)
            try:
                make_plan = prepare_plan(
                    capability, view, key, self._clock.now(), self.limits.get(name, Limit()), explain
                )
            except WatchNotSynced:
                return None
            if make_plan is None:
                return None
            planned, dry_plan = await self._executor(make_plan)
            view.reservations.reserve(key, planned.reserves, planned.waits_for)
        if planned.plan.wake_at is not None:
            self._wakes[name, key] = planned.plan.wake_at
        return dry_plan

    def _is_passed(self, name: str, key: Key) -> bool:
        """Return whether the passes of this process show the plan of a key."""
        return self._is_led(name, key) and (name, key) not in self._paused

    def _is_synced(self, capability: Capability, view: CacheView) -> bool:
        return all(map(view.is_synced, required_kinds(capability))) and view.is_answered

    # output

    async def _publish(self) -> None:
        """Fold the new plans in the thread, and publish the lists of the capabilities that they concern."""
        unfolded, self._unfolded = self._unfolded, {}
        if not unfolded:
            return

        def fold() -> list[tuple[_Subject, Braked | None, PlanSummary | None]]:
            return [(subject, *_show(given)) for subject, given in unfolded.items()]

        touched: set[str] = set()
        for subject, braked, summary in await self._executor(fold):
            name, key = subject
            if braked is None:
                self._braked.pop(subject, None)
            else:
                self._braked[subject] = braked
            known = self._summaries[name]
            if summary is None and known.pop(key, None) is None:
                continue
            if summary is not None:
                known[key] = summary
            touched.add(name)
        for name in touched:
            plans = sorted(self._summaries[name].values(), key=_urgency)
            self._feed.publish("plans", name, plans)
            self._feed.publish(ATTENTION, name, list(self._held(name, plans)), by="plans")

    def _held(self, name: str, plans: Iterable[PlanSummary]) -> Iterable[Attention]:
        """Yield the held plans that wait for an approval, each at its root object."""
        capability, view = self._views[name]
        for plan in plans:
            if plan.held is None:
                continue
            roots = [(root, root_ref(capability, root)) for root in capability.roots.of_key(view, plan.key)]
            holding = [(ref, since) for root, ref in roots if ref and (since := _held_since(root)) is not None]
            refs = [ref for ref, _ in holding] or [ref for _, ref in roots if ref is not None]
            yield Attention(
                kind="HeldPlan",
                severity=Severity.WARNING,
                object=refs[0] if refs else plan.held.groups[0].samples[0],
                reason=plan.held.reason,
                message=f"Held: {_first_step(plan.held)}. {plan.held.message}",
                since=min((since for _, since in holding), default=None),
                link={"view": "plan", "capability": name, "key": plan.key},
            )


def _first_step(held: Held) -> str:
    """Return what the most disruptive actions of a held plan do."""
    more = len(held.groups) - 1
    return f"{held.groups[0].message}{f', and {more} more' if more else ''}"


def _show(given: tuple[Braked, Outcome | None] | None) -> tuple[Braked | None, PlanSummary | None]:
    """Return what is left of a plan after its writes, and its summary if there is anything to show."""
    if given is None:
        return None, None
    braked, outcome = given
    if outcome is not None:
        done = {each.action.id for each in outcome.results if each.result is Result.DONE}
        left = with_actions(braked.now, (action for action in braked.now.actions if action.id not in done))
        braked = Braked(left, braked.held)
    elif braked.now.actions and not braked.now.id:
        braked = Braked(assign_id(braked.now), braked.held)
    has_news = braked.now.actions or braked.now.blocked or braked.held
    return braked, summarize(braked) if has_news else None


def _urgency(plan: PlanSummary) -> tuple[Any, ...]:
    is_disruptive = any(group.disruption != "none" for group in plan.groups)
    return plan.held is None, not is_disruptive, not plan.groups, plan.key


def _held_since(root: Any) -> datetime | None:
    status = getattr(root, "status", None)
    for condition in getattr(status, "conditions", ()):
        if condition.type == HELD_TYPE and condition.status == TRUE:
            since: datetime | None = condition.last_transition_time
            return since
    return None
