"""Clusters: they take their infrastructure and control plane, say how far those are, and go when all else has gone."""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Object
from nodeyard.sim.executor import NotYet
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.facts import Seen, is_deleting, labels_of, owner
from nodeyard.sim.machines.workbench import Workbench

LOOK_AGAIN_SECONDS: Final = 0.5


class Clusters:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    async def reconcile(self, entity: Entity) -> None:
        obj = entity.object
        if is_deleting(obj):
            await self._dissolve(entity)
            return
        await self._bench.finalize(obj, names.CLUSTER_FINALIZER, is_held=True)
        infrastructure = await self._taken(obj, "infrastructureRef")
        control_plane = await self._taken(obj, "controlPlaneRef")
        if infrastructure is not None and (endpoint := infrastructure["spec"].get("controlPlaneEndpoint")):
            await self._bench.patch(obj, {"spec": {"controlPlaneEndpoint": endpoint}})
        await self._bench.report(obj, *status(obj, infrastructure, control_plane))

    async def pause(self, entity: Entity) -> None:
        """All that is done for what is paused: to say so."""
        await self._bench.report(entity.object, {}, [Seen(names.PAUSED_CONDITION, True, "Paused")])

    async def _taken(self, obj: Object, field: str) -> Object | None:
        reference = obj["spec"].get(field)
        found = await self._bench.follow(reference, obj["metadata"]["namespace"]) if reference else None
        if found is None:
            if reference:
                raise NotYet(LOOK_AGAIN_SECONDS, f"no {reference['kind']} {reference['name']}", grows=False)
            return None
        metadata: Object = {"labels": {names.CLUSTER_NAME: obj["metadata"]["name"]}}
        owners = found["metadata"].get("ownerReferences") or []
        if not any(one["uid"] == obj["metadata"]["uid"] for one in owners):
            metadata["ownerReferences"] = [*owners, owner(obj)]
        await self._bench.patch(found, {"metadata": metadata})
        return found

    async def _dissolve(self, entity: Entity) -> None:
        """Workers first, then the control plane, then what they stood on."""
        obj = entity.object
        await self._bench.report(obj, {"phase": "Deleting"})
        workers = [
            *entity.index.pointing("cluster-of-deployment", entity),
            *(one for one in entity.index.pointing("cluster-of-machine", entity) if not _is_control(one.object)),
        ]
        for one in workers:
            await self._bench.delete(one.object)
        if workers:
            return
        for field in ("controlPlaneRef", "infrastructureRef"):
            reference = obj["spec"].get(field)
            found = await self._bench.follow(reference, obj["metadata"]["namespace"]) if reference else None
            if found is not None:
                await self._bench.delete(found)
                raise NotYet(LOOK_AGAIN_SECONDS, f"{reference['kind']} is still there", grows=False)
        await self._bench.finalize(obj, names.CLUSTER_FINALIZER, is_held=False)


def status(obj: Object, infrastructure: Object | None, control_plane: Object | None) -> tuple[Object, list[Seen]]:
    below = (infrastructure or {}).get("status") or {}
    has_infrastructure = bool(below.get("ready") or (below.get("initialization") or {}).get("provisioned"))
    above = ((control_plane or {}).get("status") or {}).get("initialization") or {}
    is_initialized = bool(above.get("controlPlaneInitialized"))
    told: Object = {
        "observedGeneration": obj["metadata"]["generation"],
        "phase": "Provisioned" if has_infrastructure else "Provisioning",
        "initialization": {
            "infrastructureProvisioned": has_infrastructure,
            "controlPlaneInitialized": is_initialized,
        },
    }
    if control_plane is not None:
        told["controlPlane"] = _counters(control_plane)
    return told, [
        Seen("InfrastructureReady", has_infrastructure, "Ready" if has_infrastructure else "NotReady"),
        Seen("ControlPlaneInitialized", is_initialized, "Initialized" if is_initialized else "NotInitialized"),
        Seen(names.PAUSED_CONDITION, False, "NotPaused"),
    ]


def _counters(control_plane: Object) -> Object:
    status = control_plane.get("status") or {}
    counted = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
    return {"desiredReplicas": control_plane["spec"].get("replicas", 1), **{key: status.get(key) for key in counted}}


def _is_control(machine: Object) -> bool:
    return names.CONTROL_PLANE_LABEL in labels_of(machine)
