"""The registration of a capability, from which the engine derives everything else.

One frozen `Capability` gives the watches, workqueue keys, plans, status, messages, metrics, admission reviews and RBAC,
and its part of the CLI, the demo and the docs. Nothing outside the capability's folder knows it by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from nodeyard.apply.outcome import Outcome
from nodeyard.apply.recorder import Event as Event
from nodeyard.apply.status import StatusWrite as StatusWrite
from nodeyard.client.decoder import Malformed
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.plan.model import Action, ObjectRef, Plan, Planned
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.surface import Surface
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, Webhook
from nodeyard.watch.indexes import Aggregate as Aggregate

T = TypeVar("T")

Key = str
"""A unit of planning in the workqueue: a template set, a cluster, a tenant tree."""


class WatchNotSynced(Exception):
    """Raised by `collect` if a declared watch that it needs has not synced; the key is requeued."""


@dataclass(frozen=True)
class Watch:
    """A kind whose objects are kept in the cache.

    `keys` maps a change to the keys to reconcile, in constant time; old is None on add, new is None on delete.
    `indexes` find objects by a value. `needed` returns False while the watch is not to run. A plan waits until every
    watch without `needed` has synced; for the others `collect` checks `is_synced`.

    A watch of `Remote` runs on each remote cluster. `map_remote` then maps its changes to
    keys, and `needed` is called with the view of that cluster, whose `view.cluster("")` is the host cluster. No plan
    waits for it: `collect` checks `is_synced`.
    """

    resource: Resource[Any]
    keys: Callable[[Any | None, Any | None], Iterable[Key]] = lambda _old, _new: ()
    indexes: Mapping[str, Callable[[Any], Iterable[str]]] = field(default_factory=dict)
    needed: Callable[[ClusterView], bool] | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    namespace: str = ""
    """Limits the watch to one namespace, with rights in that namespace only; views name it `Kind@namespace`
    (`in_namespace`). The namespaces are known only at run time, so such watches are dynamic (`Dynamic`): a missing
    right blocks nothing else, and `collect` checks `is_synced` and `watch_error`."""
    optional: bool = False
    """The kind may be missing on the server: its watch starts when the kind appears and stops when it goes."""
    fallback_versions: tuple[str, ...] = ()
    """Versions of an optional kind to watch instead if the server lacks this one, the best first."""
    map_with_view: Callable[[View, Any | None, Any | None], Iterable[Key]] | None = None
    """Replaces `keys` if the mapping must read other objects from the view."""
    map_remote: Callable[[str, Any | None, Any | None], Iterable[Key]] | None = None
    """Replaces `keys` for a watch on remote clusters, with the name of the cluster first."""
    aggregates: tuple[Aggregate, ...] = ()
    """Aggregates over its objects, beside the `aggregates` of the capability. Those of a declared kind come and go with
    it."""
    identity: str = ""
    """Identifies what the indexes and aggregates of a declared watch compute, if that depends on the declaration: they
    are rebuilt when it changes. A declaration is evaluated often, and its functions are not compared."""
    min_interval: float = 0.0
    """Rate limit for frequent changes that are not urgent, such as of pods: a key that was reconciled for one is not
    reconciled for the next before this many seconds. Other changes do not wait."""


class SecretKey(NamedTuple):
    """A reference to one value in a Secret."""

    namespace: str
    name: str
    key: str
    remedy: str = ""
    """The remedy that is shown if it may not be read."""

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name}"


@dataclass(frozen=True)
class RemoteClusterRef:
    """A remote cluster that a capability needs now: a leaf, or a cluster whose nodes it drains."""

    name: str
    """Unique within the capability, and stable for as long as the same cluster is meant."""
    kubeconfig: bytes = field(default=b"", repr=False)
    """An untrusted kubeconfig: it may not run programs, read local files or use a proxy."""
    key: Key = ""
    """If keys are sharded, the owner of this key connects to the cluster. Empty: the key of the same name."""
    secret: SecretKey | None = None
    """The Secret to read the kubeconfig from instead, by a GET at each connect and periodically, so that no right to
    list Secrets is needed."""


class View(Protocol):
    """The cache as `collect` sees it: consistent during the call, and overlaid with own writes."""

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None: ...

    def all(self, kind: str) -> Sequence[Any]:
        """Return all objects, sorted by namespace and name."""

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]: ...

    def counted(self, kind: str, index: str, value: str) -> int:
        """Count the indexed objects in constant time."""

    def aggregate(self, name: str, group: str) -> Any: ...

    def is_synced(self, kind: str) -> bool:
        """Return True after the first list. An optional kind that is not served is synced and empty."""

    def watch_error(self, kind: str) -> str:
        """Return the current error of the watch, such as a missing right; empty while it is healthy."""

    def malformed(self, kind: str) -> Mapping[tuple[str, str], Malformed]:
        """Return the objects that do not decode, by namespace and name: the error, deletion and finalizers.

        The last version that decoded stays in the cache. All keys are queued when such an object appears, changes or
        goes.
        """

    @property
    def uid(self) -> str:
        """The identity of the cluster: the uid of its Namespace kube-system; empty while unknown.

        It needs the right to get that Namespace. The keys are queued when the answer arrives.
        """

    def versions(self, group: str, kind: str) -> Sequence[str]:
        """Return the served versions of a kind, the preferred one first; empty if it is not served.

        The keys of a capability that calls this are queued when the answer changes.
        """

    def plural(self, kind: str) -> str:
        """Return the plural of a watched kind; empty for a declared kind that is not served."""

    def is_namespaced(self, kind: str) -> bool:
        """Return True if a watched kind is namespaced; also for a declared kind while that is unknown."""

    def cluster(self, name: str) -> ClusterView:
        """Return a remote cluster, connected or not; the host cluster if `name` is empty."""

    @property
    def recent_kinds(self) -> Sequence[tuple[str, str]]:
        """Kinds (apiVersion, kind) of objects that admission reviews lately found by a `Lookup`: one version each,
        sorted by name. The list is bounded; a kind that is neither looked up nor read here by its full name
        (`Kind.group`) is evicted first. `declared` may watch them, so that the next review finds them cached."""

    def finding(self, name: str) -> Any | None:
        """Return the value that a loop last published under this name; None before that, and if no loops run."""

    def memo(self, subject: Hashable, state: Hashable, now: datetime, compute: Callable[[], T]) -> T:
        """Return a value that many keys ask for and that is costly to compute, such as a count over a role's nodes.

        It is computed once while `state`, which names its causes, is equal, and again after 5 s: what is not in
        `state` may be as old as that.
        """

    def reserved(self, budget: str) -> Mapping[Key, str]:
        """Return the keys whose plans take from a shared budget (`Planned.reserves`) and whose writes the server has
        not answered yet, each with its token."""

    def waiting(self, budget: str) -> Sequence[Key]:
        """Return the first keys that wait for a shared budget (`Planned.waits_for`), to requeue them when a part of it
        is free."""


class ClusterView(View, Protocol):
    """A remote cluster as `collect` sees it.

    While it is disconnected, the view shows the last known state. Nothing of a cluster that was never reached is
    synced.
    """

    @property
    def name(self) -> str:
        """The name of its RemoteClusterRef."""

    @property
    def is_connected(self) -> bool:
        """True while the server responds to probes."""

    @property
    def connected_at(self) -> datetime | None:
        """The time of the last connect; the cache may briefly show older state. None before the first."""

    @property
    def error(self) -> str:
        """The reason of a lost connection or a refused kubeconfig; empty while connected or before the first try."""

    @property
    def version(self) -> str:
        """The version of its API server, such as v1.36.4, read at each connect; empty while unknown."""


class PeerOperator(NamedTuple):
    """An operator that a capability replaces and that is still running."""

    name: str
    hand_over: str
    """The step by which a user lets this capability take over."""
    until: datetime | None = None
    """When it counts as stopped unless it is seen again; the key is requeued then. None: in 30 seconds."""
    is_apart: bool = False
    """The plan itself skips the objects of the other operator and reports them; the rest is written beside it."""


@dataclass(frozen=True)
class Report:
    """The report of one pass over a key."""

    statuses: Sequence[StatusWrite] = ()
    events: Sequence[Event] = ()
    metrics: Any = None
    """Values for the capability's `MetricsRecorder`; None records nothing."""


