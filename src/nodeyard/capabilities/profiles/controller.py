"""Watches of profiles and the mapping of events to keys. Decisions are in `plan`.

Each node is planned separately. An event of a role maps to its nodes, one of a profile to the nodes that use it, and
one of a ProfileService to all nodes. The profile, role or ProfileService whose status counts the node is requeued too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from nodeyard.capabilities.profiles import definition, names, watched
from nodeyard.capabilities.profiles.collect import removals
from nodeyard.capabilities.profiles.collect.nodes import collect_node
from nodeyard.capabilities.profiles.collect.profiles import collect_profile, collect_role, collect_service
from nodeyard.capabilities.profiles.collect.rollouts import (
    aggregate,
    ignores_progress,
    reporting,
    reporting_count,
)
from nodeyard.capabilities.profiles.plan import plan
from nodeyard.capabilities.profiles.planning.profiles import plan_status
from nodeyard.capabilities.profiles.planning.registry import NEUTRON, NOVA, TELEMETRY
from nodeyard.capabilities.profiles.planning.rollout import annotation, is_available, reported_hash
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.report import report
from nodeyard.capabilities.profiles.report.metrics import ProfilesMetrics
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Service, StatusSnapshot
from nodeyard.capabilities.profiles.surface import SURFACE
from nodeyard.capabilities.profiles.types import (
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    ProfileService,
    annotation_of,
)
from nodeyard.capabilities.profiles.watched import load_registry
from nodeyard.capabilities.profiles.webhook import WEBHOOKS
from nodeyard.client.resources import Resource, of_kind, view_kind
from nodeyard.kube.json import Object, json_equal
from nodeyard.plan.model import ObjectRef, Planned
from nodeyard.runtime.annotations import approval_ids
from nodeyard.runtime.capability import (
    Admission,
    Capability,
    Dynamic,
    Explain,
    Key,
    Kind,
    Roots,
    Rule,
    View,
    Watch,
)

# event to keys


def _node_key(node: OpenStackDataPlaneNode) -> Key:
    return names.node_key(node.metadata.namespace, node.name)


def _node_keys(view: View, old: OpenStackDataPlaneNode | None, new: OpenStackDataPlaneNode | None) -> Iterable[Key]:
    """Map a node event to the node, and to its old and new profiles and role."""
    for counted in (watched.selected, watched.pinned):
        before, after = (set() if each is None else set(counted(each)) for each in (old, new))
        yield from sorted(before ^ after)
    if old is not None and new is not None and old.metadata.is_alike(new.metadata) and json_equal(old.spec, new.spec):
        return
    services = load_registry(view).services
    for node in filter(None, (old, new)):
        yield _node_key(node)
        namespace, role_name = node.metadata.namespace, node.wanted.role
        if role_name:
            yield names.role_key(namespace, role_name)
        role = view.get(names.ROLE_KIND, role_name, namespace) if role_name else None
        yield from _profile_keys_of(services, namespace, (node, role))


def _profile_keys_of(
    services: Iterable[Service],
    namespace: str,
    choosing: Iterable[OpenStackDataPlaneNode | OpenStackDataPlaneRole | None],
) -> Iterable[Key]:
    for each in choosing:
        for service in services:
            if value := annotation_of(each, service.annotation_key):
                yield names.profile_key(service.name, namespace, value)


def _role_keys(view: View, old: OpenStackDataPlaneRole | None, new: OpenStackDataPlaneRole | None) -> Iterable[Key]:
    role = new or old
    if role is None:
        return
    if old is not None and new is not None and old.metadata.is_alike(new.metadata) and json_equal(old.spec, new.spec):
        return
    namespace = role.metadata.namespace
    yield names.role_key(namespace, role.metadata.name)
    for node in view.indexed(names.NODE_KIND, names.BY_ROLE, f"{namespace}/{role.metadata.name}"):
        yield _node_key(node)
    yield from _profile_keys_of(load_registry(view).services, namespace, (old, new))


def _profile_keys(service_name: str) -> Callable[[View, Object | None, Object | None], Iterable[Key]]:
    def keys(view: View, old: Object | None, new: Object | None) -> Iterable[Key]:
        profile = new or old
        service = next((each for each in load_registry(view).services if each.name == service_name), None)
        if profile is None or service is None or (old and new and _same_profile(old, new)):
            return
        namespace, name = watched.namespace_of(profile), profile["metadata"]["name"]
        yield names.profile_key(service.name, namespace, name)
        is_selecting = any(list(watched.selecting(each)) for each in (old, new) if each is not None)
        if is_selecting or (old and new and not _same_approvals(old, new)):
            nodes = view.all(names.NODE_KIND)
            yield from (_node_key(node) for node in nodes if node.metadata.namespace == namespace)
            return
        for node in watched.list_users(view, service, namespace, name):
            yield names.node_key(namespace, node)

    return keys


def _same_profile(old: Object, new: Object) -> bool:
    """Check that an event changes only the status of a profile."""
    return _same_approvals(old, new) and all(
        old["metadata"].get(name) == new["metadata"].get(name) for name in ("uid", "generation", "deletionTimestamp")
    )


def _same_approvals(old: Any, new: Any) -> bool:
    """Compare approvals: an approved removal concerns nodes that the profile no longer selects."""
    return approval_ids(old) == approval_ids(new)


def _object_keys(service: Service) -> Callable[[View, Object | None, Object | None], Iterable[Key]]:
    """Map an object event to its node, the profiles that count it, and nodes that wait for the budget it frees."""

    def keys(view: View, old: Object | None, new: Object | None) -> Iterable[Key]:
        for obj in (old, new):
            if obj is None:
                continue
            namespace = watched.namespace_of(obj)
            yield names.node_key(namespace, obj["metadata"]["name"])
            if profile := watched.spec_string(obj, service.profile_field):
                yield names.profile_key(service.name, namespace, profile)
        if _is_first_report(view, service, old, new):
            yield from _keys_of_all(view, service)
        if old is not None and any(_becomes_available(old, new, ignores=each) for each in (False, True)):
            profile = watched.spec_string(old, service.profile_field)
            yield from view.waiting(names.budget(service.name, watched.namespace_of(old), profile))
        elif old is not None and new is not None and annotation(old, names.HASH) != annotation(new, names.HASH):
            yield from _next_ignoring(view, service, new)

    return keys


def _is_first_report(view: View, service: Service, old: Object | None, new: Object | None) -> bool:
    """Check if the first object of a service reported a hash, or the last one with a hash is gone."""
    before, after = (bool(obj is not None and reported_hash(obj)) for obj in (old, new))
    return before != after and reporting_count(view, service) == int(after)


def _keys_of_all(view: View, service: Service) -> Iterable[Key]:
    """Return keys for every object of a service: its rollouts start or stop to wait for reports."""
    for obj in view.all(view_kind(service.object_api_version, service.object_kind)):
        namespace = watched.namespace_of(obj)
        yield names.node_key(namespace, obj["metadata"]["name"])
        if profile := watched.spec_string(obj, service.profile_field):
            yield names.profile_key(service.name, namespace, profile)


def _next_ignoring(view: View, service: Service, written: Object) -> Iterable[Key]:
    """Return waiting keys if reports are ignored: the budget has room again as soon as the object is written."""
    namespace, name = watched.namespace_of(written), watched.spec_string(written, service.profile_field)
    kind = view_kind(service.profile_api_version, service.profile_kind)
    profile = view.get(kind, name, namespace) if watched.is_synced(view, kind) else None
    if ignores_progress(view, service, None if profile is None else watched.parse_profile(service, profile)):
        yield from view.waiting(names.budget(service.name, namespace, name))


def _becomes_available(old: Object, new: Object | None, *, ignores: bool) -> bool:
    return not is_available(old, ignores=ignores) and (new is None or is_available(new, ignores=ignores))


def _configuration_keys(old: Object | None, new: Object | None) -> Iterable[Key]:
    nodes = (value.split("/") for obj in (old, new) if obj is not None for value in watched.by_node(obj))
    return [names.node_key(namespace, node) for namespace, node in nodes]


def _service_keys(view: View, old: ProfileService | None, new: ProfileService | None) -> Iterable[Key]:
    """Map a ProfileService event to all nodes, and to all ProfileServices, which may conflict with it."""
    if old is not None and new is not None and json_equal(old.spec, new.spec) and _same_approvals(old, new):
        return
    yield from (_node_key(node) for node in view.all(names.NODE_KIND))
    yield from (names.service_key(each.metadata.name) for each in view.all(names.SERVICE_KIND))


# watches


def _profile_watch(service: Service, resource: Resource[Any], **more: Any) -> Watch:
    return Watch(
        resource, map_with_view=_profile_keys(service.name), indexes={watched.SELECTING: watched.selecting}, **more
    )


def _object_watch(service: Service, resource: Resource[Any], **more: Any) -> Watch:
    indexes = {watched.UNAVAILABLE: watched.unavailable(service.profile_field)}
    aggregates = (aggregate(service), reporting(service))
    return Watch(
        resource,
        map_with_view=_object_keys(service),
        indexes=indexes,
        aggregates=aggregates,
        identity=service.profile_field,
        **more,
    )


def _dynamic_watches(view: View) -> Iterable[Watch]:
    """Return watches of configuration in the namespaces of nodes, and of the kinds of ProfileServices."""
    for namespace in watched.namespaces(view):
        for each in watched.CONFIGURATIONS:
            yield Watch(each, _configuration_keys, label_selector=names.SERVICE_LABEL, namespace=namespace)
    for service in load_registry(view).services:
        if service.is_built_in:
            continue
        yield _profile_watch(service, of_kind(service.profile_api_version, service.profile_kind), optional=True)
        if service.makes_object:
            yield _object_watch(service, of_kind(service.object_api_version, service.object_kind), optional=True)


# dispatch by key


def _collect(view: View, key: Key, now: datetime) -> NodeSnapshot | StatusSnapshot | None:
    kind, _, rest = key.partition("/")
    match kind, rest.split("/"):
        case "node", [namespace, name]:
            return collect_node(view, namespace, name, now)
        case "profile", [service, namespace, name]:
            return collect_profile(view, service, namespace, name, now)
        case "role", [namespace, name]:
            return collect_role(view, namespace, name)
        case "service", [name]:
            return collect_service(view, name, now)
    return None


def _plan(snapshot: Any, now: datetime, asked: Sequence[ObjectRef]) -> Planned:
    if isinstance(snapshot, NodeSnapshot):
        return plan(snapshot, now, asked)
    return plan_status(snapshot, now, asked)


def _roots(view: View, key: Key) -> Sequence[Any]:
    if not names.is_node_key(key):
        return ()
    _, namespace, name = key.split("/")
    found = view.get(names.NODE_KIND, name, namespace)
    return () if found is None else (found,)


def _approval_roots(view: View, key: Key) -> Sequence[Any]:
    """Return the objects on which bulk removals of a node are approved: its role, else see `removals.roots`."""
    found: list[Any] = []
    for node in _roots(view, key):
        if not node.wanted.role:
            found += removals.roots(view, node, load_registry(view).services)
        elif (role := view.get(names.ROLE_KIND, node.wanted.role, node.metadata.namespace)) is not None:
            found.append(role)
    return found


def _held_roots(view: View, key: Key) -> Sequence[Any]:
    """Return the role, profile or ProfileService of a key that is not of a node."""
    kind, _, rest = key.partition("/")
    found: Any = None
    match kind, rest.split("/"):
        case "role", [namespace, name]:
            found = view.get(names.ROLE_KIND, name, namespace)
        case "profile", [service_name, namespace, name]:
            service = next((each for each in load_registry(view).services if each.name == service_name), None)
            if service is not None and service.is_built_in:
                found = view.get(view_kind(service.profile_api_version, service.profile_kind), name, namespace)
        case "service", [name]:
            found = view.get(names.SERVICE_KIND, name)
    return () if found is None else (found,)


def _managed_nodes(snapshot: Any) -> int:
    removals = snapshot.removals.values() if isinstance(snapshot, NodeSnapshot) else ()
    return max((removal.managed for removal in removals), default=0)


def _all_keys(view: View) -> Iterable[Key]:
    yield from (_node_key(node) for node in view.all(names.NODE_KIND))
    for role in view.all(names.ROLE_KIND):
        yield names.role_key(role.metadata.namespace, role.metadata.name)
    for service in load_registry(view).services:
        kind = view_kind(service.profile_api_version, service.profile_kind)
        if service.is_built_in:
            for profile in view.all(kind):
                metadata = profile["metadata"]
                yield names.profile_key(service.name, metadata["namespace"], metadata["name"])
    yield from (names.service_key(each.metadata.name) for each in view.all(names.SERVICE_KIND))


def _keys_of(view: View, ref: ObjectRef) -> Iterable[Key]:
    """Return the keys that explain an object; a service object is explained by its node."""
    own = {names.NODE_KIND: names.node_key, names.ROLE_KIND: names.role_key}.get(ref.kind)
    if own is not None and ref.api_version == names.DATAPLANE_API_VERSION:
        return (own(ref.namespace, ref.name),)
    if (ref.kind, ref.api_version) == (names.SERVICE_KIND, names.SERVICE_API_VERSION):
        return (names.service_key(ref.name),)
    found = []
    for service in load_registry(view).services:
        if (ref.kind, ref.api_version) == (service.object_kind, service.object_api_version):
            found.append(names.node_key(ref.namespace, ref.name))
        if (ref.kind, ref.api_version) == (service.profile_kind, service.profile_api_version):
            found.append(names.profile_key(service.name, ref.namespace, ref.name))
    return found


_READ: Final = ("get", "list", "watch")

PROFILES: Final = Capability(
    name=names.CAPABILITY,
    kinds=(
        Kind(watched.ROLES, definition.ROLE.render),
        Kind(watched.NODES, definition.NODE.render),
        Kind(watched.COMPUTE_PROFILES, definition.COMPUTE_PROFILE.render),
        Kind(watched.NETWORK_PROFILES, definition.NETWORK_PROFILE.render),
        Kind(watched.TELEMETRY_PROFILES, definition.TELEMETRY_PROFILE.render),
        Kind(watched.COMPUTES, definition.COMPUTE.render),
        Kind(watched.AGENTS, definition.AGENT.render),
        Kind(watched.SERVICES, definition.SERVICE.render),
    ),
    watches=(
        Watch(
            watched.NODES,
            map_with_view=_node_keys,
            indexes={
                names.BY_ANNOTATION: watched.by_annotation,
                names.BY_ROLE: watched.by_role,
                watched.BY_ROLE_KEY: watched.by_role_key,
                watched.WITHOUT_ROLE: watched.without_role,
                watched.SELECTED: watched.selected,
                watched.PINNED: watched.pinned,
            },
            aggregates=(watched.NODE_NAMESPACES, watched.NODE_LABELS),
        ),
        Watch(watched.ROLES, map_with_view=_role_keys, indexes={names.BY_ANNOTATION: watched.by_annotation}),
        Watch(watched.SERVICES, map_with_view=_service_keys),
        _profile_watch(NOVA, watched.COMPUTE_PROFILES),
        _profile_watch(NEUTRON, watched.NETWORK_PROFILES),
        _profile_watch(TELEMETRY, watched.TELEMETRY_PROFILES),
        _object_watch(NOVA, watched.COMPUTES),
        _object_watch(NEUTRON, watched.AGENTS),
    ),
    all_keys=_all_keys,
    collect=_collect,
    plan=_plan,
    report=report,
    rbac=(
        # Patched without their status: approvals that have ended are removed.
        Rule(names.DATAPLANE_GROUP, (names.NODE_PLURAL, names.ROLE_PLURAL), (*_READ, "patch")),
        Rule(names.DATAPLANE_GROUP, (f"{names.NODE_PLURAL}/status", f"{names.ROLE_PLURAL}/status"), ("patch",)),
        # OwnerReferencesPermissionEnforcement (OpenShift) requires this for blockOwnerDeletion.
        Rule(names.DATAPLANE_GROUP, (f"{names.NODE_PLURAL}/finalizers",), ("update",)),
        Rule(names.NOVA_GROUP, (names.COMPUTE_PROFILE_PLURAL,), (*_READ, "patch")),
        Rule(names.NOVA_GROUP, (f"{names.COMPUTE_PROFILE_PLURAL}/status",), ("patch",)),
        Rule(names.NOVA_GROUP, (names.COMPUTE_PLURAL,), (*_READ, "create", "patch", "delete")),
        Rule(names.NEUTRON_GROUP, (names.NETWORK_PROFILE_PLURAL,), (*_READ, "patch")),
        Rule(names.NEUTRON_GROUP, (f"{names.NETWORK_PROFILE_PLURAL}/status",), ("patch",)),
        Rule(names.NEUTRON_GROUP, (names.AGENT_PLURAL,), (*_READ, "create", "patch", "delete")),
        Rule(names.TELEMETRY_GROUP, (names.TELEMETRY_PROFILE_PLURAL,), (*_READ, "patch")),
        Rule(names.TELEMETRY_GROUP, (f"{names.TELEMETRY_PROFILE_PLURAL}/status",), ("patch",)),
        Rule(names.SERVICE_GROUP, (names.SERVICE_PLURAL,), (*_READ, "patch")),
        Rule(names.SERVICE_GROUP, (f"{names.SERVICE_PLURAL}/status",), ("patch",)),
        Rule("", ("configmaps",), (*_READ, "create", "patch", "delete"), grant=names.CONFIGURATION_GRANT),
        Rule("", ("secrets",), (*_READ, "create", "patch", "delete"), grant=names.SECRETS_GRANT),
    ),
    managed_nodes=_managed_nodes,
    metrics=ProfilesMetrics,
    # The plan of a node is small: one node, its role and their profiles.
    plans_inline=names.is_node_key,
    roots=Roots(_roots, approval=_approval_roots, held=_held_roots),
    explain=Explain(_keys_of, healthy=frozenset({Reason.RECONCILED, Reason.AVAILABLE})),
    admission=Admission(WEBHOOKS),
    dynamic=Dynamic(_dynamic_watches),
    surface=SURFACE,
)
