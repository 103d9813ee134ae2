"""Watched kinds, their indexes and how they are read.

Profiles and service objects are untyped, so kinds of declared services are handled like built-in ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from typing import Any, Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.registry import Registry, build_registry
from nodeyard.capabilities.profiles.planning.rollout import as_mapping, is_available
from nodeyard.capabilities.profiles.snapshot import Profile, Service
from nodeyard.capabilities.profiles.types import (
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    ProfileService,
    Source,
    State,
)
from nodeyard.client.resources import CONFIG_MAPS, SECRETS, Resource, untyped
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import Aggregate, View
from nodeyard.watch.shared_informer import in_namespace

NODES: Final = Resource(
    names.DATAPLANE_GROUP, names.VERSION, names.NODE_PLURAL, names.NODE_KIND, True, OpenStackDataPlaneNode
)
ROLES: Final = Resource(
    names.DATAPLANE_GROUP, names.VERSION, names.ROLE_PLURAL, names.ROLE_KIND, True, OpenStackDataPlaneRole
)
SERVICES: Final = Resource(
    names.SERVICE_GROUP, names.SERVICE_VERSION, names.SERVICE_PLURAL, names.SERVICE_KIND, False, ProfileService
)
COMPUTE_PROFILES: Final = untyped(
    names.NOVA_GROUP, names.VERSION, names.COMPUTE_PROFILE_PLURAL, names.COMPUTE_PROFILE_KIND
)
NETWORK_PROFILES: Final = untyped(
    names.NEUTRON_GROUP, names.VERSION, names.NETWORK_PROFILE_PLURAL, names.NETWORK_PROFILE_KIND
)
TELEMETRY_PROFILES: Final = untyped(
    names.TELEMETRY_GROUP, names.VERSION, names.TELEMETRY_PROFILE_PLURAL, names.TELEMETRY_PROFILE_KIND
)
COMPUTES: Final = untyped(names.NOVA_GROUP, names.VERSION, names.COMPUTE_PLURAL, names.COMPUTE_KIND)
AGENTS: Final = untyped(names.NEUTRON_GROUP, names.VERSION, names.AGENT_PLURAL, names.AGENT_KIND)
PROFILES: Final = (COMPUTE_PROFILES, NETWORK_PROFILES, TELEMETRY_PROFILES)
CONFIGURATIONS: Final = (CONFIG_MAPS, SECRETS)
"""Watched only in the namespaces of nodes, with permissions only there."""

SELECTING: Final = "selecting"
"""Index of profiles with a nodeSelector, by namespace."""
UNAVAILABLE: Final = "unavailable"
"""Index of unavailable service objects, by `namespace/profile`."""
SELECTED: Final = "selected"
"""Index of nodes by the profiles that select them according to their status, by profile key."""
NAMESPACES: Final = "namespaces of nodes"
PINNED: Final = "pinned"
"""Index of nodes by the profiles that are pinned to an earlier generation in their status, by profile key."""
WITHOUT_ROLE: Final = "without-role"
"""Index of nodes without a role, by namespace."""
BY_ROLE_KEY: Final = "role-key"
"""Index of nodes by role and annotation key, as `namespace/role/key`: nodes that override their role."""
_BUILT_IN_ONLY: Final = Registry()


def is_synced(view: View, kind: str) -> bool:
    """Check if the cache of a kind is synced; kinds of declared services may not be watched yet."""
    try:
        return view.is_synced(kind)
    except KeyError:
        return False


def load_registry(view: View) -> Registry:
    """Return the built-in services and those that ProfileServices declare now."""
    declared = view.all(names.SERVICE_KIND)
    return build_registry(declared) if declared else _BUILT_IN_ONLY


def configuration_kind(resource: Resource[Any], namespace: str) -> str:
    """Return the name in a view of ConfigMaps or Secrets of one namespace."""
    return in_namespace(resource.kind, namespace)


def namespaces(view: View) -> Iterable[str]:
    """Return the namespaces that have nodes, from an aggregate."""
    found: Mapping[str, int] = view.aggregate(NAMESPACES, "")
    return sorted(found)


def _counted(by: int) -> Any:
    def changed(counts: Mapping[str, int], node: OpenStackDataPlaneNode) -> Mapping[str, int]:
        namespace = node.metadata.namespace
        after = {**counts, namespace: counts.get(namespace, 0) + by}
        return {name: count for name, count in after.items() if count}

    return changed


NODE_NAMESPACES: Final = Aggregate(
    name=NAMESPACES,
    kind=names.NODE_KIND,
    empty=dict,
    group=lambda _node: ("",),
    add=_counted(1),
    remove=_counted(-1),
)


def _labels(node: OpenStackDataPlaneNode) -> int:
    return hash((node.name, frozenset(node.metadata.labels.items())))


NODE_LABELS: Final = Aggregate(
    name="labels of nodes",
    kind=names.NODE_KIND,
    empty=int,
    group=lambda node: (node.metadata.namespace,),
    add=lambda total, node: total + _labels(node),
    remove=lambda total, node: total - _labels(node),
)
"""Another number whenever a label of a node changes, by namespace: labels decide which nodes a nodeSelector selects."""


# index functions


def by_annotation(obj: Any) -> Iterable[str]:
    namespace = obj.metadata.namespace
    return [f"{namespace}/{key}={value}" for key, value in obj.metadata.annotations.items()]


def by_role(node: OpenStackDataPlaneNode) -> Iterable[str]:
    return (f"{node.metadata.namespace}/{node.wanted.role}",) if node.wanted.role else ()


def without_role(node: OpenStackDataPlaneNode) -> Iterable[str]:
    return () if node.wanted.role else (node.metadata.namespace,)


def by_role_key(node: OpenStackDataPlaneNode) -> Iterable[str]:
    role = node.wanted.role
    return [f"{node.metadata.namespace}/{role}/{key}" for key in node.metadata.annotations] if role else ()


def selected(node: OpenStackDataPlaneNode) -> Iterable[str]:
    namespace = node.metadata.namespace
    return [
        names.profile_key(service, namespace, choice.value)
        for service, choice in node.status.profiles.items()
        if choice.source == Source.SELECTOR and choice.state == State.RESOLVED
    ]


def pinned(node: OpenStackDataPlaneNode) -> Iterable[str]:
    namespace = node.metadata.namespace
    return [
        names.profile_key(service, namespace, choice.value)
        for service, choice in node.status.profiles.items()
        if choice.pinned
    ]


def selecting(profile: Object) -> Iterable[str]:
    has_selector = isinstance(as_mapping(profile.get("spec")).get("nodeSelector"), Mapping)
    return (namespace_of(profile),) if has_selector else ()


def namespace_of(obj: Object) -> str:
    """Return the namespace of an object; empty for a declared kind that is cluster-scoped, see `collect`."""
    return str(obj["metadata"].get("namespace", ""))


def by_node(obj: Object) -> Iterable[str]:
    node = (obj["metadata"].get("labels") or {}).get(names.NODE_LABEL)
    return (f"{obj['metadata']['namespace']}/{node}",) if node else ()


def by_profile(field: str) -> Any:
    """Index service objects by the profile that a field of their spec names."""
    return lambda obj: (f"{namespace_of(obj)}/{spec_string(obj, field)}",)


def unavailable(field: str) -> Any:
    """Index service objects that are unavailable with or without reports ignored."""

    def index(obj: Object) -> Iterable[str]:
        if is_available(obj) and is_available(obj, ignores=True):
            return ()
        return (f"{namespace_of(obj)}/{spec_string(obj, field)}",)

    return index


def spec_string(obj: Object, field: str) -> str:
    """Return a string field of an object's spec; empty if it is missing or not a string."""
    value = as_mapping(obj.get("spec")).get(field)
    return value if isinstance(value, str) else ""


