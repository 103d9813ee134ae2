"""Bulk removal: service objects that many nodes lose because a role or a nodeSelector no longer requests them.

Each node is planned separately, but the removal is approved once for all. The affected nodes are counted only if one is
about to lose its object, and the count is shared. Nodes without a role are counted together, as if they had one role.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from nodeyard.kube.json import Object
from nodeyard.plan.identity import group_id
from nodeyard.plan.model import ObjectRef
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
    )

    def count() -> RemovalCount:
        affected = sum(1 for _ in _affected_nodes(view, service, index, value, profiles))
        return RemovalCount(affected, len(view.all(names.NODE_KIND)))

    return view.memo((service.name, index, value), state, now, count)


def _affected_nodes(
    view: View, service: Service, index: str, value: str, profiles: Collection[Profile]
) -> Iterator[OpenStackDataPlaneNode]:
    """Iterate over indexed nodes with an object that neither their annotation nor these profiles request."""
    kind, key = watched.kind_name(service.object_api_version, service.object_kind), requesting_key(service)
    for node in view.indexed(names.NODE_KIND, index, value):
        if annotation_of(node, key) is None and not any(selects(profile, node) for profile in profiles):
            obj = view.get(kind, node.name, node.metadata.namespace)
            if obj is not None and has_our_fields(node.metadata, service, obj):
                yield node


def _sibling_index(snapshot: NodeSnapshot) -> tuple[str, str]:
    """Return index and value that find the nodes of the same role, or nodes without a role."""
    namespace, role = snapshot.node.metadata.namespace, snapshot.node.wanted.role
    return (names.BY_ROLE, f"{namespace}/{role}") if role else (watched.WITHOUT_ROLE, namespace)


def running_removals(view: View, role: OpenStackDataPlaneRole, services: Sequence[Service]) -> frozenset[str]:
    """Return the ids of approval groups whose removals on the nodes of a role are not complete."""
    removals = {each.name for each in services if each.makes_object and _is_removing(view, role, each)}
    return frozenset(group_id(names.CAPABILITY, removal_group(name, _revision(role))) for name in removals)


def _is_removing(view: View, role: OpenStackDataPlaneRole, service: Service) -> bool:
    """Check if a node of the role is about to lose the service object, or if that is unknown."""
    kinds = [watched.kind_name(service.object_api_version, service.object_kind)]
    kinds.append(watched.kind_name(service.profile_api_version, service.profile_kind))
    if not all(watched.is_synced(view, kind) for kind in kinds):
        return True
    namespace, asked = role.metadata.namespace, annotation_of(role, requesting_key(service))
    if asked:
        return False
    is_open = asked is None and not service.create_when
    selecting = view.indexed(kinds[1], watched.SELECTING, namespace) if is_open else ()
    profiles = [watched.parse_profile(service, each) for each in selecting]
    return any(
        True for _ in _affected_nodes(view, service, names.BY_ROLE, f"{namespace}/{role.metadata.name}", profiles)
    )


def _revision(role: OpenStackDataPlaneRole) -> str:
    return f"{role.metadata.uid} {role.metadata.generation}"


# cause and approval


def _cause(view: View, snapshot: NodeSnapshot, service: Service, live: Object) -> tuple[str, ObjectRef | None]:
    """Return the revision of the cause, and the object on which the removal is approved."""
    if snapshot.role is not None:
        return _revision(snapshot.role), role_ref(snapshot.role)
    profile, root = _profile(view, service, live), _root(view, service, live)
    if profile is None:
        cause = f"{watched.namespace_of(live)}/{profile_of(live, service)}"
    else:
        seen = watched.parse_profile(service, profile)
        cause = f"{seen.uid} {seen.generation}"
    return cause, None if root is None else _ref(service, root)


def roots(view: View, node: OpenStackDataPlaneNode, services: Sequence[Service]) -> Iterator[Any]:
    """Iterate over the objects on which removals of a node without a role are approved."""
    for service in services:
        kind = watched.kind_name(service.object_api_version, service.object_kind)
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
    kind = watched.kind_name(service.profile_api_version, service.profile_kind)
    found: Object | None = view.get(kind, profile_of(live, service), watched.namespace_of(live))
    return found
