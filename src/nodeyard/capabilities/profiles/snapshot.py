"""What may influence the decision about one OpenStackDataPlaneNode, frozen.

Service objects and their configuration are kept whole, as the server has them: what an apply would change is read off
their fields and managed fields. Profiles of all services are seen alike, whatever their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import ConfigFormat, OpenStackDataPlaneNode, OpenStackDataPlaneRole
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_MAX_UNAVAILABLE = "25%"
DEFAULT_DEADLINE_SECONDS = 600


@dataclass(frozen=True)
class Service:
    """A service whose profile nodes choose: built in, or declared by a ProfileService."""

    name: str
    annotation_key: str
    profile_api_version: str
    profile_kind: str
    object_api_version: str = ""
    """Empty where no object is made: the result is in the node's status alone."""
    object_kind: str = ""
    node_field: str = ""
    """The field of the object's spec with the node's name."""
    profile_field: str = ""
    """The field of the object's spec with the profile's name."""
    config_field: str = ""
    """The field of a profile's spec with the configuration."""
    config_format: ConfigFormat = ConfigFormat.INI
    create_when: str = ""
    """The annotation that asks for the object; empty: it is made where a profile resolves."""
    max_unavailable: Any = None
    deadline_seconds: int | None = None
    is_built_in: bool = True

    @property
    def makes_object(self) -> bool:
        return bool(self.object_kind)


@dataclass(frozen=True)
class Profile:
    """A profile of any service."""

    name: str
    uid: str = ""
    generation: int = 0
    config: str = ""
    node_selector: Mapping[str, str] | None = None
    """None: it selects no nodes by itself."""
    priority: int = 0
    max_unavailable: Any = None
    deadline_seconds: int | None = None
    render_as: str = ""
    is_deleting: bool = False


@dataclass(frozen=True)
class Budget:
    """How many service objects of one profile a rollout may disturb, and does."""

    total: int = 0
    """Objects that have this profile, or are to have it."""
    unavailable: int = 0
    """Those that do not run what they were last told, or are about to be told, ours excluded."""
    is_granted: bool = True
    """Whether this node may be among those that are disturbed now."""
    is_stalled: bool = False
    """Whether one of them is past its deadline: the rollout stops."""
    stalled: str = ""
    """Which one."""
    due: datetime | None = None
    """When the first of them is past its deadline."""


@dataclass(frozen=True)
class Loss:
    """Service objects that go because a role, or a selector, does not ask for them any more: of all nodes together."""

    taker: str
    """What takes them away, as it is now."""
    nodes: int
    """How many lose theirs."""
    managed: int
    """How many nodes there are."""
    root: ObjectRef | None = None
    """Where that is approved; None: on each node."""


@dataclass(frozen=True)
class Trouble:
    """Why a kind cannot be seen."""

    reason: Reason
    message: str


@dataclass(frozen=True)
class NodeSnapshot:
    node: OpenStackDataPlaneNode
    role: OpenStackDataPlaneRole | None = None
    """None where the node names none, or one that does not exist."""
    services: Sequence[Service] = ()
    """All there are, by name."""
    claimed_twice: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Annotation keys that more than one service claims, with the services: none of them is taken into account."""
    profiles: Mapping[str, Mapping[str, Profile]] = field(default_factory=dict)
    """By service and name: those that the node or its role name, and those that select nodes by label."""
    objects: Mapping[str, Object] = field(default_factory=dict)
    """By service: the object there is for this node."""
    configurations: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    """By service: what there is by the name of this node's configuration, a ConfigMap, a Secret, or both."""
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    """By service, for the profile that the node is to have."""
    losses: Mapping[str, Loss] = field(default_factory=dict)
    """By service: where the node has an object that its role, or a selector, no longer asks for."""
    troubles: Mapping[str, Trouble] = field(default_factory=dict)
    """By service: why its kinds cannot be seen, such as a missing right, with verb and resource."""
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What has been worked out from the rest (`once`)."""


def once(work: Callable[Concatenate[NodeSnapshot, P], T]) -> Callable[Concatenate[NodeSnapshot, P], T]:
    """A function that depends on a snapshot, and on what else can be hashed: worked out for the first who asks."""

    @wraps(work)
    def answer(snapshot: NodeSnapshot, /, *about: P.args, **named: P.kwargs) -> T:
        known, question = snapshot.known, (work, *about, *named.items())
        if question not in known:
            known[question] = work(snapshot, *about, **named)
        found: T = known[question]
        return found

    return answer