def parse_profile(service: Service, profile: Object) -> Profile:
    """Parse a profile of any service; malformed fields are treated as missing."""
    metadata, spec = profile["metadata"], as_mapping(profile.get("spec"))
    selector, priority, deadline = (spec.get(each) for each in ("nodeSelector", "priority", "progressDeadlineSeconds"))
    return Profile(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation") or 0,
        config=spec_string(profile, service.config_field) if service.config_field else "",
        node_selector=selector if isinstance(selector, Mapping) else None,
        priority=priority if isinstance(priority, int) else 0,
        max_unavailable=spec.get("maxUnavailable"),
        deadline_seconds=deadline if isinstance(deadline, int) and deadline > 0 else None,
        progress=spec_string(profile, "progress"),
        render_as=spec.get("renderAs") or "",
        is_deleting="deletionTimestamp" in metadata,
    )


# nodes of a profile: those that name it, those whose role names it, and those that it selects by label. The first two
# are found by annotation. Which selector wins depends on all selecting profiles, so selected nodes are found by status.


def count_users(view: View, service: Service, namespace: str, profile: str) -> int:
    """Count the nodes of a profile from indexes, without iterating over them."""
    choice = f"{namespace}/{service.annotation_key}={profile}"
    count = view.counted(names.NODE_KIND, names.BY_ANNOTATION, choice)
    for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice):
        value = f"{namespace}/{role.metadata.name}"
        count += view.counted(names.NODE_KIND, names.BY_ROLE, value)
        count -= view.counted(names.NODE_KIND, BY_ROLE_KEY, f"{value}/{service.annotation_key}")
    return count + view.counted(names.NODE_KIND, SELECTED, _selected(service, namespace, profile))


def list_users(view: View, service: Service, namespace: str, profile: str) -> Iterator[str]:
    """Iterate lazily over the nodes of a profile, sorted by name."""
    selected = view.indexed(names.NODE_KIND, SELECTED, _selected(service, namespace, profile))
    return merge(list_choosing_nodes(view, service, namespace, profile), (node.name for node in selected))


def list_choosing_nodes(view: View, service: Service, namespace: str, profile: str) -> Iterator[str]:
    """Iterate over nodes that name a profile, by their own annotation or that of their role, sorted by name."""
    choice = f"{namespace}/{service.annotation_key}={profile}"
    return merge(
        (node.name for node in view.indexed(names.NODE_KIND, names.BY_ANNOTATION, choice)),
        *(
            _followers(view, service, f"{namespace}/{role.metadata.name}")
            for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice)
        ),
    )


def _selected(service: Service, namespace: str, profile: str) -> str:
    return names.profile_key(service.name, namespace, profile)


def _followers(view: View, service: Service, role: str) -> Iterator[str]:
    """Iterate over nodes of a role that do not override its choice, sorted by name."""
    for node in view.indexed(names.NODE_KIND, names.BY_ROLE, role):
        if service.annotation_key not in node.metadata.annotations:
            yield node.name
