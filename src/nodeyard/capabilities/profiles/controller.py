"""What profiles watches, and which events make it plan again. No decisions here.

Each node is planned by itself. A change of a role concerns its nodes, one of a profile those that choose it, one of a
declared service all of them; beside the nodes, the profile, role or service whose status counts them is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.profiles import definition, losses, memberships, names, overviews, watched
from nodeyard.capabilities.profiles.budgets import group_of
from nodeyard.capabilities.profiles.collecting import collect_node, known
from nodeyard.capabilities.profiles.events import events
from nodeyard.capabilities.profiles.grants import Grants
from nodeyard.capabilities.profiles.memberships import Membership
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.metrics import ProfilesMetrics
from nodeyard.capabilities.profiles.plan import plan
from nodeyard.capabilities.profiles.planning.availability import is_available
from nodeyard.capabilities.profiles.services import NEUTRON, NOVA, TELEMETRY
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Service
from nodeyard.capabilities.profiles.standings import aggregate
from nodeyard.capabilities.profiles.status import status
from nodeyard.capabilities.profiles.types import (
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    ProfileService,
    annotation_of,
)
from nodeyard.capabilities.profiles.users import users
from nodeyard.capabilities.profiles.webhook import WEBHOOKS
from nodeyard.client.resources import Resource, of_kind
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef, Plan, Planned
from nodeyard.runtime.capability import Capability, Event, Key, Kind, Rule, StatusWrite, View, Watch
from nodeyard.runtime.roots import approved_on

NODE: Final = "node"
PROFILE: Final = "profile"
ROLE: Final = "role"
SERVICE: Final = "service"
_GRANTS: Final = Grants()


# which keys


def _node_key(node: OpenStackDataPlaneNode) -> Key:
    return names.node_key(node.metadata.namespace, node.name)


def _node_keys(view: View, old: OpenStackDataPlaneNode | None, new: OpenStackDataPlaneNode | None) -> Iterable[Key]:
    """The node, what counts it: its profiles and its role, before and after, and who may have its turn instead."""
    selected = [set() if each is None else set(watched.selected(each)) for each in (old, new)]
    yield from sorted(selected[0] ^ selected[1])
    if old is not None and new is not None and old.metadata.is_alike(new.metadata) and old.spec == new.spec:
        return
    services = known(view).services
    for node in filter(None, (old, new)):
        yield _node_key(node)
        yield from (_GRANTS.release if new is None else _GRANTS.behind)(_node_key(node))
        namespace, role_name = node.metadata.namespace, node.wanted.role
        if role_name:
            yield f"{ROLE}/{namespace}/{role_name}"
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
    if old is not None and new is not None and old.metadata.is_alike(new.metadata) and old.spec == new.spec:
        return
    namespace = role.metadata.namespace
    yield f"{ROLE}/{namespace}/{role.metadata.name}"
    for node in view.indexed(names.NODE_KIND, names.BY_ROLE, f"{namespace}/{role.metadata.name}"):
        yield _node_key(node)
        yield from _GRANTS.behind(_node_key(node))
    yield from _profile_keys_of(known(view).services, namespace, (old, new))


def _profile_keys(service_name: str) -> Callable[[View, Object | None, Object | None], Iterable[Key]]:
    def keys(view: View, old: Object | None, new: Object | None) -> Iterable[Key]:
        profile = new or old
        service = next((each for each in known(view).services if each.name == service_name), None)
        if profile is None or service is None or (old and new and _same_profile(old, new)):
            return
        namespace, name = watched.namespace_of(profile), profile["metadata"]["name"]
        yield names.profile_key(service.name, namespace, name)
        is_selecting = any(list(watched.selecting(each)) for each in (old, new) if each is not None)
        if is_selecting or (old and new and not _same_approvals(old, new)):
            nodes = view.all(names.NODE_KIND)
            yield from (_node_key(node) for node in nodes if node.metadata.namespace == namespace)
            return
        for node in users(view, service, namespace, name):
            yield names.node_key(namespace, node)

    return keys


def _same_profile(old: Object, new: Object) -> bool:
    """A status says nothing new about the profile itself."""
    return _same_approvals(old, new) and all(
        old["metadata"].get(name) == new["metadata"].get(name) for name in ("uid", "generation", "deletionTimestamp")
    )


def _same_approvals(old: Any, new: Any) -> bool:
    """Of what a selector takes away, from whichever nodes: it does not select them any more."""
    return approved_on(old) == approved_on(new)


def _object_keys(service: Service) -> Callable[[Object | None, Object | None], Iterable[Key]]:
    """The node an object is for, the profiles that count it, and who has waited for it to run."""

    def keys(old: Object | None, new: Object | None) -> Iterable[Key]:
        for obj in (old, new):
            if obj is None:
                continue
            namespace = watched.namespace_of(obj)
            yield names.node_key(namespace, obj["metadata"]["name"])
            if profile := watched.named(obj, service.profile_field):
                yield names.profile_key(service.name, namespace, profile)
        if old is not None and new is None:
            yield from _GRANTS.release(names.node_key(watched.namespace_of(old), old["metadata"]["name"]))
        if old is not None and not is_available(old) and (new is None or is_available(new)):
            group = f"{watched.namespace_of(old)}/{watched.named(old, service.profile_field)}"
            yield from _GRANTS.next(group_of(service, group))

    return keys


def _configuration_keys(old: Object | None, new: Object | None) -> Iterable[Key]:
    return [f"{NODE}/{value}" for obj in (old, new) if obj is not None for value in watched.by_node(obj)]


def _service_keys(view: View, old: ProfileService | None, new: ProfileService | None) -> Iterable[Key]:
    """A declaration may concern every node, and the standing of every other declaration."""
    if old is not None and new is not None and old.spec == new.spec and _same_approvals(old, new):
        return
    yield from (_node_key(node) for node in view.all(names.NODE_KIND))
    yield from (f"{SERVICE}/{each.metadata.name}" for each in view.all(names.SERVICE_KIND))


# what is watched


def _profile_watch(service: Service, resource: Resource[Any], **more: Any) -> Watch:
    return Watch(resource, keys_in=_profile_keys(service.name), indexes={watched.SELECTING: watched.selecting}, **more)


def _object_watch(service: Service, resource: Resource[Any], **more: Any) -> Watch:
    indexes = {watched.UNAVAILABLE: watched.unavailable(service.profile_field)}
    return Watch(resource, _object_keys(service), indexes=indexes, aggregates=(aggregate(service),), **more)


def _declared(view: View) -> Iterable[Watch]:
    """The kinds of services that people have declared."""
    for service in known(view).services:
        if service.is_built_in:
            continue
        yield _profile_watch(service, of_kind(service.profile_api_version, service.profile_kind), optional=True)
        if service.makes_object:
            yield _object_watch(service, of_kind(service.object_api_version, service.object_kind), optional=True)


# by key


def _collect(view: View, key: Key, now: datetime) -> NodeSnapshot | Membership | None:
    kind, _, rest = key.partition("/")
    match kind, rest.split("/"):
        case "node", [namespace, name]:
            return collect_node(view, namespace, name, now, _GRANTS)
        case "profile", [service, namespace, name]:
            return memberships.collect_profile(view, service, namespace, name, now)
        case "role", [namespace, name]:
            return memberships.collect_role(view, namespace, name)
        case "service", [name]:
            return memberships.collect_service(view, name)
    return None


def _plan(snapshot: Any, now: datetime, explain: Sequence[ObjectRef]) -> Planned:
    if isinstance(snapshot, NodeSnapshot):
        return plan(snapshot, now, explain)
    return overviews.plan_nothing(snapshot, now, explain)


def _status(snapshot: Any, planned: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    if isinstance(snapshot, NodeSnapshot):
        return status(snapshot, planned, outcome, now)
    return memberships.status_membership(snapshot, now)


def _events(snapshot: Any, planned: Plan, outcome: Outcome) -> Sequence[Event]:
    return events(snapshot, planned, outcome) if isinstance(snapshot, NodeSnapshot) else ()


def _roots(view: View, key: Key) -> Sequence[Any]:
    kind, _, rest = key.partition("/")
    if kind != NODE:
        return ()
    namespace, _, name = rest.partition("/")
    found = view.get(names.NODE_KIND, name, namespace)
    return () if found is None else (found,)


def _wider(view: View, key: Key) -> Sequence[Any]:
    """What a role takes away from its nodes is approved on the role; what a selector does, where that is said."""
    found: list[Any] = []
    for node in _roots(view, key):
        if not node.wanted.role:
            found += losses.roots(view, node, known(view).services)
        elif (role := view.get(names.ROLE_KIND, node.wanted.role, node.metadata.namespace)) is not None:
            found.append(role)
    return found


def _managed(snapshot: Any) -> int:
    lost = snapshot.losses.values() if isinstance(snapshot, NodeSnapshot) else ()
    return max((loss.managed for loss in lost), default=0)


def _all_keys(view: View) -> Iterable[Key]:
    yield from (_node_key(node) for node in view.all(names.NODE_KIND))
    for role in view.all(names.ROLE_KIND):
        yield f"{ROLE}/{role.metadata.namespace}/{role.metadata.name}"
    for service in known(view).services:
        kind = watched.viewed(service.profile_api_version, service.profile_kind)
        if service.is_built_in:
            for profile in view.all(kind):
                metadata = profile["metadata"]
                yield names.profile_key(service.name, metadata["namespace"], metadata["name"])
    yield from (f"{SERVICE}/{each.metadata.name}" for each in view.all(names.SERVICE_KIND))


def _keys_of(view: View, ref: ObjectRef) -> Iterable[Key]:
    """Nodes explain themselves and what is made for them; roles, profiles and declared services who has them."""
    own = {names.NODE_KIND: NODE, names.ROLE_KIND: ROLE}.get(ref.kind)
    if own is not None and ref.api_version == names.DATAPLANE_API_VERSION:
        return (f"{own}/{ref.namespace}/{ref.name}",)
    if (ref.kind, ref.api_version) == (names.SERVICE_KIND, names.SERVICE_API_VERSION):
        return (f"{SERVICE}/{ref.name}",)
    found = []
    for service in known(view).services:
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
            keys_in=_node_keys,
            indexes={
                names.BY_ANNOTATION: watched.by_annotation,
                names.BY_ROLE: watched.by_role,
                watched.BY_ROLE_KEY: watched.by_role_key,
                watched.WITHOUT_ROLE: watched.without_role,
                watched.SELECTED: watched.selected,
            },
        ),
        Watch(watched.ROLES, keys_in=_role_keys, indexes={names.BY_ANNOTATION: watched.by_annotation}),
        Watch(watched.SERVICES, keys_in=_service_keys),
        _profile_watch(NOVA, watched.COMPUTE_PROFILES),
        _profile_watch(NEUTRON, watched.NETWORK_PROFILES),
        _profile_watch(TELEMETRY, watched.TELEMETRY_PROFILES),
        _object_watch(NOVA, watched.COMPUTES),
        _object_watch(NEUTRON, watched.AGENTS),
        *(Watch(each, _configuration_keys, label_selector=names.SERVICE_LABEL) for each in watched.CONFIGURATIONS),
    ),
    declared=_declared,
    # One node, its role and what they name.
    is_small=names.is_node_key,
    collect=_collect,
    plan=_plan,
    status=_status,
    events=_events,
    messages=text,
    rbac=(
        Rule(names.DATAPLANE_GROUP, (names.NODE_PLURAL, names.ROLE_PLURAL), _READ),
        Rule(names.DATAPLANE_GROUP, (f"{names.NODE_PLURAL}/status", f"{names.ROLE_PLURAL}/status"), ("patch",)),
        # Where OwnerReferencesPermissionEnforcement is on, as on OpenShift: what is made for a node holds it back.
        Rule(names.DATAPLANE_GROUP, (f"{names.NODE_PLURAL}/finalizers",), ("update",)),
        Rule(names.NOVA_GROUP, (names.COMPUTE_PROFILE_PLURAL,), _READ),
        Rule(names.NOVA_GROUP, (f"{names.COMPUTE_PROFILE_PLURAL}/status",), ("patch",)),
        Rule(names.NOVA_GROUP, (names.COMPUTE_PLURAL,), (*_READ, "create", "patch", "delete")),
        Rule(names.NEUTRON_GROUP, (names.NETWORK_PROFILE_PLURAL,), _READ),
        Rule(names.NEUTRON_GROUP, (f"{names.NETWORK_PROFILE_PLURAL}/status",), ("patch",)),
        Rule(names.NEUTRON_GROUP, (names.AGENT_PLURAL,), (*_READ, "create", "patch", "delete")),
        Rule(names.TELEMETRY_GROUP, (names.TELEMETRY_PROFILE_PLURAL,), _READ),
        Rule(names.TELEMETRY_GROUP, (f"{names.TELEMETRY_PROFILE_PLURAL}/status",), ("patch",)),
        Rule(names.SERVICE_GROUP, (names.SERVICE_PLURAL,), _READ),
        Rule(names.SERVICE_GROUP, (f"{names.SERVICE_PLURAL}/status",), ("patch",)),
        Rule("", ("configmaps", "secrets"), (*_READ, "create", "patch", "delete")),
    ),
    roots=_roots,
    wider=_wider,
    managed=_managed,
    keys_of=_keys_of,
    all_keys=_all_keys,
    metrics=ProfilesMetrics,
    webhooks=WEBHOOKS,
    stages=("services",),
    example="05-profiles",
)
