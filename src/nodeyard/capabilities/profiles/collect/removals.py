"""Bulk removal: service objects that many nodes lose because a role or a nodeSelector no longer requests them.

Each node is planned separately, but the removal is approved once for all. The affected nodes are counted only if one is
about to lose its object, and the count is shared. Nodes without a role are counted together, as if they had one role.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.planning.objects import has_our_fields, profile_of
from nodeyard.capabilities.profiles.planning.resolution import (
    Resolution,
    is_role_missing,
    requesting_key,
    resolve,
    selects,
    wants_object,
)
from nodeyard.capabilities.profiles.planning.services import removal_group, role_ref
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Profile, Removal, Service
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, annotation_of
from nodeyard.client.resources import view_kind
from nodeyard.kube.json import Object
from nodeyard.kube.object_key import identity_of
from nodeyard.plan.model import EVERY_GROUP, ObjectRef
from nodeyard.runtime.annotations import ref_of
from nodeyard.runtime.capability import View


class RemovalCount(NamedTuple):
    nodes: int
    """Number of nodes that lose the service object."""
    managed: int
    """Number of managed nodes."""


def find_removals(view: View, snapshot: NodeSnapshot, now: datetime) -> Mapping[str, Removal]:
    """Return removals by service. A removal that the node's own annotation causes is not a bulk removal."""
    found: dict[str, Removal] = {}
    if snapshot.node.is_deleting or is_role_missing(snapshot):
        return found
    for name, live in snapshot.objects.items():
        resolution = resolve(snapshot)[name]
        if _is_removed(snapshot, resolution, live):
            cause, root = _cause(view, snapshot, resolution.service, live)
            count = _count(view, snapshot, resolution, cause, now)
            found[name] = Removal(cause, count.nodes, count.managed, root)
    return found


def _is_removed(snapshot: NodeSnapshot, resolution: Resolution, live: Object) -> bool:
    """Check if the object is removed without an annotation of the node itself."""
    node, service = snapshot.node, resolution.service
    if annotation_of(node, requesting_key(service)) is not None or (snapshot.role is None and service.create_when):
        return False
    is_unasked = resolution.is_settled and not wants_object(snapshot, resolution)
    return is_unasked and has_our_fields(node.metadata, service, live)


def _count(view: View, snapshot: NodeSnapshot, resolution: Resolution, cause: str, now: datetime) -> RemovalCount:
    """Count the nodes of the same role, or without one, that have an object which nothing requests."""
    service, (index, value) = resolution.service, _sibling_index(snapshot)
    is_open = resolution.source is None and not service.create_when
    profiles = tuple(snapshot.profiles.get(service.name, {}).values()) if is_open else ()
    role = snapshot.role
    state = (
        cause,
        role.metadata.resource_version if role else "",
        view.counted(names.NODE_KIND, index, value),
        view.counted(names.NODE_KIND, watched.BY_ROLE_KEY, f"{value}/{requesting_key(service)}"),
        tuple((profile.uid, profile.generation) for profile in profiles),
        view.aggregate(watched.NODE_LABELS.name, snapshot.node.metadata.namespace) if profiles else 0,
    )

    def count() -> RemovalCount:
        affected = sum(1 for _ in _affected_nodes(view, service, index, value, profiles))
        return RemovalCount(affected, len(view.all(names.NODE_KIND)))

    return view.memo((service.name, index, value), state, now, count)


def _affected_nodes(
    view: View, service: Service, index: str, value: str, profiles: Collection[Profile]
) -> Iterator[OpenStackDataPlaneNode]:
    """Iterate over indexed nodes with an object that neither their annotation nor these profiles request."""
    kind, key = view_kind(service.object_api_version, service.object_kind), requesting_key(service)
    for node in view.indexed(names.NODE_KIND, index, value):
        if annotation_of(node, key) is None and not any(selects(profile, node) for profile in profiles):
            obj = view.get(kind, node.name, node.metadata.namespace)
            if obj is not None and has_our_fields(node.metadata, service, obj):
                yield node


def _sibling_index(snapshot: NodeSnapshot) -> tuple[str, str]:
    """Return index and value that find the nodes of the same role, or nodes without a role."""
    namespace, role = snapshot.node.metadata.namespace, snapshot.node.wanted.role
    return (names.BY_ROLE, f"{namespace}/{role}") if role else (watched.WITHOUT_ROLE, namespace)


# what an approval is still needed for
#
# Paused nodes need none: an approval that waited for them would cover nodes that join meanwhile.


