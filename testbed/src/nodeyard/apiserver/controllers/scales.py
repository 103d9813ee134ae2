"""The expected replicas of a pod's controller; those of the Deployment for a pod of its ReplicaSet."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.apiserver.controllers.controller import Cluster, object_url
from nodeyard.apiserver.controllers.disruption_status import ScaleError
from nodeyard.apiserver.controllers.metadata import Metadata, OwnerReference
from nodeyard.apiserver.errors import ApiError, qualified
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.store import Key, Stored
from nodeyard.apiserver.transport import User

_REPLICA_SETS: Final = GroupResource("apps", "replicasets")
_DEPLOYMENTS: Final = GroupResource("apps", "deployments")
_BUILT_IN: Final = {
    ("apps", "ReplicaSet"): _REPLICA_SETS,
    ("extensions", "ReplicaSet"): _REPLICA_SETS,
    ("apps", "StatefulSet"): GroupResource("apps", "statefulsets"),
    ("", "ReplicationController"): GroupResource("", "replicationcontrollers"),
}

Scale = tuple[str, int]
"""The uid of a controller, and its replicas."""


class _Spec(msgspec.Struct):
    replicas: int | None = None


class _Workload(msgspec.Struct):
    metadata: Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Workload).decode


async def scale_of(cluster: Cluster, owner: OwnerReference, namespace: str, user: User) -> Scale | None:
    """None if the controller is gone; ScaleError if its kind has no scale."""
    built_in = _BUILT_IN.get((owner.group, owner.kind))
    if built_in is not None:
        found = _find(cluster, built_in, namespace, owner)
        return _built_in_scale(cluster, namespace, found) if found else None
    return await _scale_subresource(cluster, owner, namespace, user)


def _built_in_scale(cluster: Cluster, namespace: str, found: Stored) -> Scale:
    workload = _decode(found.raw)
    above = workload.metadata.controller
    if above is not None and above.kind == "Deployment":
        deployment = _find(cluster, _DEPLOYMENTS, namespace, above)
        if deployment is not None:
            workload = _decode(deployment.raw)
    return workload.metadata.uid, 1 if workload.spec.replicas is None else workload.spec.replicas


def _find(cluster: Cluster, resource: GroupResource, namespace: str, owner: OwnerReference) -> Stored | None:
    stored = cluster.store.get(resource, namespace, owner.name)
    return stored if stored is not None and stored.uid == owner.uid else None


async def _scale_subresource(cluster: Cluster, owner: OwnerReference, namespace: str, user: User) -> Scale | None:
    resource = cluster.registry.by_kind(owner.group, owner.kind)
    if resource is None or owner.version not in resource.versions:
        raise ScaleError(f'no matches for kind "{owner.kind}" in version "{owner.api_version}"')
    if resource.versions[owner.version].scale is None:
        raise ScaleError(f"{qualified(resource.plural, resource.group)} does not implement the scale subresource")
    scale = await _get_scale(cluster, resource, Key(namespace, owner.name), user)
    if scale is None or scale["metadata"].get("uid") != owner.uid:
        return None
    return owner.uid, int((scale.get("spec") or {}).get("replicas", 0))


async def _get_scale(cluster: Cluster, resource: Resource, key: Key, user: User) -> dict[str, dict[str, str]] | None:
    try:
        scale: dict[str, dict[str, str]] = await cluster.call("GET", object_url(resource, key, "scale"), user=user)
    except ApiError as error:
        if error.code == 404:
            return None
        raise ScaleError(error.message) from error
    return scale
