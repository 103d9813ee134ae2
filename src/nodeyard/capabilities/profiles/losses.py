"""What nodes lose when a role, or the selector of a profile, no longer asks for a service: all of them at once, though
each is planned by itself.

They are counted where one is about to go, and only there. A role takes from its nodes; a selector takes from those that
have no role, which stand together as if they had one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.planning.objects import is_told, profile_of
from nodeyard.capabilities.profiles.planning.resolution import (
    Resolution,
    asking_key,
    is_role_missing,
    resolve,
    selects,
    wants_object,
)
from nodeyard.capabilities.profiles.planning.services import role_ref
from nodeyard.capabilities.profiles.snapshot import Loss, NodeSnapshot, Service
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, annotation_of
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View
from nodeyard.runtime.roots import ref_of


def losses(view: View, snapshot: NodeSnapshot) -> Mapping[str, Loss]:
    """By service. A node that gives something up by itself is not among them."""
    found: dict[str, Loss] = {}
    if snapshot.node.is_deleting or is_role_missing(snapshot):
        return found
    for name, live in snapshot.objects.items():
        resolution = resolve(snapshot)[name]
        if _is_lost(snapshot, resolution, live):
            taker, root = _taker(view, snapshot, resolution.service, live)
            found[name] = Loss(taker, _count(view, snapshot, resolution), len(view.all(names.NODE_KIND)), root)
    return found


def _is_lost(snapshot: NodeSnapshot, resolution: Resolution, live: Object) -> bool:
    """Whether the object goes, and that was left to others."""
    node, service = snapshot.node, resolution.service
    if annotation_of(node, asking_key(service)) is not None or (snapshot.role is None and service.create_when):
        return False
    is_unasked = resolution.is_settled and not wants_object(snapshot, resolution)
    return is_unasked and is_told(node.metadata, service, live)


def _count(view: View, snapshot: NodeSnapshot, resolution: Resolution) -> int:
    """The nodes that leave it to the same others whether they have the service's object, and have it, unasked."""
    service = resolution.service
    kind, key = watched.viewed(service.object_api_version, service.object_kind), asking_key(service)
    is_open = resolution.source is None and not service.create_when
    profiles = snapshot.profiles.get(service.name, {}).values() if is_open else ()
    count = 0
    for node in _alike(view, snapshot):
        if annotation_of(node, key) is None and not any(selects(profile, node) for profile in profiles):
            obj = view.get(kind, node.name, node.metadata.namespace)
            count += obj is not None and is_told(node.metadata, service, obj)
    return count


def _alike(view: View, snapshot: NodeSnapshot) -> Sequence[OpenStackDataPlaneNode]:
    """The nodes of the same role, or those that have none either."""
    namespace, role = snapshot.node.metadata.namespace, snapshot.node.wanted.role
    if role:
        return view.indexed(names.NODE_KIND, names.BY_ROLE, f"{namespace}/{role}")
    return view.indexed(names.NODE_KIND, watched.WITHOUT_ROLE, namespace)


# who takes it away


def _taker(view: View, snapshot: NodeSnapshot, service: Service, live: Object) -> tuple[str, ObjectRef | None]:
    """What takes it away, as it is now, and where that is approved."""
    if snapshot.role is not None:
        return snapshot.role.metadata.uid, role_ref(snapshot.role)
    profile, root = _profile(view, service, live), _root(view, service, live)
    if profile is None:
        taker = f"{watched.namespace_of(live)}/{profile_of(live, service)}"
    else:
        seen = watched.seen(service, profile)
        taker = f"{seen.uid} {seen.generation}"
    return taker, None if root is None else _ref(service, root)


def roots(view: View, node: OpenStackDataPlaneNode, services: Sequence[Service]) -> Iterator[Any]:
    """Where it is approved that a node without a role loses what a selector had chosen for it."""
    for service in services:
        kind = watched.viewed(service.object_api_version, service.object_kind)
        if service.makes_object and not service.create_when and watched.is_seen(view, kind):
            live = view.get(kind, node.name, node.metadata.namespace)
            if live is not None and (root := _root(view, service, live)) is not None:
                yield root


def _root(view: View, service: Service, live: Object) -> Any | None:
    """The profile; or the service that somebody declared, as they did the kind of its profiles."""
    return _profile(view, service, live) if service.is_built_in else view.get(names.SERVICE_KIND, service.name)


def _ref(service: Service, root: Any) -> ObjectRef:
    if service.is_built_in:
        return ref_of(root, service.profile_api_version, service.profile_kind)
    return ref_of(root, names.SERVICE_API_VERSION, names.SERVICE_KIND)


def _profile(view: View, service: Service, live: Object) -> Object | None:
    """The profile that the object has, where that is there still."""
    kind = watched.viewed(service.profile_api_version, service.profile_kind)
    found: Object | None = view.get(kind, profile_of(live, service), watched.namespace_of(live))
    return found
