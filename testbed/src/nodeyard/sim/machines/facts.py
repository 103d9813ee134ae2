"""What an object says of itself, and how an observation of it is written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodeyard.kube.json import Json, Object
from nodeyard.sim.machines import names


class Seen(NamedTuple):
    """One observation, on its way to become a condition."""

    type: str
    holds: bool | None
    """None: it cannot be told yet."""
    reason: str
    message: str = ""


def conditions(old: Iterable[Object], seen: Iterable[Seen], now: str, generation: int = 0) -> list[Object]:
    """The old ones with these set; the moment is that of the last change of status."""
    found = {one["type"]: one for one in old}
    for one in seen:
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


def is_true(obj: Object, type: str) -> bool:
    """Whether it has this condition."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == type and one["status"] == "True" for one in found)


def owner(obj: Object, *, controls: bool = True) -> Object:
    """An owner reference to it."""
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
    """As a merge patch that leaves just the new members."""
    return {**dict.fromkeys(old or (), None), **new}


def labels_of(obj: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return found


def annotations_of(obj: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def is_control_plane(machine: Object) -> bool:
    return names.CONTROL_PLANE_LABEL in labels_of(machine)
