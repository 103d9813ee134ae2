"""What a capability says about requests before they are stored: the question, the answer, and which questions it gets.

    def review(review: Review, view: View) -> Verdict:
        if review.operation == "DELETE" and view.indexed("Pod", "class", review.name):
            return denied(f"{review.name} is in use")
        return allowed()

    Webhook("classes", rules=(Intercepts("cozystack.io", ("affinityclasses",), operations=("DELETE",)),), review=review)

A review is pure and quick: it decides from the request and from what is cached, on the event loop, and never waits.
Where the cache does not have what it needs it answers with a `Lookup` instead: the objects named are read from the API
server, and it is asked again with what became of each.

    match review.answers.get(owner):
        case None: return Lookup((owner,))
        case Found(object): ...
        case Missing(): ...              the server was asked just now, and there is none
        case Unreadable(reason): ...     it may be there or not
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from nodeyard.kube.json import Object
from nodeyard.kube.names import GROUP, label_faults
from nodeyard.kube.objects import NullableStruct, PartialObject, PlainStruct, Slice
from nodeyard.plan.model import ObjectRef

if TYPE_CHECKING:
    from nodeyard.runtime.capability import Event, View

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
TIMEOUT_SECONDS: Final = 5
MAX_TIMEOUT_SECONDS: Final = 30
FORBIDDEN_CODE: Final = 403


class User(NullableStruct, frozen=True):
    """Who asks, as the API server knows them."""

    username: str = ""
    uid: str = ""
    groups: Slice[str] = ()


class GroupVersionResource(PlainStruct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class GroupVersionKind(PlainStruct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Lookup:
    """Instead of a verdict: read these from the API server, and ask again with the answers.

    Of an owner reference the namespace is that of the object which has it; where the kind has none it is left out. What
    an earlier round has answered is still among the answers of the next. The uid is not compared: an object of that
    name is `Found`, whichever it is. Whatever stands in a reference may be asked: nonsense is missing or not served.
    """

    refs: tuple[ObjectRef, ...]

    def __post_init__(self) -> None:
        if not self.refs or any(ref.cluster for ref in self.refs):
            raise ValueError(f"{self.refs}: a lookup is of objects of our own cluster")


@dataclass(frozen=True)
class Found:
    """The object as it is, by its metadata."""

    object: PartialObject


@dataclass(frozen=True)
class Missing:
    """The server has the kind, and was asked just now: it has no such object."""


class Cause(Enum):
    """Why an object could not be read; the label of a metric."""

    FORBIDDEN = "forbidden"
    NOT_SERVED = "not_served"
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True)
class Unreadable:
    """It cannot be told whether there is such an object."""

    reason: str
    """For people: of a right that is missing, which, and what to do."""
    cause: Cause = Cause.ERROR


LookedUp: TypeAlias = Found | Missing | Unreadable

if TYPE_CHECKING:
    Answers: TypeAlias = Mapping[ObjectRef, LookedUp]
else:
    # What the decoder accepts of the wire: they are ours to give.
    Answers = None


class Review(PlainStruct, frozen=True):
    """One request, as the API server puts it: `AdmissionReview.request`."""

    uid: str
    operation: Operation
    kind: GroupVersionKind = GroupVersionKind()
    resource: GroupVersionResource = GroupVersionResource()
    subresource: str = msgspec.field(default="", name="subResource")
    name: str = ""
    """Empty for a CREATE whose name the server has not made yet."""
    namespace: str = ""
    user: User = msgspec.field(default=User(), name="userInfo")
    object: Object | None = None
    """None on DELETE."""
    old_object: Object | None = None
    """None on CREATE."""
    dry_run: bool = False
    options: Object | None = None
    answers: Answers = msgspec.field(default_factory=dict)
    """What became of the objects that were to be looked up, by the ref as it was given; empty at first."""

    @property
    def subject(self) -> Object:
        """The object the request is about: as it shall be, or as it is where it shall go."""
        return self.object or self.old_object or {}


@dataclass(frozen=True)
class Verdict:
    """The answer; made by `allowed`, `denied` and `patched`."""

    is_allowed: bool
    message: str = ""
    code: int = FORBIDDEN_CODE
    reason: str = "Forbidden"
    warnings: tuple[str, ...] = ()
    """Shown to whoever asked, whether allowed or not."""
    object: Object | None = None
    """What a mutating webhook makes of the object; the patch is computed from it."""
    audit: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the audit event."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """For the capability's own metrics (`MeasuresReviews`): what was decided, of which class, by which rule."""
    events: tuple[Event, ...] = ()
    """Recorded, unless the request is a dry run. Of objects that have a name: one that was not yet stored has no Events
    that anybody would look for."""

    def warning(self, *warnings: str) -> Verdict:
        """The same, and these warnings too."""
        return replace(self, warnings=(*self.warnings, *warnings))

    def audited(self, **annotations: str) -> Verdict:
        return replace(self, audit={**self.audit, **annotations})

    def stating(self, **facts: str) -> Verdict:
        return replace(self, facts={**self.facts, **facts})

    def recording(self, *events: Event) -> Verdict:
        return replace(self, events=(*self.events, *events))


