"""The disruption controller: the status of PodDisruptionBudgets.

Pods are indexed only in namespaces that have a budget, by the few facts that count; a pod event that leaves these alone
costs nothing more. The condition DisruptionTarget of a pod that still runs after two minutes is reset.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, NamedTuple

from nodeyard.apiserver.controllers import disruption_status as statuses
from nodeyard.apiserver.controllers.conditions import with_pod_condition
from nodeyard.apiserver.controllers.controller import Cluster, Controller, service_account
from nodeyard.apiserver.controllers.metadata import BUDGETS, PODS
from nodeyard.apiserver.controllers.pod_facts import DISRUPTION_TARGET, PodFacts, disruption_announced, facts_of
from nodeyard.apiserver.controllers.scales import Scale, scale_of
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event, Key
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import LabelSelector, SelectorError, from_object

_STALE_AFTER = timedelta(minutes=2)


class Task(NamedTuple):
    """A budget to reconcile, or a pod with a DisruptionTarget condition to check."""

    what: Literal["budget", "pod"]
    key: Key


class DisruptionController(Controller[Task]):
    name = "disruption-controller"
    user = service_account("disruption-controller")
    watches = frozenset((BUDGETS, PODS))

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._budgets: dict[str, dict[str, LabelSelector]] = {}
        self._pods: dict[str, dict[str, PodFacts]] = {}

    def observe(self, resource: GroupResource, event: Event) -> None:
        if resource == BUDGETS:
            self._observe_budget(event)
        else:
            self._observe_pod(event)

    def _observe_budget(self, event: Event) -> None:
        namespace, name = event.stored.key
        if event.type == "DELETED":
            budgets = self._budgets.get(namespace, {})
            budgets.pop(name, None)
            if not budgets:
                self._budgets.pop(namespace, None)
                self._pods.pop(namespace, None)
            return
        if namespace not in self._budgets:
            self._pods[namespace] = {pod.key.name: facts_of(pod.raw) for pod in self.store.list(PODS, namespace)}
        self._budgets.setdefault(namespace, {})[name] = _selector(event.stored.object())
        self.queue.add(Task("budget", event.stored.key))

    def _observe_pod(self, event: Event) -> None:
        key, raw = event.stored.key, event.stored.raw
        if event.type != "DELETED" and (announced := disruption_announced(raw)) is not None:
            self.queue.add_after(Task("pod", key), self._until_stale(announced))
        pods = self._pods.get(key.namespace)
        if pods is None:
            return
        before = pods.pop(key.name, None)
        after = facts_of(raw) if event.type != "DELETED" else None
        if after is not None:
            pods[key.name] = after
        if before == after:
            return
        for name, selector in self._budgets[key.namespace].items():
            if any(facts is not None and selector.matches(facts.labels) for facts in (before, after)):
                self.queue.add(Task("budget", Key(key.namespace, name)))

    def _until_stale(self, announced: float) -> float:
        return announced + _STALE_AFTER.total_seconds() - self.now.timestamp()

    async def reconcile(self, key: Task) -> float | None:
        if key.what == "pod":
            return await self._call_off(key.key)
        return await self._count(key.key)

    # budgets

    async def _count(self, key: Key) -> float | None:
        stored = self.store.get(BUDGETS, *key)
        if stored is None:
            return None
        budget = stored.object()
        pods = self._covered(key)
        now = self.now
        granted = statuses.disrupted((budget.get("status") or {}).get("disruptedPods") or {}, pods, now)
        try:
            scales = await self._scales(budget, pods, key.namespace)
            counts = statuses.count(budget["spec"], pods, scales)
        except statuses.ScaleError as error:
            await self._write(budget, statuses.failed(budget, str(error), now))
            return None
        currently = statuses.healthy(pods, granted.pods)
        await self._write(budget, statuses.status(budget, counts, currently, granted.pods, now))
        return (granted.recheck_at - now).total_seconds() if granted.recheck_at else None

    def _covered(self, key: Key) -> dict[str, PodFacts]:
        selector = self._budgets[key.namespace][key.name]
        pods = self._pods[key.namespace]
        return {name: pods[name] for name in sorted(pods) if selector.matches(pods[name].labels)}

    async def _scales(self, budget: Object, pods: dict[str, PodFacts], namespace: str) -> dict[str, Scale | None]:
        scales: dict[str, Scale | None] = {}
        if not statuses.needs_scales(budget["spec"]):
            return scales
        for pod in pods.values():
            if pod.controller is not None and pod.controller.uid not in scales:
                scales[pod.controller.uid] = await scale_of(self.cluster, pod.controller, namespace, self.user)
        return scales

    async def _write(self, budget: Object, status: Object) -> None:
        if status is budget.get("status"):
            return
        metadata = budget["metadata"]
        url = self.url(BUDGETS, Key(metadata["namespace"], metadata["name"]), "status")
        await self.call("PUT", url, {**budget, "status": status})

    # pods

    async def _call_off(self, key: Key) -> float | None:
        stored = self.store.get(PODS, *key)
        announced = disruption_announced(stored.raw) if stored else None
        if stored is None or announced is None:
            return None
        wait = self._until_stale(announced)
        if wait > 0:
            return wait
        pod = stored.object()
        called_off = {"type": DISRUPTION_TARGET, "status": "False"}
        conditions = with_pod_condition(pod["status"]["conditions"], called_off, self.now)
        changed = {**pod, "status": {**pod["status"], "conditions": conditions}}
        await self.call("PUT", self.url(PODS, key, "status"), changed)
        return None


def _selector(budget: Object) -> LabelSelector:
    try:
        return from_object(budget["spec"].get("selector"))
    except SelectorError:
        return LabelSelector(is_nothing=True)