class MetricsRecorder(Protocol):
    """The capability's own metrics."""

    def record(self, values: Any) -> None:
        """Record `Report.metrics`. Called in every pass before its status is written."""

    def forget(self, key: Key) -> None:
        """Remove the series of a deleted key."""


@runtime_checkable
class ReviewRecorder(Protocol):
    """Optional interface of a `MetricsRecorder`: metrics of admission reviews."""

    def record_review(self, request: AdmissionRequest, response: AdmissionResponse) -> None:
        """Called after each admission response, except for dry runs."""


@dataclass(frozen=True)
class Rule:
    """One RBAC rule that the capability needs."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    namespace: str = ""
    """Limits the rule to one namespace; empty: cluster-wide."""
    grant: str = ""
    """Name of a grant, if the administrator chooses the namespaces. The rules of one grant form the ClusterRole
    `nodeyard-<capability>-<grant>`, which RoleBindings grant in single namespaces (chart value
    `namespaceGrants.<capability>.<grant>`). Empty: the rule is granted cluster-wide."""


@dataclass(frozen=True)
class Kind:
    """A root kind of the capability. Everything that its CRD says beyond its schema is declared on the type
    (schema.crd)."""

    resource: Resource[Any]
    definition: Callable[[], Object]
    """Returns the CRD."""
    holds_credentials: bool = False
    """Objects contain credentials in plain text. Users who may not read Secrets, as with the role `view`, are not
    granted reading it."""


@dataclass(frozen=True)
class Roots:
    """The root objects of a key: users pause, approve and delete them, and the reconciler's conditions appear there."""

    of_key: Callable[[View, Key], Sequence[Any]] = lambda _view, _key: ()
    """The roots of a key, which carry its pause and approve annotations."""
    of_action: Callable[[Action], tuple[str, str]] = lambda action: (action.object.namespace, action.object.name)
    """Namespace and name of the root that an action is for, if a key has several roots."""
    approval: Callable[[View, Key], Sequence[Any]] = lambda _view, _key: ()
    """Objects that several keys depend on, which carry the approval of an approval group that spans those keys. Their
    pause does not affect the key."""
    held: Callable[[View, Key], Sequence[Any]] = lambda _view, _key: ()
    """Objects whose edits may be held in the plans of other keys (`Action.group_root`), and whose status this key
    writes: they get the condition `Held` here. The plan of this key names the groups that other keys still carry out
    (`Planned.open_groups`). The reconciler removes approvals that are no longer needed, here and from the roots of a
    key, which takes the right to patch them."""
    plan_handles_pause: bool = False
    """The planner itself skips paused roots, because other roots share their key or some work must continue. Otherwise
    a key whose roots are all paused is not planned."""


