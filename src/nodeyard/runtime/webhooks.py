"""The admission webhooks of a capability: request, response, and the rules that select requests.

    def review(request: AdmissionRequest, view: View) -> AdmissionResponse:
        if request.operation == "DELETE" and view.indexed("Pod", "class", request.name):
            return denied(f"{request.name} is in use")
        return allowed()

    deletions = WebhookRule("cozystack.io", ("affinityclasses",), operations=("DELETE",))
    Webhook("classes", rules=(deletions,), review=review)

A review is pure and fast: it decides from the request and the cache, on the event loop, and never waits. If the cache
lacks an object, it returns a `Lookup` instead. The named objects are read from the API server, and the review is called
again with the answers.

    match request.answers.get(owner):
        case None: return Lookup((owner,))
        case Found(object): ...
        case Missing(): ...              the server was just asked, and the object does not exist
        case Unreadable(reason): ...     it is unknown whether the object exists
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

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
INVALID_CODE: Final = 422

StructT = TypeVar("StructT", bound=msgspec.Struct)


class User(NullableStruct, frozen=True):
    """The user of the request, as authenticated by the API server."""

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
    """Returned instead of a response: read these objects and call the review again with the answers.

    The namespace of an owner reference is that of the dependent; it is ignored for cluster-scoped kinds. Answers of
    earlier rounds stay available. The uid is not compared: any object of that name is `Found`. References from users
    may be passed unchecked: an invalid one is missing or not served.
    """

    refs: tuple[ObjectRef, ...]

    def __post_init__(self) -> None:
        if not self.refs or any(ref.cluster for ref in self.refs):
            raise ValueError(f"{self.refs}: a lookup needs objects of the host cluster")


@dataclass(frozen=True)
class Found:
    """The metadata of the object."""

    object: PartialObject


@dataclass(frozen=True)
class Missing:
    """The object does not exist: the server serves the kind and was just asked."""


class Cause(Enum):
    """The cause why an object could not be read; also the label value of a metric."""

    FORBIDDEN = "forbidden"
    NOT_SERVED = "not_served"
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True)
class Unreadable:
    """An object that could not be read; it may or may not exist."""

    reason: str
    """For users: names the missing right and the remedy."""
    cause: Cause = Cause.ERROR


LookedUp: TypeAlias = Found | Missing | Unreadable

if TYPE_CHECKING:
    Answers: TypeAlias = Mapping[ObjectRef, LookedUp]
else:
    # The decoder ignores this field: answers do not come from the wire.
    Answers = None


class AdmissionRequest(PlainStruct, frozen=True):
    """One admission request: `AdmissionReview.request`."""

    uid: str
    operation: Operation
    kind: GroupVersionKind = GroupVersionKind()
    resource: GroupVersionResource = GroupVersionResource()
    subresource: str = msgspec.field(default="", name="subResource")
    name: str = ""
    """Empty for a CREATE with generateName."""
    namespace: str = ""
    user: User = msgspec.field(default=User(), name="userInfo")
    object: Object | None = None
    """None on DELETE."""
    old_object: Object | None = None
    """None on CREATE."""
    dry_run: bool = False
    options: Object | None = None
    answers: Answers = msgspec.field(default_factory=dict)
    """The answers of the lookups, by the reference as it was given; empty at first."""

    @property
    def subject(self) -> Object:
        """The object of the request: the new one, or the old one on DELETE."""
        return self.object or self.old_object or {}


@dataclass(frozen=True)
class AdmissionResponse:
    """The response; create it with `allowed`, `denied` and `patched`."""

    is_allowed: bool
    message: str = ""
    code: int = FORBIDDEN_CODE
    reason: str = "Forbidden"
    warnings: tuple[str, ...] = ()
    """Shown to the client, whether the request is allowed or denied."""
    object: Object | None = None
    """The object after mutation; the JSON patch is computed from it."""
    audit: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the audit event."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Labels for the capability's own metrics (`ReviewRecorder`): decision, class, rule."""
    events: tuple[Event, ...] = ()
    """Events to record, unless the request is a dry run. Only for objects with a name: nobody looks for Events of an
    object that was never stored."""

    def with_warnings(self, *warnings: str) -> AdmissionResponse:
        """Return the response with these warnings added."""
        return replace(self, warnings=(*self.warnings, *warnings))

    def with_audit_annotations(self, **annotations: str) -> AdmissionResponse:
        return replace(self, audit={**self.audit, **annotations})

    def with_facts(self, **facts: str) -> AdmissionResponse:
        return replace(self, facts={**self.facts, **facts})

    def with_events(self, *events: Event) -> AdmissionResponse:
        return replace(self, events=(*self.events, *events))


def allowed(*warnings: str) -> AdmissionResponse:
    return AdmissionResponse(True, warnings=warnings)


def denied(message: str, *, code: int = FORBIDDEN_CODE, reason: str = "Forbidden") -> AdmissionResponse:
    """Deny; kubectl shows `admission webhook "<name>" denied the request: <message>`."""
    return AdmissionResponse(False, message, code, reason)


