"""The one way in: what a capability registers, and gets everything else for.

From one frozen `Capability` come the watches, the queue keys, plans, status, messages, metrics, webhook reviews, RBAC,
its part of the CLI, of the demo and of the documentation. Nothing outside its folder knows it by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from nodeyard.apply.outcome import Outcome
from nodeyard.client.decoding import Malformed
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef, Plan, Planned
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.webhooks import Review, Verdict, Webhook

Key = str
"""What is planned together, named: a template set, a cluster, a tenant tree."""


@dataclass(frozen=True)
class Watch:
    """A kind whose objects are kept in the cache.

    `keys` names what has to be planned again when an object changes (old or new is None on add and delete); it costs
    constant time. `indexes` find objects by a value; `needed` says whether the watch runs at all right now. A plan
    waits until every watch has told everything, but for those that have `needed`: of these, `collect` asks `is_synced`.

    Among a capability's `cluster_watches` it runs on each further cluster: `keys_of` names the keys there, and `needed`
    is asked with the view of that cluster, from which `view.cluster("")` leads back to our own. No plan waits for it:
    `collect` asks `is_synced`.
    """

    resource: Resource[Any]
    keys: Callable[[Any | None, Any | None], Iterable[Key]] = lambda _old, _new: ()
    indexes: Mapping[str, Callable[[Any], Iterable[str]]] = field(default_factory=dict)
    needed: Callable[[ClusterView], bool] | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    optional: bool = False
    """The kind may not be served: its watch starts when it appears and stops when it goes."""
    older: tuple[str, ...] = ()
    """Of an optional kind: versions to watch instead where the server does not have this one, the best first."""
    keys_in: Callable[[View, Any | None, Any | None], Iterable[Key]] | None = None
    """Like `keys`, and instead of it, where it takes a look at other objects to tell."""
    keys_of: Callable[[str, Any | None, Any | None], Iterable[Key]] | None = None
    """Of a watch on further clusters: like `keys`, with the name of the cluster first."""
    aggregates: tuple[Aggregate, ...] = ()
    """Folds over its objects, beside the `aggregates` of the capability: those of a kind that users declare come and go
    with it."""
    calm: float = 0.0
    """Where there may be many changes, such as of pods, and none is urgent: a key that was planned for one is not
    planned for the next before this many seconds have passed. Other changes do not wait."""


@dataclass(frozen=True)
class Elsewhere:
    """A further cluster that a capability needs right now: a leaf, or one whose nodes it drains."""

    name: str
    """Unique within the capability, and the same for as long as the cluster is meant."""
    kubeconfig: bytes = field(repr=False)
    """As somebody gave it. It may not run programs, read files here nor send us through a proxy."""
    key: Key = ""
    """Where keys are shared out: whoever has this one connects to it. Empty: the key of the same name."""


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

    def counted(self, kind: str, index: str, value: str) -> int:
        """How many are indexed so, in time that does not grow with them."""

    def aggregate(self, name: str, group: str) -> Any: ...

    def is_synced(self, kind: str) -> bool:
        """Whether the watch has delivered its first list; of an optional kind that is not served, True and empty."""

    def trouble(self, kind: str) -> str:
        """What last went wrong with the watch, such as a right that is missing; empty while all is well."""

    def malformed(self, kind: str) -> Mapping[tuple[str, str], str]:
        """Objects that did not decode, by namespace and name, with the error. The last version of one that did decode
        is still among the others. All keys are due when one comes, changes in what is known of it, or goes."""

    def aside(self, kind: str) -> Mapping[tuple[str, str], Malformed]:
        """The same, with what is known of each: whether it is being deleted, and its finalizers."""

    @property
    def uid(self) -> str:
        """Which cluster this is: the uid of its Namespace kube-system; empty while that is not known.

        A capability that asks needs the right to get that Namespace. Its keys are due when the answer is there.
        """

    def versions(self, group: str, kind: str) -> Sequence[str]:
        """The versions of a kind that the server serves, the preferred one first; none where it does not have it.

        The keys of a capability that asks are due when the answer becomes another.
        """

    def plural(self, kind: str) -> str:
        """The plural of a watched kind; of one that a user declared empty while the server does not have it."""

    def is_namespaced(self, kind: str) -> bool:
        """Whether objects of a watched kind are in namespaces; of one that a user declared True while that is not
        known."""

    def cluster(self, name: str) -> ClusterView:
        """A further cluster, also where it is not connected yet or not any more. No name is our own."""

    @property
    def sightings(self) -> Sequence[tuple[str, str]]:
        """The kinds, as apiVersion and kind, of objects that reviews lately found by a `Lookup`: one version of each,
        in the order of their names. Bounded; a kind that is neither looked up nor asked for here by its full name
        (`Kind.group`) makes room first. `declared` may watch them, so that the next review finds them cached."""

    def finding(self, name: str) -> Any | None:
        """What a loop of the capability last published under this name; None before, and where no loops run."""


class ClusterView(View, Protocol):
    """A further cluster as `collect` sees it.

    While there is no contact it shows what was last known; of a cluster that was never reached nothing is synced.
    """

    @property
    def name(self) -> str:
        """As the capability named it."""

    @property
    def is_connected(self) -> bool:
        """Whether the server answers."""

    @property
    def connected_at(self) -> datetime | None:
        """When contact was last made: what is shown may be from before for a moment still. None before the first."""

    @property
    def error(self) -> str:
        """Why there is no contact, or why the kubeconfig is refused; empty while connected or not tried yet."""

    @property
    def version(self) -> str:
        """Of its API server, as v1.36.4, learnt each time contact is made; empty while it is not known."""


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
    is_standing: bool = False
    """About how things stand, not about what happened: said with every pass, and recorded when it has changed."""


class Living(NamedTuple):
    """An operator that a capability replaces, alive beside it."""

    name: str
    hand_over: str
    """What a person does to let us take over."""
    until: datetime | None = None
    """When it is dead unless it is heard of again; looked at again then. None: in half a minute."""
    is_apart: bool = False
    """What is its own the plan leaves alone by itself, and says so: the rest is done beside it, unasked."""


class Original(Protocol):
    """Tells whether the operator that this capability replaces is alive beside it."""

    def __call__(self, view: View, now: datetime) -> Living | None: ...


class Measure(Protocol):
    def __call__(self, snapshot: Any, plan: Plan, outcome: Outcome) -> None: ...

    def forget(self, key: Key) -> None:
        """What the key named is gone, and its series go with it."""


@runtime_checkable
class MeasuresReviews(Protocol):
    """What a `Measure` may be besides."""

    def reviewed(self, review: Review, verdict: Verdict) -> None:
        """After each answer but those to dry runs."""


@dataclass(frozen=True)
class Rule:
    """One RBAC rule that the capability needs."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    namespace: str = ""
    """Where alone it is needed; empty: everywhere."""