@dataclass(frozen=True)
class Alias:
    """A kind alias of `nodeyard why`, such as `pool/CLUSTER/POOL`."""

    parse: Callable[[str], Sequence[ObjectRef]]
    """Returns the objects that the name after the alias may mean, best first."""
    syntax: str = "CLUSTER/NAME"


@dataclass(frozen=True)
class Explain:
    """Support for `nodeyard why`."""

    keys_of: Callable[[View, ObjectRef], Iterable[Key]] = lambda _view, _ref: ()
    """The keys whose plan can explain an object."""
    kinds: Callable[[View, ObjectRef], Iterable[tuple[str, str]]] = lambda _view, _ref: ()
    """Kinds (apiVersion, kind) that must be watched before an object can be explained. The caller adds them to
    `view.recent_kinds` and repeats the call until none is left."""
    healthy: frozenset[str] = frozenset()
    """Reasons that mean a healthy state. `why` does not answer with one of them if a condition says otherwise."""
    aliases: Mapping[str, Alias] = field(default_factory=dict)


@dataclass(frozen=True)
class Remote:
    """Use of remote clusters."""

    clusters: Callable[[View], Iterable[RemoteClusterRef]]
    """The remote clusters that are needed now. Pure, and called again after each change of the view."""
    watches: tuple[Watch, ...] = ()
    """Watches on each remote cluster."""
    aggregates: tuple[Aggregate, ...] = ()
    keys: Callable[[View, str], Iterable[Key]] = lambda _view, _cluster: ()
    """The keys to queue when a remote cluster connects, disconnects or reconnects, or a watch there fails."""


