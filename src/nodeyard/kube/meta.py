"""Accessors of `metadata`, for objects as plain dicts."""

from collections.abc import Mapping
from typing import Any

from nodeyard.kube.json import Object

_NONE: Mapping[str, Any] = {}


def metadata(obj: Object) -> Mapping[str, Any]:
    return obj.get("metadata") or _NONE


def name(obj: Object) -> str:
    return str(metadata(obj).get("name") or "")


def namespace(obj: Object) -> str:
    """Return the namespace; empty for cluster-scoped objects."""
    return str(metadata(obj).get("namespace") or "")


def uid(obj: Object) -> str:
    return str(metadata(obj).get("uid") or "")


def generation(obj: Object) -> int:
    return int(metadata(obj).get("generation") or 0)


def resource_version(obj: Object) -> str:
    return str(metadata(obj).get("resourceVersion") or "")


def labels(obj: Object) -> Mapping[str, str]:
    return metadata(obj).get("labels") or _NONE


def annotations(obj: Object) -> Mapping[str, str]:
    return metadata(obj).get("annotations") or _NONE


def finalizers(obj: Object) -> list[str]:
    return metadata(obj).get("finalizers") or []


def is_deleting(obj: Object) -> bool:
    return bool(metadata(obj).get("deletionTimestamp"))


def owner_references(obj: Object) -> list[Object]:
    return metadata(obj).get("ownerReferences") or []


def controller_of(obj: Object) -> Object | None:
    """Return the controller owner reference."""
    return next((owner for owner in owner_references(obj) if owner.get("controller")), None)
