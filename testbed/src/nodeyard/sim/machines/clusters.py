"""Simulated controller of Clusters: adopts infrastructure and control plane, reports status, deletes in order."""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Object
from nodeyard.sim.executor import Requeue
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import NewCondition, is_control_plane, is_deleting, is_provisioned, owner

RETRY_SECONDS: Final = 0.5


class Clusters:
    def __init__(self, objects: ObjectClient) -> None:
        self._objects = objects

    async def reconcile(self, entity: Entity) -> None:
        obj = entity.object
        if is_deleting(obj):
            await self._delete(entity)
            return
        await self._objects.set_finalizer(obj, names.CLUSTER_FINALIZER, is_present=True)
        infrastructure = await self._adopt(obj, "infrastructureRef")
        control_plane = await self._adopt(obj, "controlPlaneRef")
        if infrastructure is not None and (endpoint := infrastructure["spec"].get("controlPlaneEndpoint")):
            await self._objects.patch(obj, {"spec": {"controlPlaneEndpoint": endpoint}})
        await self._objects.update_status(obj, *status(obj, infrastructure, control_plane))

    async def set_paused(self, entity: Entity) -> None:
        """Report that the object is paused."""
        await self._objects.update_status(entity.object, {}, [NewCondition(names.PAUSED_CONDITION, True, "Paused")])

    async def _adopt(self, obj: Object, field: str) -> Object | None:
        reference = obj["spec"].get(field)
        found = await self._objects.resolve(reference, obj["metadata"]["namespace"]) if reference else None
        if found is None:
            if reference:
                raise Requeue(RETRY_SECONDS, f"no {reference['kind']} {reference['name']}", has_backoff=False)
            return None
        metadata: Object = {"labels": {names.CLUSTER_NAME: obj["metadata"]["name"]}}
        owners = found["metadata"].get("ownerReferences") or []
        if not any(one["uid"] == obj["metadata"]["uid"] for one in owners):
            metadata["ownerReferences"] = [*owners, owner(obj)]
        await self._objects.patch(found, {"metadata": metadata})
        return found

    async def _delete(self, entity: Entity) -> None:
        """Delete workers, then the control plane, then the infrastructure."""
        obj = entity.object
        await self._objects.update_status(obj, {"phase": "Deleting"})
        workers = [
            *entity.index.referrers("cluster-of-deployment", entity),
            *(one for one in entity.index.referrers("cluster-of-machine", entity) if not is_control_plane(one.object)),
        ]
        for one in workers:
            await self._objects.delete(one.object)
        if workers:
            return
        for field in ("controlPlaneRef", "infrastructureRef"):
            reference = obj["spec"].get(field)
            found = await self._objects.resolve(reference, obj["metadata"]["namespace"]) if reference else None
            if found is not None:
                await self._objects.delete(found)
                raise Requeue(RETRY_SECONDS, f"{reference['kind']} is still there", has_backoff=False)
        await self._objects.set_finalizer(obj, names.CLUSTER_FINALIZER, is_present=False)


def status(
    obj: Object, infrastructure: Object | None, control_plane: Object | None
) -> tuple[Object, list[NewCondition]]:
    has_infrastructure = infrastructure is not None and is_provisioned(infrastructure)
    initialization = ((control_plane or {}).get("status") or {}).get("initialization") or {}
    is_initialized = bool(initialization.get("controlPlaneInitialized"))
    fields: Object = {
        "observedGeneration": obj["metadata"]["generation"],
        "phase": "Provisioned" if has_infrastructure else "Provisioning",
        "initialization": {
            "infrastructureProvisioned": has_infrastructure,
            "controlPlaneInitialized": is_initialized,
        },
    }
    if control_plane is not None:
        fields["controlPlane"] = _counters(control_plane)
    return fields, [
        NewCondition("InfrastructureReady", has_infrastructure, "Ready" if has_infrastructure else "NotReady"),
        NewCondition("ControlPlaneInitialized", is_initialized, "Initialized" if is_initialized else "NotInitialized"),
        NewCondition(names.PAUSED_CONDITION, False, "NotPaused"),
    ]


def _counters(control_plane: Object) -> Object:
    status = control_plane.get("status") or {}
    counted = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
    return {"desiredReplicas": control_plane["spec"].get("replicas", 1), **{key: status.get(key) for key in counted}}
