"""Immutable snapshots of what a plan or a status depends on: nodes, profiles, roles and ProfileServices.

Service objects and configuration objects are kept whole, because the preview of an apply needs their managed fields.
Profiles of every kind are parsed into the same type.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from nodeyard.capabilities.profiles.messages.faults import KindFault
from nodeyard.capabilities.profiles.types import (
    ConfigFormat,
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    ProfileService,
    Source,
)
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_MAX_UNAVAILABLE = "25%"
DEFAULT_DEADLINE_SECONDS = 600


@dataclass(frozen=True)
class Service:
    """Service with profiles: built in, or declared by a ProfileService."""

    name: str
    annotation_key: str
    profile_api_version: str
    profile_kind: str
    object_api_version: str = ""
    """Empty if the service has no objects; the choice is then only in the status of the node."""
    object_kind: str = ""
    node_field: str = ""
    """Field of the object's spec with the name of the node."""
    profile_field: str = ""
    """Field of the object's spec with the name of the profile."""
    config_field: str = ""
    """Field of a profile's spec with the configuration."""
    config_format: ConfigFormat = ConfigFormat.INI
    create_when: str = ""
    """Annotation that requests the object; if empty, the object is created wherever a profile resolves."""
    max_unavailable: Any = None
    deadline_seconds: int | None = None
    progress: str = ""
    """`Progress`, or empty."""
    is_built_in: bool = True

    @property
    def makes_object(self) -> bool:
        return bool(self.object_kind)


@dataclass(frozen=True)
class Profile:
    """Profile of any service."""

    name: str
    uid: str = ""
    generation: int = 0
    config: str = ""
    node_selector: Mapping[str, str] | None = None
    """None if the profile selects no nodes."""
    priority: int = 0
    max_unavailable: Any = None
    deadline_seconds: int | None = None
    progress: str = ""
    render_as: str = ""
    is_deleting: bool = False


@dataclass(frozen=True)
class Budget:
    """Rollout budget of a profile for one node."""

    name: str = ""
    """Name of the budget, which the plans of all nodes with the profile share."""
    total: int = 0
    """Number of objects that have the profile or are about to get it."""
    limit: int = 1
    """Number of objects that may be unavailable at once."""
    unavailable: int = 0
    """Number of objects that are unavailable."""
    reserved: int = 0
    """Number of objects of other nodes whose writes are under way; counted only if that may spend the budget."""
    stalled: str = ""
    """Name of an object that is past its progress deadline, which stops the rollout; empty if there is none."""
    due: datetime | None = None
    """Time of the next progress deadline."""

    @property
    def is_spent(self) -> bool:
        return self.unavailable + self.reserved >= self.limit

    @property
    def is_reserved(self) -> bool:
        """True if only writes that are under way spend the budget."""
        return self.is_spent and self.unavailable < self.limit


@dataclass(frozen=True)
class Removal:
    """Bulk removal of service objects that a role or a selector no longer requests, over all affected nodes."""

    cause: str
    """Revision of the role or profile that causes the removal."""
    nodes: int
    """Number of nodes that lose their object."""
    managed: int
    """Number of managed nodes."""
    root: ObjectRef | None = None
    """Object on which the removal is approved; None if each node is approved separately."""