@dataclass(frozen=True)
class Kind:
    """A root kind of the capability: what its CRD says beyond its type is on the type (schema.crd)."""

    resource: Resource[Any]
    definition: Callable[[], Object]
    """The CRD."""
    holds_credentials: bool = False
    """In clear. Who may read no Secrets, as with the cluster's role `view`, is not given the right to read it."""


def nowhere(_view: View) -> Iterable[Elsewhere]:
    """What a capability says that needs no cluster but ours."""
    return ()


def nothing(_view: View) -> Iterable[Watch]:
    """What a capability says that watches no kinds but those it knows beforehand."""
    return ()


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
    declared: Callable[[View], Iterable[Watch]] = nothing
    """Watches of kinds that users declare, which are known only now; pure, cheap, and asked again after each change of
    the view. They join the view as long as they are named (`Kind.group`, and `Kind` where no other has it) and are
    always optional: a kind that is not served or may not be watched holds nothing up, so `collect` asks `is_synced`,
    `trouble` and `versions`. Where the plural is not known it is left empty and found out (`resources.of_kind`). A kind
    that is among `watches` is not watched again. Whoever runs it is given the rights by ClusterRoles that carry the
    label `rbac.nodeyard.dev/aggregate-to-<capability>: "true"`."""
    clusters: Callable[[View], Iterable[Elsewhere]] = nowhere
    """The further clusters that are needed now; pure, and asked again after each change of the view."""
    cluster_watches: tuple[Watch, ...] = ()
    """What is watched on each of them."""
    cluster_aggregates: tuple[Aggregate, ...] = ()
    cluster_keys: Callable[[View, str], Iterable[Key]] = lambda _view, _cluster: ()
    """The keys that are due when contact with a further cluster is made, lost or regained, or a watch there fails."""
    roots: Callable[[View, Key], Sequence[Any]] = lambda _view, _key: ()
    """The root objects of a key: where pause and approval stand."""
    wider: Callable[[View, Key], Sequence[Any]] = lambda _view, _key: ()
    """Objects that several keys depend on: where an undertaking is approved in which all of them have a part. Whether
    they are paused does not concern the key."""
    plans_pauses: bool = False
    """The planner itself leaves paused roots alone, since others share their key. Else a key whose roots are all paused
    is not planned at all."""
    is_small: Callable[[Key], bool] = lambda _key: False
    """Whether a key, as users have it, takes a fraction of a millisecond to plan and to tell of, however large the
    fleet is. That is done in place: the way to the planners' thread and back would cost more."""
    managed: Callable[[Any], int] = lambda _snapshot: 0
    """How many nodes the capability manages in a snapshot: what the brake's share is of."""
    keys_of: Callable[[View, ObjectRef], Iterable[Key]] = lambda _view, _ref: ()
    """The keys whose plan can explain an object."""
    sights: Callable[[View, ObjectRef], Iterable[tuple[str, str]]] = lambda _view, _ref: ()
    """Kinds, as apiVersion and kind, that have to be watched before an object can be explained and are not yet: whoever
    asks adds them to `view.sightings`, and asks again until there are no more."""
    all_keys: Callable[[View], Iterable[Key]] = lambda _view: ()
    metrics: Callable[[Metrics], Measure] | None = None
    """Registers the capability's own metrics; what it returns is told of every pass before its status is written."""
    original: Original | None = None
    webhooks: tuple[Webhook, ...] = ()
    """What it says about requests before they are stored (`runtime.webhooks`); every replica answers."""
    policies: Callable[[str], Sequence[Object]] = lambda _username: ()
    """ValidatingAdmissionPolicies and bindings that guard what the capability writes against all but this user."""
    loops: tuple[Callable[[Any], Awaitable[None]], ...] = ()
    """What is not a plan and must be on time (`runtime.loops`); each is given a `LoopContext`."""
    brief: Callable[[Any, datetime], Any] | None = None
    """Of a snapshot and the time, what the loops need of the key: frozen, and compared to tell whether it has changed.
    Made after each successful `collect`, also of a paused key and where we only observe: `gate_of` is closed then."""
    is_shared: bool = False
    """Replicas share the keys out among them, each by a Lease of its own, and plan, connect to and run loops for those
    they have (`runtime.shares`). Else one replica does everything."""
    aliases: Mapping[str, Callable[[str], Sequence[ObjectRef]]] = field(default_factory=dict)
    """Words that `nodeyard why` takes for a kind, and the objects that a name after it may mean, best first."""
    stages: tuple[str, ...] = ()
    """The simulated world's stage files that play what it works with, for the demo."""
    example: str = ""
    """The folder under examples/ that runs in the demo."""

    @property
    def has_clusters(self) -> bool:
        """Whether it may need others than our own."""
        return self.clusters is not nowhere

    @property
    def has_declared(self) -> bool:
        """Whether users may declare kinds that it watches."""
        return self.declared is not nothing

    def definitions(self) -> Sequence[Object]:
        """The CRDs of the kinds it serves."""
        return [kind.definition() for kind in self.kinds]