def patched(object: Object, *warnings: str) -> AdmissionResponse:
    """Allow with this object. It must be a new value; the reviewed object is never changed in place."""
    return AdmissionResponse(True, warnings=warnings, object=object)


def decode(obj: Object | None, kind: type[StructT]) -> StructT | None:
    """Decode an object; None if it does not decode. The plan then reports it as blocked, with the error."""
    try:
        return None if obj is None else msgspec.convert(obj, kind)
    except msgspec.ValidationError:
        return None


def invalid(faults: Iterable[str]) -> AdmissionResponse:
    return denied("; ".join(faults), code=INVALID_CODE, reason="Invalid")


def warn_existing(fault: str) -> str:
    """Return the warning about an existing fault, which must not block other changes of the object."""
    return f"{fault}; allowed because it was already so before this change"


def ratchet(fresh: Sequence[str], standing: Iterable[str], warnings: Iterable[str] = ()) -> AdmissionResponse:
    """Deny if the change introduces faults (`fresh`); else allow, with a warning per existing fault (`standing`).

    This is ratcheting validation, as of CRDs: a fault that was there before must not block other changes.
    """
    return invalid(fresh) if fresh else allowed(*map(warn_existing, standing), *warnings)


@dataclass(frozen=True)
class WebhookRule:
    """Selects the requests that a webhook reviews."""

    group: str
    """Empty for the core group."""
    resources: tuple[str, ...]
    """Plurals, or with a subresource as `pods/eviction`. `*` selects all resources of a group that is not built in,
    without subresources."""
    versions: tuple[str, ...] = ("*",)
    operations: tuple[Operation, ...] = ("CREATE", "UPDATE")
    scope: Literal["*", "Namespaced", "Cluster"] = "*"

    def __post_init__(self) -> None:
        """Reject rules with which a bug of ours could stop a whole cluster."""
        parents = [resource.partition("/")[0] for resource in self.resources]
        if self.group == "*" or ("*" in parents and is_built_in(self.group)):
            raise ValueError(f"{self.group}/{self.resources}: a webhook must name its groups, and the resources of "
                             "built-in groups")  # fmt: skip
        if self.group == "coordination.k8s.io" and any(each.partition("/")[0] == "leases" for each in self.resources):
            raise ValueError(
                "webhooks must not intercept leases: leader elections and node heartbeats would depend on them"
            )


@dataclass(frozen=True)
class MatchCondition:
    """A CEL expression over `request`, `object`, `oldObject` and `authorizer` that must be true for a call."""

    name: str
    expression: str


@dataclass(frozen=True)
class Webhook:
    """One webhook of a capability, `<name>.<capability>.nodeyard.dev`.

    System namespaces and the operator's own are excluded from every webhook, whatever `namespace_selector` adds.
    """

    name: str
    rules: tuple[WebhookRule, ...]
    review: Callable[[AdmissionRequest, View], AdmissionResponse | Lookup]
    mutates: bool = False
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """Applies when the webhook does not answer. Use Fail only if a wrong object costs more than a denied request."""
    timeout_seconds: int = TIMEOUT_SECONDS
    namespace_selector: Object = field(default_factory=dict)
    object_selector: Object = field(default_factory=dict)
    match_conditions: tuple[MatchCondition, ...] = ()
    match_policy: Literal["Equivalent", "Exact"] = "Equivalent"
    reinvocation: Literal["Never", "IfNeeded"] = "Never"
    sees_own_writes: bool = False
    """Also review the operator's own writes. Off by default, since the webhook could block its own operator."""
    further: Callable[[View], Iterable[WebhookRule]] | None = None
    """Returns further rules that depend on the view, for kinds that users declare. Called repeatedly; the same view
    must give the same rules in the same order."""

    def __post_init__(self) -> None:
        if faults := label_faults(self.name):
            raise ValueError(f'webhook "{self.name}": {faults[0]}')
        if not 1 <= self.timeout_seconds <= MAX_TIMEOUT_SECONDS:
            raise ValueError(f"webhook {self.name}: timeout_seconds must be 1 to {MAX_TIMEOUT_SECONDS}")

    def as_of(self, view: View) -> Webhook:
        """Return the webhook with its current rules."""
        return self if self.further is None else replace(self, rules=(*self.rules, *self.further(view)))

    def full_name(self, capability: str) -> str:
        return f"{self.name}{suffix(capability)}"

    def path(self, capability: str) -> str:
        return f"/{'mutate' if self.mutates else 'validate'}/{capability}/{self.name}"


def is_built_in(group: str) -> bool:
    """Return True for a group of Kubernetes itself: without a dot, or below k8s.io (`*.x-k8s.io` is for others)."""
    return "." not in group or group.endswith(".k8s.io")


def suffix(capability: str) -> str:
    """Return the suffix of the capability's webhook names."""
    return f".{capability}.{GROUP}"


def configuration_name(capability: str) -> str:
    """Return the name of the capability's webhook configurations."""
    return f"nodeyard-{capability}"
