"""The kinds that are watched, and how they are found again. Profiles and service objects are seen as they are on the
wire, so that those of declared services, which no code knows, are treated alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.availability import is_available, mapping
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
from nodeyard.runtime.capability import View

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
OBJECTS: Final = (COMPUTES, AGENTS)
CONFIGURATIONS: Final = (CONFIG_MAPS, SECRETS)

SELECTING: Final = "selecting"
"""Profiles that select nodes by label, by namespace."""
UNAVAILABLE: Final = "unavailable"
"""Service objects that do not run what they were told, by `namespace/profile`."""
SELECTED: Final = "selected"
"""Nodes by the profiles that select them, as their status says, by the key of the profile."""
WITHOUT_ROLE: Final = "without-role"
"""Nodes that have no role, by namespace."""
BY_ROLE_KEY: Final = "role-key"
"""Nodes by their role and each annotation key of theirs, as `namespace/role/key`: those who choose for themselves."""


def viewed(api_version: str, kind: str) -> str:
    """How a view names a kind."""
    group = api_version.rpartition("/")[0]
    return f"{kind}.{group}" if group else kind


def is_seen(view: View, kind: str) -> bool:
    """Whether what there is of a kind is known; those of declared services may not be watched yet."""
    try:
        return view.is_synced(kind)
    except KeyError:
        return False


# how they are found


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


def selecting(profile: Object) -> Iterable[str]:
    has_selector = isinstance(mapping(profile.get("spec")).get("nodeSelector"), Mapping)
    return (namespace_of(profile),) if has_selector else ()


def namespace_of(obj: Object) -> str:
    """Empty of a kind that is declared though it is cluster-scoped: nobody's, and told of where it matters."""
    return str(obj["metadata"].get("namespace", ""))


def by_node(obj: Object) -> Iterable[str]:
    node = (obj["metadata"].get("labels") or {}).get(names.NODE_LABEL)
    return (f"{obj['metadata']['namespace']}/{node}",) if node else ()


def by_profile(field: str) -> Any:
    """Service objects by the profile that this field of their spec names."""
    return lambda obj: (f"{namespace_of(obj)}/{named(obj, field)}",)


def unavailable(field: str) -> Any:
    return lambda obj: () if is_available(obj) else (f"{namespace_of(obj)}/{named(obj, field)}",)


def named(obj: Object, field: str) -> str:
    """What a field of an object's spec says."""
    value = mapping(obj.get("spec")).get(field)
    return value if isinstance(value, str) else ""


def seen(service: Service, profile: Object) -> Profile:
    """A profile of any service, read leniently: what is malformed is as if it were not there."""
    metadata, spec = profile["metadata"], mapping(profile.get("spec"))
    selector, priority, deadline = (spec.get(each) for each in ("nodeSelector", "priority", "progressDeadlineSeconds"))
    return Profile(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation") or 0,
        config=named(profile, service.config_field) if service.config_field else "",
        node_selector=selector if isinstance(selector, Mapping) else None,
        priority=priority if isinstance(priority, int) else 0,
        max_unavailable=spec.get("maxUnavailable"),
        deadline_seconds=deadline if isinstance(deadline, int) and deadline > 0 else None,
        render_as=spec.get("renderAs") or "",
        is_deleting="deletionTimestamp" in metadata,
    )