def allowed(*warnings: str) -> Verdict:
    return Verdict(True, warnings=warnings)


def denied(message: str, *, code: int = FORBIDDEN_CODE, reason: str = "Forbidden") -> Verdict:
    """Refused; kubectl shows `admission webhook "<name>" denied the request: <message>`."""
    return Verdict(False, message, code, reason)


def patched(object: Object, *warnings: str) -> Verdict:
    """Allowed, as this object; it must be a new value, the reviewed one is never changed in place."""
    return Verdict(True, warnings=warnings, object=object)


@dataclass(frozen=True)
class Intercepts:
    """Requests that a webhook is asked about."""

    group: str
    """Empty for the core group."""
    resources: tuple[str, ...]
    """Plurals; with a subresource `pods/eviction`. `*` for all of a group that is not built in, but no subresources."""
    versions: tuple[str, ...] = ("*",)
    operations: tuple[Operation, ...] = ("CREATE", "UPDATE")
    scope: Literal["*", "Namespaced", "Cluster"] = "*"

    def __post_init__(self) -> None:
        """What would let a fault of ours stop a whole cluster cannot be declared."""
        parents = [resource.partition("/")[0] for resource in self.resources]
        if self.group == "*" or ("*" in parents and is_built_in(self.group)):
            raise ValueError(f"{self.group}/{self.resources}: a webhook names its groups, and of groups that are built "
                             "in the resources too")  # fmt: skip
        if self.group == "coordination.k8s.io" and any(each.partition("/")[0] == "leases" for each in self.resources):
            raise ValueError("leases are never intercepted: elections and node heartbeats must not depend on a webhook")


@dataclass(frozen=True)
class MatchCondition:
    """A CEL expression over `request`, `object`, `oldObject` and `authorizer` that has to hold for a call."""

    name: str
    expression: str


@dataclass(frozen=True)
class Webhook:
    """One webhook of a capability, `<name>.<capability>.nodeyard.dev`.

    Namespaces of the system and our own are left out of every webhook, whatever `namespace_selector` adds.
    """

    name: str
    rules: tuple[Intercepts, ...]
    review: Callable[[Review, View], Verdict | Lookup]
    mutates: bool = False
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """What the API server does when we cannot answer. Fail only where a wrong object costs more than a refused one."""
    timeout_seconds: int = TIMEOUT_SECONDS
    namespace_selector: Object = field(default_factory=dict)
    object_selector: Object = field(default_factory=dict)
    match_conditions: tuple[MatchCondition, ...] = ()
    match_policy: Literal["Equivalent", "Exact"] = "Equivalent"
    reinvocation: Literal["Never", "IfNeeded"] = "Never"
    sees_own_writes: bool = False
    """Whether it is asked about what the operator itself writes; by default not, or it could stand in its own way."""
    further: Callable[[View], Iterable[Intercepts]] | None = None
    """What it is asked about beyond `rules`, where only the view tells: kinds that users declare. Looked at again and
    again; the same view gives the same rules in the same order."""

    def __post_init__(self) -> None:
        if faults := label_faults(self.name):
            raise ValueError(f'webhook "{self.name}": {faults[0]}')
        if not 1 <= self.timeout_seconds <= MAX_TIMEOUT_SECONDS:
            raise ValueError(f"webhook {self.name}: a timeout is 1 to {MAX_TIMEOUT_SECONDS} seconds")

    def as_of(self, view: View) -> Webhook:
        """With the rules that there are now."""
        return self if self.further is None else replace(self, rules=(*self.rules, *self.further(view)))

    def full_name(self, capability: str) -> str:
        return f"{self.name}{suffix(capability)}"

    def path(self, capability: str) -> str:
        return f"/{'mutate' if self.mutates else 'validate'}/{capability}/{self.name}"


def is_built_in(group: str) -> bool:
    """Whether Kubernetes itself serves the group: without a dot, or below k8s.io (which others may only use when it was
    reviewed, `*.x-k8s.io` is for them)."""
    return "." not in group or group.endswith(".k8s.io")


def suffix(capability: str) -> str:
    """How the names of a capability's webhooks end."""
    return f".{capability}.{GROUP}"


def configuration_name(capability: str) -> str:
    """Of its webhook configurations on the server."""
    return f"nodeyard-{capability}"