@dataclass(frozen=True)
class NodeSnapshot:
    node: OpenStackDataPlaneNode
    role: OpenStackDataPlaneRole | None = None
    """None if the node has no spec.role, or the role does not exist."""
    services: Sequence[Service] = ()
    """All services, by name."""
    key_conflicts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Annotation keys that several services declare, with the services; none of them is used."""
    profiles: Mapping[str, Mapping[str, Profile]] = field(default_factory=dict)
    """By service and name: profiles that the node or its role names, and profiles with a nodeSelector."""
    objects: Mapping[str, Object] = field(default_factory=dict)
    """By service: the service object of this node."""
    configurations: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    """By service: objects with the name of this node's configuration: a ConfigMap, a Secret, or both."""
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    """By service whose object would be disrupted, for the desired profile of the node."""
    removals: Mapping[str, Removal] = field(default_factory=dict)
    """By service: set if the node has an object that its role or a selector no longer requests."""
    ignored: Set[str] = frozenset()
    """Services whose rollout does not wait for status.hash.profile."""
    has_config_maps: bool = True
    """True if ConfigMaps may be read and written in the namespace of the node."""
    has_secrets: bool = True
    """True if Secrets may be read and written in the namespace of the node."""
    kind_faults: Mapping[str, KindFault] = field(default_factory=dict)
    """By service: fault of its kinds, such as a missing permission with verb and resource."""
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Cache of derived values (`memoize`)."""


def memoize(work: Callable[Concatenate[NodeSnapshot, P], T]) -> Callable[Concatenate[NodeSnapshot, P], T]:
    """Cache the result of a function on its snapshot, by its other hashable arguments."""

    @wraps(work)
    def compute(snapshot: NodeSnapshot, /, *about: P.args, **named: P.kwargs) -> T:
        memo, key = snapshot.memo, (work, *about, *named.items())
        if key not in memo:
            memo[key] = work(snapshot, *about, **named)
        found: T = memo[key]
        return found

    return compute


# profiles, roles and ProfileServices


@dataclass(frozen=True)
class RolloutCount:
    total: int = 0
    available: int = 0
    """Objects that run their desired configuration."""
    generations: Mapping[str, int] = field(default_factory=dict)
    """Number of objects by generation of the profile."""
    unavailable_since: Mapping[str, int] = field(default_factory=dict)
    """Number of unavailable objects by the time of their last write."""
    ready: int = 0
    """Objects that are available if reports are ignored."""
    unready_since: Mapping[str, int] = field(default_factory=dict)
    """Number of the other objects by the time of their last write."""

    @property
    def is_done(self) -> bool:
        return self.available == self.total

    def ignoring_reports(self) -> RolloutCount:
        """Return the counters for a rollout that ignores reports."""
        return replace(self, available=self.ready, unavailable_since=self.unready_since)


@dataclass(frozen=True)
class ProfileUser:
    """User of a profile: a node or role that names it, or a node that it selects."""

    source: Source
    name: str
    nodes: int = 1
    """Number of nodes of a role."""
    followers: int = 1
    """Number of nodes of a role that use its choice."""


@dataclass(frozen=True)
class RoleChoice:
    """Choice of a role for one service."""

    service: Service
    value: str | None
    """None if the role lacks the annotation."""
    followers: int
    """Number of nodes of the role that use it."""
    exists: bool


@dataclass(frozen=True)
class ProfileSnapshot:
    service: Service
    raw: Object
    profile: Profile
    node_count: int = 0
    """Number of nodes with the profile."""
    nodes: Sequence[str] = ()
    """Names of the first nodes, sorted."""
    rollout: RolloutCount = field(default_factory=RolloutCount)
    """Counters of its service objects."""
    due: datetime | None = None
    """Earliest progress deadline."""
    stalled: str = ""
    """Name of the object that is past its progress deadline."""
    used_by: Sequence[ProfileUser] = ()
    """Roles, and the first nodes that name the profile or are selected."""
    ignores: bool = False
    """True if its rollout does not wait for status.hash.profile."""
    pinned: int = 0
    """Number of nodes pinned to an earlier generation."""
    open_removals: Collection[str] = ()
    """Approval groups of removals that are not complete, if the profile has an approval."""

    @property
    def updated(self) -> int:
        """Number of service objects with the current generation; the number of nodes for a service without objects."""
        if not self.service.makes_object:
            return self.node_count
        return self.rollout.generations.get(str(self.profile.generation), 0)


@dataclass(frozen=True)
class RoleSnapshot:
    role: OpenStackDataPlaneRole
    nodes: int = 0
    choices: Sequence[RoleChoice] = ()
    """Choices by service."""
    open_removals: Collection[str] = ()
    """Approval groups of removals that are not complete, if the role has an approval."""


@dataclass(frozen=True)
class ServiceSnapshot:
    service: ProfileService
    fault: str = ""
    open_removals: Collection[str] = ()
    """Approval groups of removals that are not complete, if the ProfileService has an approval."""


StatusSnapshot = ProfileSnapshot | RoleSnapshot | ServiceSnapshot
