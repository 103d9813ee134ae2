"""Metrics of requests, and of the reconcile loop per capability.

Label values are bound once; the queue depth is read at scrape time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.client.api import Observer
from nodeyard.client.resources import Resource
from nodeyard.plan.model import Plan
from nodeyard.process.clock import Clock
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Key
from nodeyard.runtime.reconcile.result import Ending, ReconcileResult

THROTTLED_SECONDS: Final = 2.0
"""A plan that wakes within this time held a write back to limit its rate."""

_UNSERVED = frozenset({Ending.NOT_SYNCED, Ending.CONFLICT, Ending.DENIED, Ending.HELD, Ending.FAILED, Ending.ERROR})
"""Endings after which the events of the pass still wait for a write."""


class LoopMetrics:
    """The metrics of all capabilities; created once per process."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        one = ("capability",)
        self.depth = metrics.gauge(
            "nodeyard_queue_depth", "Keys in the workqueue that are ready and not being reconciled.", one
        )
        self.latency = metrics.histogram(
            "nodeyard_queue_latency_seconds", "Time that a ready key waited in the workqueue.", one
        )
        self.reconcile_seconds = metrics.histogram(
            "nodeyard_reconcile_seconds", "Duration of one reconcile, from snapshot to status.", one
        )
        self.plan_seconds = metrics.histogram(
            "nodeyard_plan_seconds", "Duration of planning, including the wait for the planner thread.", one
        )
        self.reconciles = metrics.counter(
            "nodeyard_reconciles_total", "Reconciles by result.", ("capability", "result")
        )
        self.actions = metrics.counter(
            "nodeyard_actions_total", "Actions of plans by verb and result.", ("capability", "verb", "result")
        )
        self.pending = metrics.gauge(
            "nodeyard_plan_actions", "Pending actions, summed over the last plan of each key.", one
        )
        self.blocked = metrics.gauge(
            "nodeyard_plan_blocked",
            "Blocked objects by reason, summed over the last plan of each key.",
            ("capability", "reason"),
        )
        self.held = metrics.gauge("nodeyard_plans_held", "Keys with a plan that waits for `nodeyard approve`.", one)
        self.leader = metrics.gauge("nodeyard_leader", "1 while this process is the leader and may write.", one)
        self.keys_held = metrics.gauge(
            "nodeyard_keys_held", "Keys whose Lease this process holds; only for sharded capabilities.", one
        )
        self.observing = metrics.gauge(
            "nodeyard_observing",
            "1 while in observe-only mode, by reason: `--observe`, or the replaced operator is still running.",
            ("capability", "reason"),
        )
        self.clusters = metrics.gauge(
            "nodeyard_cluster_connected",
            "1 while a remote cluster is connected, 0 while it is not.",
            ("capability", "cluster"),
        )

    def show_cluster(self, capability: str, cluster: str, is_connected: bool | None) -> None:
        """Set the connection gauge of a remote cluster; None removes it."""
        if is_connected is None:
            self.clusters.remove(capability, cluster)
        else:
            self.clusters.labels(capability, cluster).set(is_connected)

    def of(self, capability: str) -> CapabilityMetrics:
        return CapabilityMetrics(self, capability)


class CapabilityMetrics:
    """Metrics of one capability. Sums over all keys are updated incrementally: a pass costs only its own plan."""

    def __init__(self, all: LoopMetrics, capability: str) -> None:
        self._all = all
        self._capability = capability
        self._plans: dict[Key, Mapping[str, int]] = {}
        self._held: set[Key] = set()
        self._reason = ""
        self.latency = all.latency.labels(capability)
        self.reconcile_seconds = all.reconcile_seconds.labels(capability)
        self.plan_seconds = all.plan_seconds.labels(capability)
        # Looking up a child by its labels costs more than incrementing it, and few children exist.
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

    def record_result(self, result: str) -> None:
        self._reconciles(result).inc()

    def record_plan(self, plan: Plan, *, is_held: bool) -> None:
        counts = Counter(blocked.reason for blocked in plan.blocked) if plan.blocked else {}
        self._change(plan.key, {**counts, "": len(plan.actions)})
        if is_held != (plan.key in self._held):
            (self._held.add if is_held else self._held.discard)(plan.key)
            self._held_keys.set(len(self._held))

    def forget(self, key: Key) -> None:
        """Remove a key that no longer exists, or that another replica owns."""
        self._change(key, {})
        del self._plans[key]
        self._held.discard(key)
        self._held_keys.set(len(self._held))

    def record_outcome(self, key: Key, outcome: Outcome) -> None:
        left = sum(each.result is not Result.DONE for each in outcome.results)
        self._change(key, {**self._plans.get(key, {}), "": left})
        for each in outcome.results:
            self._actions(each.action.verb.value, each.result.value).inc()

    def set_observing(self, reason: str) -> None:
        """Set the reason of observe-only mode; empty ends it."""
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


class EventLatency:
    """Time from an event of a key to the write that serves it.

        event ──mark──▶ unserved ──begin──▶ being served ──end──▶ served, or unserved again with its first time

    A pass serves every event from before its snapshot. The events stay unserved if a write failed or was not sent, or
    if the plan wakes within seconds because it limits its write rate. A longer wake-up is not latency: nothing is due
    before it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unserved: dict[Key, float] = {}
        self._serving: dict[Key, float] = {}

    def mark(self, key: Key) -> None:
        """Record an event of the key."""
        self._unserved.setdefault(key, self._clock.monotonic())

    def begin(self, key: Key) -> None:
        """Start a pass, which serves all events so far."""
        since = self._unserved.pop(key, None)
        if since is not None:
            # A cancelled pass has left its own start time.
            self._serving.setdefault(key, since)

    def waited(self, key: Key) -> float | None:
        """Return the seconds since the first event that the running pass serves; None if there was none."""
        since = self._serving.get(key)
        return None if since is None else self._clock.monotonic() - since

    def end(self, key: Key, result: ReconcileResult) -> None:
        since = self._serving.pop(key, None)
        is_throttled = result.requeue_after is not None and result.requeue_after <= THROTTLED_SECONDS
        if since is not None and (result.ending in _UNSERVED or (result.ending is Ending.SETTLED and is_throttled)):
            self._unserved[key] = since


def request_observer(metrics: Metrics) -> Observer:
    """Return an observer for `Client(observe=...)`. It binds each series of verb, resource, code and reason once."""
    requests = metrics.counter(
        "nodeyard_client_requests_total",
        "Requests sent to an API server; code 0 is no response. A 403 has reason Forbidden (missing permission), "
        "NamespaceTerminating or AdmissionDenied.",
        ("verb", "resource", "code", "reason"),
    )  # fmt: skip
    seconds = metrics.histogram(
        "nodeyard_client_request_seconds",
        "Seconds from sending a request to the end of its response.",
        ("verb", "resource"),
    )
    counters: dict[tuple[str, str, int, str], Any] = {}
    histograms: dict[tuple[str, str], Any] = {}

    def observe(verb: str, resource: Resource[Any], code: int, duration: float, reason: str) -> None:
        name = str(resource)
        counter = counters.get((verb, name, code, reason))
        if counter is None:
            counter = counters[verb, name, code, reason] = requests.labels(verb, name, str(code), reason)
        histogram = histograms.get((verb, name))
        if histogram is None:
            histogram = histograms[verb, name] = seconds.labels(verb, name)
        counter.inc()
        histogram.observe(duration)

    return observe
