"""The one way in: what a capability registers, and gets everything else for.

From one frozen `Capability` come the watches, the queue keys, plans, status, messages, metrics, webhook reviews, RBAC,
its part of the CLI, of the demo and of the documentation. Nothing outside its folder knows it by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import msgspec

from nodeyard.apply.outcome import Outcome
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Json, Object
from nodeyard.plan.model import ObjectRef, Plan, Planned
from nodeyard.process.metrics import Metrics

Key = str
"""What is planned together, named: a template set, a cluster, a tenant tree."""


@dataclass(frozen=True)
class Watch:
    """A kind whose objects are kept in the cache.

    `keys` names what has to be planned again when an object changes (old or new is None on add and delete); it costs
    constant time. `indexes` find objects by a value; `needed` says whether the watch runs at all right now. A plan
    waits until every watch has told everything, but for those that have `needed`: of these, `collect` asks `is_synced`.
    """

    resource: Resource[Any]
    keys: Callable[[Any | None, Any | None], Iterable[Key]]
    indexes: Mapping[str, Callable[[Any], Iterable[str]]] = field(default_factory=dict)
    needed: Callable[[View], bool] | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    optional: bool = False
    """The kind may not be served: its watch starts when it appears and stops when it goes."""


@dataclass(frozen=True)
class Aggregate:
    """A running fold over one kind: `add` and `remove` are pure and undo each other."""

    name: str
    kind: str
    empty: Callable[[], Any]
    group: Callable[[Any], Iterable[str]]
    add: Callable[[Any, Any], Any]
    remove: Callable[[Any, Any], Any]


class View(Protocol):
    """The cache as `collect` sees it: consistent while it runs, own writes laid over."""

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None: ...

    def all(self, kind: str) -> Sequence[Any]:
        """By namespace and name."""

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]: ...

    def aggregate(self, name: str, group: str) -> Any: ...

    def is_synced(self, kind: str) -> bool:
        """Whether the watch has delivered its first list; of an optional kind that is not served, True and empty."""

    def malformed(self, kind: str) -> Mapping[tuple[str, str], str]:
        """Objects that did not decode, by namespace and name, with the error."""


class StatusWrite(msgspec.Struct, frozen=True, kw_only=True):
    """The status an object should have; written last and only when it differs."""

    object: ObjectRef
    status: Object
    resource_version: str = ""
    has_subresource: bool = True
    """False for a kind without a status subresource (kosmos Cluster): written through the object itself."""


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event to be recorded; equal ones within ten minutes are counted, not repeated."""

    object: ObjectRef
    type: str
    reason: str
    message: str


class Original(Protocol):
    """Tells whether the operator that this capability replaces is alive beside it: its name and how to hand over."""

    def __call__(self, view: View, now: datetime) -> tuple[str, str] | None: ...


class Measure(Protocol):
    def __call__(self, snapshot: Any, plan: Plan, outcome: Outcome) -> None: ...


@dataclass(frozen=True)
class Rule:
    """One RBAC rule that the capability needs."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A root kind of the capability: what its CRD says beyond its type is on the type (schema.crd)."""

    resource: Resource[Any]
    definition: Callable[[], Object]
    """The CRD."""


@dataclass(frozen=True)
class Capability:
    name: str
    kinds: tuple[Kind, ...]
    watches: tuple[Watch, ...]
    collect: Callable[[View, Key, datetime], Any]
    """A frozen snapshot of exactly what may influence the plan of a key; runs on the loop and costs at most linear.
    None where the key names nothing any more."""
    plan: Callable[[Any, datetime, Sequence[ObjectRef]], Planned]
    """Pure; runs in a worker thread. The refs are the objects to explain."""
    status: Callable[[Any, Plan, Outcome, datetime], Sequence[StatusWrite]]
    messages: Callable[[str, Object], str]
    """Reason and facts to text: conditions, events, `why`, the dashboard."""
    rbac: tuple[Rule, ...]
    events: Callable[[Any, Plan, Outcome], Sequence[Event]] = lambda _snapshot, _plan, _outcome: ()
    aggregates: tuple[Aggregate, ...] = ()
    roots: Callable[[View, Key], Sequence[Any]] = lambda _view, _key: ()
    """The root objects of a key: where pause and approval stand."""
    plans_pauses: bool = False
    """The planner itself leaves paused roots alone, since others share their key. Else a key whose roots are all paused
    is not planned at all."""
    managed: Callable[[Any], int] = lambda _snapshot: 0
    """How many nodes the capability manages in a snapshot: what the brake's share is of."""
    keys_of: Callable[[View, ObjectRef], Iterable[Key]] = lambda _view, _ref: ()
    """The keys whose plan can explain an object."""
    all_keys: Callable[[View], Iterable[Key]] = lambda _view: ()
    metrics: Callable[[Metrics], Measure] | None = None
    """Registers the capability's own metrics; what it returns is told of every pass before its status is written."""
    original: Original | None = None
    review: Callable[[Json, Any], Json] | None = None
    policies: Callable[[str], Sequence[Object]] = lambda _username: ()
    """ValidatingAdmissionPolicies and bindings that guard what the capability writes against all but this user."""
    loops: tuple[Callable[[Any], Awaitable[None]], ...] = ()
    example: str = ""
    """The folder under examples/ that runs in the demo."""

    def definitions(self) -> Sequence[Object]:
        """The CRDs of the kinds it serves."""
        return [kind.definition() for kind in self.kinds]
