"""Simulated controller of Machines: creates config and infrastructure, tracks the Node and syncs its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.taints import taints_of
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.sim.executor import Requeue
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.clones import clone
from nodeyard.sim.machines.machine_sets import update_patch
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import NewCondition, annotations_of, has_condition, is_provisioned, labels_of, owner

RETRY_SECONDS: Final = 1.0
_OWNED: Final = {
    "bootstrap": ("machine-of-config",),
    "infrastructure": ("machine-of-dev", "machine-of-docker", "machine-of-aws", "machine-of-proxmox"),
}


class Machines:
    def __init__(self, objects: ObjectClient) -> None:
        self._objects = objects

    async def reconcile(self, entity: Entity) -> None:
        obj, parent = entity.object, entity.related("set-of-machine")
        owning_set = parent.object if parent is not None else None
        await self._objects.set_finalizer(obj, names.MACHINE_FINALIZER, is_present=True)
        if owning_set is not None and "phase" not in (obj.get("status") or {}):
            await self._objects.patch(obj, update_patch(obj, owning_set))
        config = await self._dependency(entity, owning_set, "bootstrap")
        infrastructure = await self._dependency(entity, owning_set, "infrastructure")
        await self._objects.patch(obj, _spec_patch(config, infrastructure))
        related = entity.related("node-of-machine")
        node = related.object if related is not None else None
        if node is not None:
            await self._objects.patch(node, node_patch(obj, node, owning_set))
        status, updates = self._status(obj, config, infrastructure, node)
        await self._objects.update_status(obj, status, updates)
        self._wait_for_availability(obj, updates)

    async def _dependency(self, entity: Entity, owning_set: Object | None, part: str) -> Object | None:
        """Return the machine's KubeadmConfig or infrastructure machine; create it from the set's template if missing.

        The relations find one that is owned already without a request.
        """
        for relation in _OWNED[part]:
            for known in entity.index.referrers(relation, entity):
                return known.object
        obj = entity.object
        reference = _reference(obj["spec"], part)
        if reference is None:
            return None
        namespace = obj["metadata"]["namespace"]
        found = await self._objects.resolve(reference, namespace)
        if found is None and owning_set is not None:
            source = _reference(owning_set["spec"]["template"]["spec"], part) or {}
            template = await self._objects.resolve(source, namespace)
            if template is None:
                raise Requeue(RETRY_SECONDS, f"no {source['kind']} {source['name']}", has_backoff=False)
            await self._objects.create(clone(template, reference["name"], labels_of(obj), owner(obj)))
            return await self._objects.resolve(reference, namespace)
        if found is not None and not _is_owned(found, obj):
            await self._objects.patch(found, {"metadata": {"ownerReferences": [owner(obj)]}})
        return found

    def _status(
        self, obj: Object, config: Object | None, infrastructure: Object | None, node: Object | None
    ) -> tuple[Object, list[NewCondition]]:
        has_infrastructure = infrastructure is not None and is_provisioned(infrastructure)
        has_data = config is None or bool((config.get("status") or {}).get("dataSecretName"))
        is_ready = node is not None and has_condition(node, names.READY)
        fields: Object = {
            "observedGeneration": obj["metadata"]["generation"],
            "phase": _phase(has_infrastructure, node, obj, has_data=has_data),
            "initialization": {
                "bootstrapDataSecretCreated": has_data,
                "infrastructureProvisioned": has_infrastructure,
            },
        }
        if node is not None:
            fields["nodeRef"] = {"name": node["metadata"]["name"]}
            fields["addresses"] = (node.get("status") or {}).get("addresses") or []
        is_available = is_ready and self._seconds_until_available(obj) <= 0
        return fields, [
            NewCondition("InfrastructureReady", has_infrastructure, "Ready" if has_infrastructure else "NotReady"),
            NewCondition("NodeReady", is_ready, "NodeReady" if is_ready else "NodeNotReady"),
            NewCondition(names.READY, is_ready, "Ready" if is_ready else "NotReady"),
            NewCondition(names.AVAILABLE, is_available, "Available" if is_available else "WaitingForMinReadySeconds"),
        ]

    def _seconds_until_available(self, obj: Object) -> float:
        """Return the seconds until a ready machine counts as available."""
        wanted = obj["spec"].get("minReadySeconds") or 0
        if not wanted:
            return 0.0
        found = (obj.get("status") or {}).get("conditions") or ()
        since = next((one["lastTransitionTime"] for one in found if one["type"] == names.READY), None)
        if since is None or not has_condition(obj, names.READY):
            return float(wanted)
        return (parse_rfc3339(since) + timedelta(seconds=wanted) - self._objects.clock.now()).total_seconds()

    def _wait_for_availability(self, obj: Object, updates: list[NewCondition]) -> None:
        holds = {one.type: one.holds for one in updates}
        if holds[names.READY] and not holds[names.AVAILABLE]:
            raise Requeue(max(0.1, self._seconds_until_available(obj)), "ready, not yet available", has_backoff=False)


def node_patch(machine: Object, node: Object, owning_set: Object | None) -> Object:
    """Return the patch of a node: Cluster API's annotations, synced labels, and no uninitialized taint."""
    wanted = {key: value for key, value in labels_of(machine).items() if names.synced_to_nodes(key)}
    before = filter(None, annotations_of(node).get(names.LABELS_FROM_MACHINE, "").split(","))
    metadata = machine["metadata"]
    fields = {
        names.NODE_CLUSTER: machine["spec"]["clusterName"],
        names.NODE_NAMESPACE: metadata["namespace"],
        names.NODE_MACHINE: metadata["name"],
        names.LABELS_FROM_MACHINE: ",".join(sorted(wanted)),
        **_owner_annotations(owning_set),
    }
    body: Object = {"metadata": {"labels": {**dict.fromkeys(before, None), **wanted}, "annotations": fields}}
    taints = taints_of(node)
    kept = [one for one in taints if one["key"] != names.UNINITIALIZED]
    if len(kept) < len(taints):
        body["spec"] = {"taints": kept or None}
        body["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
    return body


def _owner_annotations(owning_set: Object | None) -> Mapping[str, str]:
    if owning_set is None:
        return {}
    return {names.NODE_OWNER_KIND: names.SET.kind, names.NODE_OWNER_NAME: owning_set["metadata"]["name"]}


def _reference(spec: Object, part: str) -> Object | None:
    found = (spec.get("bootstrap") or {}).get("configRef") if part == "bootstrap" else spec["infrastructureRef"]
    return found if isinstance(found, dict) else None


def _is_owned(obj: Object, machine: Object) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(one["uid"] == machine["metadata"]["uid"] for one in owners)


def _spec_patch(config: Object | None, infrastructure: Object | None) -> Object:
    """Return the patch with the machine's fields that come from its config and infrastructure."""
    spec: Object = {}
    if config is not None and (name := (config.get("status") or {}).get("dataSecretName")):
        spec["bootstrap"] = {"dataSecretName": name}
    if infrastructure is not None and is_provisioned(infrastructure):
        spec["providerID"] = infrastructure["spec"]["providerID"]
    return {"spec": spec}


def _phase(has_infrastructure: bool, node: Object | None, obj: Object, *, has_data: bool) -> str:
    if node is not None or (obj.get("status") or {}).get("nodeRef"):
        return "Running"
    if has_infrastructure:
        return "Provisioned"
    return "Provisioning" if has_data else "Pending"
