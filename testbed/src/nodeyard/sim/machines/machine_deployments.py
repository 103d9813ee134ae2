"""Simulated controller of MachineDeployments: one MachineSet per machine template, and rolling updates between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodeyard.kube.json import Object
from nodeyard.sim.executor import Requeue
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import NewCondition, is_deleting, owner, replaced
from nodeyard.sim.machines.rollout import SetSize, amount, identity, scaled

_COUNTERS: Final = ("replicas", "readyReplicas", "availableReplicas")
_IN_PLACE: Final = ("deletion", "minReadySeconds", "readinessGates", "taints")


class MachineDeployments:
    def __init__(self, objects: ObjectClient) -> None:
        self._objects = objects

    async def reconcile(self, entity: Entity) -> None:
        obj = entity.object
        sets = sorted(
            (one.object for one in entity.index.referrers("sets-of-deployment", entity)),
            key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]),
        )
        if is_deleting(obj):
            await self._delete(obj, sets)
            return
        await self._objects.set_finalizer(obj, names.DEPLOYMENT_FINALIZER, is_present=True)
        if not obj["spec"].get("paused"):
            await self._roll(obj, sets)
        await self._objects.update_status(obj, *status(obj, sets))

    async def _delete(self, obj: Object, sets: Sequence[Object]) -> None:
        for one in sets:
            await self._objects.delete(one)
        if sets:
            await self._objects.update_status(obj, *status(obj, sets))
        await self._objects.set_finalizer(obj, names.DEPLOYMENT_FINALIZER, is_present=bool(sets))

    async def _roll(self, obj: Object, sets: Sequence[Object]) -> None:
        current = current_set(obj, sets)
        old = [one for one in sets if one is not current]
        if current is None:
            await self._create_set(obj, old)
            return
        await self._update(obj, current)
        sizes = _sizes(obj, current, old)
        for one in (current, *old):
            name = one["metadata"]["name"]
            if name in sizes:
                await self._objects.patch(one, {"spec": {"replicas": sizes[name]}})
        for one in old:
            if not one["spec"]["replicas"] and (one.get("status") or {}).get("replicas") == 0:
                await self._objects.delete(one)

    async def _create_set(self, obj: Object, old: Sequence[Object]) -> None:
        """Create a MachineSet for the current template: at full size if it is the first, else at 0."""
        replicas = 0 if old else obj["spec"].get("replicas", 1)
        if not await self._objects.create(new_set(obj, replicas)):
            raise Requeue(reason="a MachineSet of that name is still being deleted", has_backoff=False)

    async def _update(self, obj: Object, current: Object) -> None:
        """Update the fields that reach machines in place."""
        wanted = new_set(obj, current["spec"]["replicas"])
        template, present = wanted["spec"]["template"], current["spec"]["template"]
        spec = {key: template["spec"].get(key) for key in _IN_PLACE}
        template_metadata = template["metadata"]
        before = present.get("metadata") or {}
        metadata = {key: replaced(before.get(key), template_metadata[key]) for key in ("labels", "annotations")}
        body = {"spec": {"template": {"metadata": metadata, "spec": spec}}}
        await self._objects.patch(current, {**body, "metadata": {"labels": wanted["metadata"]["labels"]}})


def current_set(obj: Object, sets: Sequence[Object]) -> Object | None:
    """Return the MachineSet of the current template."""
    wanted = identity(obj["spec"]["template"]["spec"])
    matching = (one for one in sets if identity(one["spec"]["template"]["spec"]) == wanted)
    return next((one for one in matching if not is_deleting(one)), None)


def new_set(obj: Object, replicas: int) -> Object:
    spec, metadata = obj["spec"], obj["metadata"]
    template = spec["template"]
    template_metadata = template.get("metadata") or {}
    digest = identity(template["spec"])
    labels = {
        **(template_metadata.get("labels") or {}),
        names.CLUSTER_NAME: spec["clusterName"],
        names.DEPLOYMENT_NAME: metadata["name"],
        names.TEMPLATE_HASH: digest,
    }
    selector = {**((spec.get("selector") or {}).get("matchLabels") or {}), names.TEMPLATE_HASH: digest}
    machine_metadata = {"labels": labels, "annotations": template_metadata.get("annotations") or {}}
    return {
        "apiVersion": names.VERSION,
        "kind": names.SET.kind,
        "metadata": {
            "name": f"{metadata['name'][:52]}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner(obj)],
            "finalizers": [names.SET_FINALIZER],
        },
        "spec": {
            "clusterName": spec["clusterName"],
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": {"metadata": machine_metadata, "spec": template["spec"]},
            **({"deletion": spec["deletion"]} if "deletion" in spec else {}),
        },
    }


def status(obj: Object, sets: Sequence[Object]) -> tuple[Object, list[NewCondition]]:
    """Return status fields and conditions; counters are sums over the MachineSets, null without any."""
    wanted = obj["spec"].get("replicas", 1)
    counters = {name: sum(_counter(one, name) for one in sets) if sets else None for name in _COUNTERS}
    current = current_set(obj, sets)
    up_to_date = _counter(current, "replicas") if current else 0
    actual = counters["replicas"] or 0
    fields = {
        **counters,
        "upToDateReplicas": up_to_date if sets else None,
        "observedGeneration": obj["metadata"]["generation"],
        "selector": ",".join(f"{key}={value}" for key, value in sorted(_selector(obj).items())),
        "phase": _phase(obj, wanted, actual),
    }
    enough = (counters["availableReplicas"] or 0) >= wanted - _unavailable(obj, wanted)
    return fields, [
        _condition(names.AVAILABLE, enough and not is_deleting(obj), "Available", "NotAvailable"),
        _condition("MachinesReady", counters["readyReplicas"] == counters["replicas"], "Ready", "NotReady"),
        _condition("MachinesUpToDate", up_to_date == actual, "UpToDate", "NotUpToDate"),
        _condition("RollingOut", up_to_date != actual, "RollingOut", "NotRollingOut"),
        _condition("ScalingUp", actual < wanted, "ScalingUp", "NotScalingUp"),
        _condition("ScalingDown", actual > wanted, "ScalingDown", "NotScalingDown"),
        _condition(names.DELETING, is_deleting(obj), "Deleting", "NotDeleting"),
        NewCondition(names.PAUSED_CONDITION, False, "NotPaused"),
    ]


def _sizes(obj: Object, current: Object, old: Sequence[Object]) -> dict[str, int]:
    wanted = obj["spec"].get("replicas", 1)
    surge = amount(_strategy(obj, "maxSurge", 1), wanted, rounds_up=True)
    return scaled(wanted, _set_size(current), [_set_size(one) for one in old], surge, _unavailable(obj, wanted))


def _unavailable(obj: Object, wanted: int) -> int:
    return amount(_strategy(obj, "maxUnavailable", 0), wanted, rounds_up=False)


def _strategy(obj: Object, name: str, default: int) -> Any:
    strategy = (obj["spec"].get("rollout") or {}).get("strategy") or {}
    return (strategy.get("rollingUpdate") or {}).get(name, default)


def _set_size(one: Object) -> SetSize:
    return SetSize(
        one["metadata"]["name"], one["spec"]["replicas"], _counter(one, "replicas"), _counter(one, "availableReplicas")
    )


def _counter(one: Object, name: str) -> int:
    value: int = (one.get("status") or {}).get(name) or 0
    return value


def _phase(obj: Object, wanted: int, actual: int) -> str:
    if is_deleting(obj) or actual > wanted:
        return "ScalingDown"
    return "Running" if actual == wanted else "ScalingUp"


def _selector(obj: Object) -> dict[str, str]:
    found: dict[str, str] = (obj["spec"].get("selector") or {}).get("matchLabels") or {}
    return found


def _condition(type: str, holds: bool, reason: str, otherwise: str) -> NewCondition:
    return NewCondition(type, holds, reason if holds else otherwise)