NO_CLUSTERS: Final = Remote(lambda _view: ())


@dataclass(frozen=True)
class Dynamic:
    """Watches of kinds that are known only at run time."""

    watches: Callable[[View], Iterable[Watch]]
    """Pure, cheap, and called again after each change of the view. The kinds are in the view (`Kind.group`, and `Kind`
    if it is unique) for as long as they are returned, and are always optional: a kind that is not served or may not be
    watched blocks nothing, so `collect` checks `is_synced`, `watch_error` and `versions`. An unknown plural is left
    empty and discovered (`resources.of_kind`). A kind among the static watches is not watched again."""
    aggregates_rights: bool = True
    """The rights come from ClusterRoles with the label `rbac.nodeyard.dev/aggregate-to-<capability>: "true"`. False if
    the kinds are fixed and their rights come from grants."""


@dataclass(frozen=True)
class Background:
    """Loops for work with deadlines that is not a plan (`runtime.background`)."""

    loops: tuple[Callable[[Any], Awaitable[None]], ...]
    """Each gets a `LoopContext`."""
    input: Callable[[Any, datetime], Any] = lambda _snapshot, _now: None
    """Extracts the input of the loops from a snapshot: frozen, and compared to detect changes. Called after each
    successful `collect`, also for a paused key and in observe-only mode: the write fence is closed then."""


@dataclass(frozen=True)
class Admission:
    """Webhooks and policies."""

    webhooks: tuple[Webhook, ...] = ()
    """Admission webhooks (`runtime.webhooks`); every replica answers."""
    policies: Callable[[str], Sequence[Object]] = lambda _username: ()
    """ValidatingAdmissionPolicies and bindings that protect the capability's writes against everyone but this user."""
    confinement: Callable[[str], Sequence[Object]] = lambda _username: ()
    """ValidatingAdmissionPolicies and bindings that deny this user, the operator, what its roles cannot exclude. They
    are installed with the roles."""


@dataclass(frozen=True)
class Capability:
    """Everything that the engine needs to run a capability. Functions without I/O, called as described per field."""

    name: str
    kinds: tuple[Kind, ...]
    watches: tuple[Watch, ...]
    all_keys: Callable[[View], Iterable[Key]]
    """The keys that exist now, for resyncs."""
    collect: Callable[[View, Key, datetime], Any]
    """Takes a frozen snapshot of everything that may influence the plan of a key. Runs on the event loop in at most
    linear time. Returns None if the key no longer exists."""
    plan: Callable[[Any, datetime, Sequence[ObjectRef]], Planned]
    """Computes the plan. Pure; runs in a worker thread. The refs are the objects to explain."""
    report: Callable[[Any, Plan, Outcome, datetime], Report]
    """Computes statuses, events and metrics of a pass from its snapshot, plan and outcome. Pure; runs in a worker
    thread."""
    rbac: tuple[Rule, ...]
    aggregates: tuple[Aggregate, ...] = ()
    """Aggregates over the watched kinds."""
    managed_nodes: Callable[[Any], int] = lambda _snapshot: 0
    """Number of managed nodes in a snapshot, the base of the brake's percentage."""
    metrics: Callable[[Metrics], MetricsRecorder] | None = None
    """Registers the capability's own metrics."""
    replaces: Callable[[View, datetime], PeerOperator | None] | None = None
    """Detects whether the operator that this capability replaces is still running."""
    is_sharded: bool = False
    """Shard the keys over replicas by a Lease per key (`runtime.sharding`). Otherwise one leader does all the work."""
    plans_inline: Callable[[Key], bool] = lambda _key: False
    """Keys that take a fraction of a millisecond to plan and report, whatever the fleet size. They are planned on the
    event loop, since a thread hop would cost more."""
    roots: Roots = Roots()
    explain: Explain = field(default_factory=Explain)
    admission: Admission = Admission()
    remote: Remote | None = None
    dynamic: Dynamic | None = None
    background: Background | None = None
    surface: Surface | None = None

    def definitions(self) -> Sequence[Object]:
        """Return the CRDs of its kinds."""
        return [kind.definition() for kind in self.kinds]
