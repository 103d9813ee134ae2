"""MachineDeployments: a MachineSet for each generation of machines, and the way from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodeyard.kube.json import Object
from nodeyard.sim.executor import NotYet
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.facts import Seen, is_deleting, owner, replaced
from nodeyard.sim.machines.rollout import Generation, amount, identity, scaled
from nodeyard.sim.machines.workbench import Workbench

_COUNTERS: Final = ("replicas", "readyReplicas", "availableReplicas")
_IN_PLACE: Final = ("deletion", "minReadySeconds", "readinessGates", "taints")


class Deployments:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    async def reconcile(self, entity: Entity) -> None:
        obj = entity.object
        sets = sorted(
            (one.object for one in entity.index.pointing("sets-of-deployment", entity)),
            key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]),
        )
        if is_deleting(obj):
            await self._dissolve(obj, sets)
            return
        await self._bench.finalize(obj, names.DEPLOYMENT_FINALIZER, is_held=True)
        if not obj["spec"].get("paused"):
            await self._roll(obj, sets)
        await self._bench.report(obj, *status(obj, sets))

    async def _dissolve(self, obj: Object, sets: Sequence[Object]) -> None:
        for one in sets:
            await self._bench.delete(one)
        if sets:
            await self._bench.report(obj, *status(obj, sets))
        await self._bench.finalize(obj, names.DEPLOYMENT_FINALIZER, is_held=bool(sets))

    async def _roll(self, obj: Object, sets: Sequence[Object]) -> None:
        current = current_set(obj, sets)
        old = [one for one in sets if one is not current]
        if current is None:
            await self._begin(obj, old)
            return
        await self._update(obj, current)
        sizes = _sizes(obj, current, old)
        for one in (current, *old):
            name = one["metadata"]["name"]
            if name in sizes:
                await self._bench.patch(one, {"spec": {"replicas": sizes[name]}})
        for one in old:
            if not one["spec"]["replicas"] and (one.get("status") or {}).get("replicas") == 0:
                await self._bench.delete(one)

    async def _begin(self, obj: Object, old: Sequence[Object]) -> None:
        """A set for what machines shall be now; it grows from nothing unless it is the first."""
        made = new_set(obj, 0 if old else obj["spec"].get("replicas", 1))
        if not await self._bench.create(made):
            raise NotYet(reason="a set of that name is still there", grows=False)

    async def _update(self, obj: Object, current: Object) -> None:
        """What reaches machines in place."""
        wanted = new_set(obj, current["spec"]["replicas"])
        template, present = wanted["spec"]["template"], current["spec"]["template"]
        spec = {key: template["spec"].get(key) for key in _IN_PLACE}
        about = template["metadata"]
        before = present.get("metadata") or {}
        metadata = {key: replaced(before.get(key), about[key]) for key in ("labels", "annotations")}
        body = {"spec": {"template": {"metadata": metadata, "spec": spec}}}
        await self._bench.patch(current, {**body, "metadata": {"labels": wanted["metadata"]["labels"]}})


def current_set(obj: Object, sets: Sequence[Object]) -> Object | None:
    """The set whose machines are what the deployment wants."""
    wanted = identity(obj["spec"]["template"]["spec"])
    fitting = (one for one in sets if identity(one["spec"]["template"]["spec"]) == wanted)
    return next((one for one in fitting if not is_deleting(one)), None)


def new_set(obj: Object, replicas: int) -> Object:
    spec, metadata = obj["spec"], obj["metadata"]
    template = spec["template"]
    about = template.get("metadata") or {}
    digest = identity(template["spec"])
    marked = {
        **(about.get("labels") or {}),
        names.CLUSTER_NAME: spec["clusterName"],
        names.DEPLOYMENT_NAME: metadata["name"],
        names.TEMPLATE_HASH: digest,
    }
    selector = {**((spec.get("selector") or {}).get("matchLabels") or {}), names.TEMPLATE_HASH: digest}
    told = {"labels": marked, "annotations": about.get("annotations") or {}}
    return {
        "apiVersion": names.VERSION,
        "kind": names.SET.kind,
        "metadata": {
            "name": f"{metadata['name'][:52]}-{digest}",
            "namespace": metadata["namespace"],
            "labels": marked,
            "ownerReferences": [owner(obj)],
            "finalizers": [names.SET_FINALIZER],
        },
        "spec": {
            "clusterName": spec["clusterName"],
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": {"metadata": told, "spec": template["spec"]},
            **({"deletion": spec["deletion"]} if "deletion" in spec else {}),
        },
    }


def status(obj: Object, sets: Sequence[Object]) -> tuple[Object, list[Seen]]:
    """Counters are sums over the sets, nothing where there is none; a phase only says whether the number is right."""
    wanted = obj["spec"].get("replicas", 1)
    counters = {name: sum(_counter(one, name) for one in sets) if sets else None for name in _COUNTERS}
    current = current_set(obj, sets)
    up_to_date = _counter(current, "replicas") if current else 0
    there = counters["replicas"] or 0
    told = {
        **counters,
        "upToDateReplicas": up_to_date if sets else None,
        "observedGeneration": obj["metadata"]["generation"],
        "selector": ",".join(f"{key}={value}" for key, value in sorted(_selector(obj).items())),
        "phase": _phase(obj, wanted, there),
    }
    enough = (counters["availableReplicas"] or 0) >= wanted - _unavailable(obj, wanted)
    return told, [
        _seen(names.AVAILABLE, enough and not is_deleting(obj), "Available", "NotAvailable"),
        _seen("MachinesReady", counters["readyReplicas"] == counters["replicas"], "Ready", "NotReady"),
        _seen("MachinesUpToDate", up_to_date == there, "UpToDate", "NotUpToDate"),
        _seen("RollingOut", up_to_date != there, "RollingOut", "NotRollingOut"),
        _seen("ScalingUp", there < wanted, "ScalingUp", "NotScalingUp"),
        _seen("ScalingDown", there > wanted, "ScalingDown", "NotScalingDown"),
        _seen(names.DELETING, is_deleting(obj), "Deleting", "NotDeleting"),
        Seen(names.PAUSED_CONDITION, False, "NotPaused"),
    ]


def _sizes(obj: Object, current: Object, old: Sequence[Object]) -> dict[str, int]:
    wanted = obj["spec"].get("replicas", 1)
    surge = amount(_step(obj, "maxSurge", 1), wanted, rounds_up=True)
    return scaled(wanted, _generation(current), [_generation(one) for one in old], surge, _unavailable(obj, wanted))


def _unavailable(obj: Object, wanted: int) -> int:
    return amount(_step(obj, "maxUnavailable", 0), wanted, rounds_up=False)


def _step(obj: Object, name: str, default: int) -> Any:
    strategy = (obj["spec"].get("rollout") or {}).get("strategy") or {}
    return (strategy.get("rollingUpdate") or {}).get(name, default)


def _generation(one: Object) -> Generation:
    return Generation(
        one["metadata"]["name"], one["spec"]["replicas"], _counter(one, "replicas"), _counter(one, "availableReplicas")
    )


def _counter(one: Object, name: str) -> int:
    value: int = (one.get("status") or {}).get(name) or 0
    return value


def _phase(obj: Object, wanted: int, there: int) -> str:
    if is_deleting(obj) or there > wanted:
        return "ScalingDown"
    return "Running" if there == wanted else "ScalingUp"


def _selector(obj: Object) -> dict[str, str]:
    found: dict[str, str] = (obj["spec"].get("selector") or {}).get("matchLabels") or {}
    return found


def _seen(type: str, holds: bool, reason: str, otherwise: str) -> Seen:
    return Seen(type, holds, reason if holds else otherwise)
