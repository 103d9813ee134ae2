"""What the loop measures of itself, per capability. Labels are bound once; depth is read when it is scraped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.plan.model import Plan
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Key


class LoopMetrics:
    """The series of all capabilities; made once per process."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        one = ("capability",)
        self.depth = metrics.gauge("nodeyard_queue_depth", "Keys that are due and not taken.", one)
        self.latency = metrics.histogram("nodeyard_queue_latency_seconds", "Time a key was due before its turn.", one)
        self.reconcile_seconds = metrics.histogram("nodeyard_reconcile_seconds", "Time of one whole pass.", one)
        self.plan_seconds = metrics.histogram("nodeyard_plan_seconds", "Time a planner took.", one)
        self.reconciles = metrics.counter(
            "nodeyard_reconciles_total", "Passes by how they ended.", ("capability", "result")
        )
        self.actions = metrics.counter(
            "nodeyard_actions_total", "Actions of plans by what became of them.", ("capability", "verb", "result")
        )
        self.pending = metrics.gauge(
            "nodeyard_plan_actions", "Actions of the last plan of each key that are not done, in all.", one
        )
        self.blocked = metrics.gauge(
            "nodeyard_plan_blocked", "Refusals in the last plan of each key, in all.", ("capability", "reason")
        )
        self.held = metrics.gauge("nodeyard_plans_held", "Keys whose plan waits for an approval.", one)
        self.leader = metrics.gauge("nodeyard_leader", "1 while this process may write.", one)
        self.keys_held = metrics.gauge(
            "nodeyard_keys_held", "Keys that this process has, where replicas share them out.", one
        )
        self.observing = metrics.gauge(
            "nodeyard_observing", "1 while nothing is written, by why not: a flag or a living original.",
            ("capability", "reason"),
        )  # fmt: skip

        self.clusters = metrics.gauge(
            "nodeyard_cluster_connected", "1 while a further cluster answers, 0 while there is no contact.",
            ("capability", "cluster"),
        )  # fmt: skip

    def show_cluster(self, capability: str, cluster: str, is_connected: bool | None) -> None:
        """None: it is not needed any more."""
        if is_connected is None:
            self.clusters.remove(capability, cluster)
        else:
            self.clusters.labels(capability, cluster).set(is_connected)

    def of(self, capability: str) -> CapabilityMetrics:
        return CapabilityMetrics(self, capability)


class CapabilityMetrics:
    """Gauges over all keys are kept as running sums: a pass costs what its own plan costs."""

    def __init__(self, all: LoopMetrics, capability: str) -> None:
        self._all = all
        self._capability = capability
        self._plans: dict[Key, Mapping[str, int]] = {}
        self._held: set[Key] = set()
        self._reason = ""
        self.latency = all.latency.labels(capability)
        self.reconcile_seconds = all.reconcile_seconds.labels(capability)
        self.plan_seconds = all.plan_seconds.labels(capability)
        # Finding a series by its labels costs more than counting on it, and few are ever used.
        self._reconciles = cache(partial(all.reconciles.labels, capability))
        self._actions = cache(partial(all.actions.labels, capability))
        self._blocked = cache(partial(all.blocked.labels, capability))
        self._pending = all.pending.labels(capability)
        self._held_keys = all.held.labels(capability)

    def expose(self, depth: Callable[[], float], leads: Callable[[], float]) -> None:
        self._all.depth.labels(self._capability).set_function(depth)
        self._all.leader.labels(self._capability).set_function(leads)

    def expose_held(self, held: Callable[[], float]) -> None:
        self._all.keys_held.labels(self._capability).set_function(held)

    def ended(self, result: str) -> None:
        self._reconciles(result).inc()

    def planned(self, plan: Plan, *, is_held: bool) -> None:
        counts = Counter(blocked.reason for blocked in plan.blocked) if plan.blocked else {}
        self._change(plan.key, {**counts, "": len(plan.actions)})
        if is_held != (plan.key in self._held):
            (self._held.add if is_held else self._held.discard)(plan.key)
            self._held_keys.set(len(self._held))

    def forget(self, key: Key) -> None:
        """The key names nothing any more, or is another's now."""
        self._change(key, {})
        del self._plans[key]
        self._held.discard(key)
        self._held_keys.set(len(self._held))

    def applied(self, key: Key, outcome: Outcome) -> None:
        left = sum(each.result is not Result.DONE for each in outcome.results)
        self._change(key, {**self._plans.get(key, {}), "": left})
        for each in outcome.results:
            self._actions(each.action.verb.value, each.result.value).inc()

    def observing(self, reason: str) -> None:
        """Empty: not any more."""
        if reason == self._reason:
            return
        if self._reason:
            self._all.observing.labels(self._capability, self._reason).set(0)
        self._reason = reason
        if reason:
            self._all.observing.labels(self._capability, reason).set(1)

    def _change(self, key: Key, counts: Mapping[str, int]) -> None:
        before = self._plans.get(key, {})
        self._plans[key] = counts
        for reason in before.keys() | counts.keys():
            if change := counts.get(reason, 0) - before.get(reason, 0):
                (self._blocked(reason) if reason else self._pending).inc(change)
