"""Reading and building Kubernetes objects: conditions, owner references, labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodeyard.kube.json import Json, Object
from nodeyard.sim.machines import names


class NewCondition(NamedTuple):
    """A condition to set."""

    type: str
    holds: bool | None
    """None: Unknown."""
    reason: str
    message: str = ""


def conditions(old: Iterable[Object], updates: Iterable[NewCondition], now: str, generation: int = 0) -> list[Object]:
    """Return the old conditions with these set; lastTransitionTime changes with the status only."""
    found = {one["type"]: one for one in old}
    for one in updates:
        status = "Unknown" if one.holds is None else str(one.holds)
        before = found.get(one.type)
        since = before["lastTransitionTime"] if before and before["status"] == status else now
        found[one.type] = {
            "type": one.type,
            "status": status,
            "reason": one.reason,
            "message": one.message,
            "lastTransitionTime": since,
            **({"observedGeneration": generation} if generation else {}),
        }
    return list(found.values())


def is_deleting(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def has_condition(obj: Object, type: str) -> bool:
    """Return whether the object has this condition with status True."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == type and one["status"] == "True" for one in found)


def owner(obj: Object, *, controls: bool = True) -> Object:
    """Return an owner reference to the object."""
    metadata = obj["metadata"]
    held = {"controller": True, "blockOwnerDeletion": True} if controls else {}
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **held,
    }


def replaced(old: Mapping[str, Json] | None, new: Mapping[str, Json]) -> Object:
    """Return a merge patch that replaces the old members by the new ones."""
    return {**dict.fromkeys(old or (), None), **new}


def labels_of(obj: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return found


def annotations_of(obj: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def is_control_plane(machine: Object) -> bool:
    return names.CONTROL_PLANE_LABEL in labels_of(machine)


def is_provisioned(infrastructure: Object) -> bool:
    """Return whether an infrastructure cluster or machine is ready, by either version of the contract."""
    status = infrastructure.get("status") or {}
    return bool(status.get("ready") or (status.get("initialization") or {}).get("provisioned"))


def is_paused(obj: Object) -> bool:
    """Return whether the object is annotated as paused, which every Cluster API controller honours."""
    return names.PAUSED in annotations_of(obj)


def is_cluster_paused(cluster: Object) -> bool:
    return is_paused(cluster) or cluster["spec"].get("paused") is True
