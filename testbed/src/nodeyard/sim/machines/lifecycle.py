"""Machines: from a template to a node, and what the node is told and tells."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.taints import taints_of
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.sim.executor import NotYet
from nodeyard.sim.index import Entity
from nodeyard.sim.machines import names
from nodeyard.sim.machines.clones import clone
from nodeyard.sim.machines.facts import Seen, annotations_of, is_true, labels_of, owner
from nodeyard.sim.machines.sets import updated
from nodeyard.sim.machines.workbench import Workbench

LOOK_AGAIN_SECONDS: Final = 1.0
_OWNED: Final = {
    "bootstrap": ("machine-of-config",),
    "infrastructure": ("machine-of-dev", "machine-of-docker", "machine-of-aws", "machine-of-proxmox"),
}


class Machines:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    async def reconcile(self, entity: Entity) -> None:
        obj, parent = entity.object, entity.related("set-of-machine")
        owning_set = parent.object if parent is not None else None
        await self._bench.finalize(obj, names.MACHINE_FINALIZER, is_held=True)
        if owning_set is not None and "phase" not in (obj.get("status") or {}):
            await self._bench.patch(obj, updated(obj, owning_set))
        config = await self._part(entity, owning_set, "bootstrap")
        infrastructure = await self._part(entity, owning_set, "infrastructure")
        await self._bench.patch(obj, _found(config, infrastructure))
        related = entity.related("node-of-machine")
        node = related.object if related is not None else None
        if node is not None:
            await self._bench.patch(node, synced(obj, node, owning_set))
        available = self._report(obj, config, infrastructure, node)
        await self._bench.report(obj, *available)
        self._wait_for_availability(obj, available[1])

    async def _part(self, entity: Entity, owning_set: Object | None, which: str) -> Object | None:
        """The machine's KubeadmConfig or infrastructure machine, owned by it; made from its set's template if missing.

        One that is owned is known by its relation, so that looking at a machine again costs no request.
        """
        for relation in _OWNED[which]:
            for known in entity.index.pointing(relation, entity):
                return known.object
        obj = entity.object
        reference = _reference(obj["spec"], which)
        if reference is None:
            return None
        namespace = obj["metadata"]["namespace"]
        found = await self._bench.follow(reference, namespace)
        if found is None and owning_set is not None:
            source = _reference(owning_set["spec"]["template"]["spec"], which) or {}
            template = await self._bench.follow(source, namespace)
            if template is None:
                raise NotYet(LOOK_AGAIN_SECONDS, f"no {source['kind']} {source['name']}", grows=False)
            await self._bench.create(clone(template, reference["name"], labels_of(obj), owner(obj)))
            return await self._bench.follow(reference, namespace)
        if found is not None and not _is_owned(found, obj):
            await self._bench.patch(found, {"metadata": {"ownerReferences": [owner(obj)]}})
        return found

    def _report(
        self, obj: Object, config: Object | None, infrastructure: Object | None, node: Object | None
    ) -> tuple[Object, list[Seen]]:
        is_provisioned = infrastructure is not None and _is_provisioned(infrastructure)
        has_data = config is None or bool((config.get("status") or {}).get("dataSecretName"))
        is_ready = node is not None and is_true(node, names.READY)
        told: Object = {
            "observedGeneration": obj["metadata"]["generation"],
            "phase": _phase(is_provisioned, node, obj, has_data=has_data),
            "initialization": {
                "bootstrapDataSecretCreated": has_data,
                "infrastructureProvisioned": is_provisioned,
            },
        }
        if node is not None:
            told["nodeRef"] = {"name": node["metadata"]["name"]}
            told["addresses"] = (node.get("status") or {}).get("addresses") or []
        lasting = is_ready and self._left(obj) <= 0
        return told, [
            Seen("InfrastructureReady", is_provisioned, "Ready" if is_provisioned else "NotReady"),
            Seen("NodeReady", is_ready, "NodeReady" if is_ready else "NodeNotReady"),
            Seen(names.READY, is_ready, "Ready" if is_ready else "NotReady"),
            Seen(names.AVAILABLE, lasting, "Available" if lasting else "WaitingForMinReadySeconds"),
        ]

    def _left(self, obj: Object) -> float:
        """Seconds until a machine that is ready counts as available."""
        wanted = obj["spec"].get("minReadySeconds") or 0
        if not wanted:
            return 0.0
        found = (obj.get("status") or {}).get("conditions") or ()
        since = next((one["lastTransitionTime"] for one in found if one["type"] == names.READY), None)
        if since is None or not is_true(obj, names.READY):
            return float(wanted)
        return (parse_rfc3339(since) + timedelta(seconds=wanted) - self._bench.clock.now()).total_seconds()

    def _wait_for_availability(self, obj: Object, seen: list[Seen]) -> None:
        holds = {one.type: one.holds for one in seen}
        if holds[names.READY] and not holds[names.AVAILABLE]:
            raise NotYet(max(0.1, self._left(obj)), "ready, not yet available", grows=False)


def synced(machine: Object, node: Object, owning_set: Object | None) -> Object:
    """What Cluster API sets on a node: who it is, the labels under its own prefixes, and no longer uninitialized."""
    wanted = {key: value for key, value in labels_of(machine).items() if names.synced_to_nodes(key)}
    before = filter(None, annotations_of(node).get(names.LABELS_FROM_MACHINE, "").split(","))
    metadata = machine["metadata"]
    told = {
        names.NODE_CLUSTER: machine["spec"]["clusterName"],
        names.NODE_NAMESPACE: metadata["namespace"],
        names.NODE_MACHINE: metadata["name"],
        names.LABELS_FROM_MACHINE: ",".join(sorted(wanted)),
        **_owned_by(owning_set),
    }
    body: Object = {"metadata": {"labels": {**dict.fromkeys(before, None), **wanted}, "annotations": told}}
    taints = taints_of(node)
    kept = [one for one in taints if one["key"] != names.UNINITIALIZED]
    if len(kept) < len(taints):
        body["spec"] = {"taints": kept or None}
        body["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
    return body


def _owned_by(owning_set: Object | None) -> Mapping[str, str]:
    if owning_set is None:
        return {}
    return {names.NODE_OWNER_KIND: names.SET.kind, names.NODE_OWNER_NAME: owning_set["metadata"]["name"]}


def _reference(spec: Object, which: str) -> Object | None:
    found = (spec.get("bootstrap") or {}).get("configRef") if which == "bootstrap" else spec["infrastructureRef"]
    return found if isinstance(found, dict) else None


def _is_owned(obj: Object, machine: Object) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(one["uid"] == machine["metadata"]["uid"] for one in owners)


def _is_provisioned(infrastructure: Object) -> bool:
    status = infrastructure.get("status") or {}
    return bool(status.get("ready") or (status.get("initialization") or {}).get("provisioned"))


def _found(config: Object | None, infrastructure: Object | None) -> Object:
    """What a machine takes over from its parts."""
    spec: Object = {}
    if config is not None and (name := (config.get("status") or {}).get("dataSecretName")):
        spec["bootstrap"] = {"dataSecretName": name}
    if infrastructure is not None and _is_provisioned(infrastructure):
        spec["providerID"] = infrastructure["spec"]["providerID"]
    return {"spec": spec}


def _phase(is_provisioned: bool, node: Object | None, obj: Object, *, has_data: bool) -> str:
    if node is not None or (obj.get("status") or {}).get("nodeRef"):
        return "Running"
    if is_provisioned:
        return "Provisioned"
    return "Provisioning" if has_data else "Pending"