def find_open_of_role(view: View, role: OpenStackDataPlaneRole, services: Iterable[Service]) -> Collection[str]:
    """Return the approval groups whose removals on the nodes of a role are not complete."""
    namespace, found = role.metadata.namespace, set[str]()
    for service in services:
        asked = annotation_of(role, requesting_key(service))
        if not service.makes_object or asked:
            continue
        if not _are_kinds_synced(view, service):
            return (EVERY_GROUP,)
        profiles = _selecting(view, service, namespace) if asked is None and not service.create_when else ()
        nodes = _affected_nodes(view, service, names.BY_ROLE, f"{namespace}/{role.metadata.name}", profiles)
        if not all(node.is_paused for node in nodes):
            found.add(removal_group(service.name, _revision(role)))
    return found


def find_open(view: View, service: Service, namespaces: Iterable[str], root: Any, now: datetime) -> Collection[str]:
    """Return the approval groups whose removals of a service on nodes without a role are not complete."""
    if not service.makes_object or service.create_when:
        return ()
    if not _are_kinds_synced(view, service):
        return (EVERY_GROUP,)

    kind = view_kind(service.object_api_version, service.object_kind)

    def find_objects() -> Iterator[Object]:
        for namespace in namespaces:
            profiles = _selecting(view, service, namespace)
            for node in _affected_nodes(view, service, watched.WITHOUT_ROLE, namespace, profiles):
                if not node.is_paused and (live := view.get(kind, node.name, namespace)) is not None:
                    yield live

    def find() -> Collection[str]:
        return {removal_group(service.name, _profile_revision(view, service, each)) for each in find_objects()}

    # Every removal queues the key of its profile, and each look visits all nodes.
    version = identity_of(type(root)).version(root)
    return view.memo(("open removals", service.name, identity_of(type(root)).uid(root)), version, now, find)


def _are_kinds_synced(view: View, service: Service) -> bool:
    return watched.is_synced(view, view_kind(service.object_api_version, service.object_kind)) and (
        watched.is_synced(view, view_kind(service.profile_api_version, service.profile_kind))
    )


def _selecting(view: View, service: Service, namespace: str) -> Sequence[Profile]:
    """Return the profiles of a namespace that select nodes by labels."""
    kind = view_kind(service.profile_api_version, service.profile_kind)
    return [watched.parse_profile(service, each) for each in view.indexed(kind, watched.SELECTING, namespace)]


def _revision(role: OpenStackDataPlaneRole) -> str:
    return f"{role.metadata.uid} {role.metadata.generation}"


# cause and approval


def _cause(view: View, snapshot: NodeSnapshot, service: Service, live: Object) -> tuple[str, ObjectRef | None]:
    """Return the revision of the cause, and the object on which the removal is approved."""
    if snapshot.role is not None:
        return _revision(snapshot.role), role_ref(snapshot.role)
    root = _root(view, service, live)
    return _profile_revision(view, service, live), None if root is None else _ref(service, root)


def _profile_revision(view: View, service: Service, live: Object) -> str:
    """Return the revision of the deployed profile; its name if it no longer exists."""
    profile = _profile(view, service, live)
    if profile is None:
        return f"{watched.namespace_of(live)}/{profile_of(live, service)}"
    seen = watched.parse_profile(service, profile)
    return f"{seen.uid} {seen.generation}"


def roots(view: View, node: OpenStackDataPlaneNode, services: Sequence[Service]) -> Iterator[Any]:
    """Iterate over the objects on which removals of a node without a role are approved."""
    for service in services:
        kind = view_kind(service.object_api_version, service.object_kind)
        if service.makes_object and not service.create_when and watched.is_synced(view, kind):
            live = view.get(kind, node.name, node.metadata.namespace)
            if live is not None and (root := _root(view, service, live)) is not None:
                yield root


def _root(view: View, service: Service, live: Object) -> Any | None:
    """Return the approval root: the profile of a built-in service, else the ProfileService."""
    return _profile(view, service, live) if service.is_built_in else view.get(names.SERVICE_KIND, service.name)


def _ref(service: Service, root: Any) -> ObjectRef:
    if service.is_built_in:
        return ref_of(root, service.profile_api_version, service.profile_kind)
    return ref_of(root, names.SERVICE_API_VERSION, names.SERVICE_KIND)


def _profile(view: View, service: Service, live: Object) -> Object | None:
    """Return the deployed profile, if it still exists."""
    kind = view_kind(service.profile_api_version, service.profile_kind)
    found: Object | None = view.get(kind, profile_of(live, service), watched.namespace_of(live))
    return found
