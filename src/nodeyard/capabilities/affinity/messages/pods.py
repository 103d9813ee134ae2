"""Messages about pods: their placement, their owners, and what would admit them.

The sentences for a class that is not found and for a missing nodeSelector are the design's, to the letter.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.affinity.messages.objects import NAMED, class_text
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.plan.message import Message, listed


class PodMessage(Message, frozen=True):
    subject: str
    """The pod or pod template, such as `pod tenant-acme/main-db-1`."""


class ClassedPodMessage(PodMessage, frozen=True):
    """A message about a pod whose application has a class."""

    affinity_class: str

    @property
    def _belongs(self) -> str:
        return f"{self.subject} belongs to application with {class_text(self.affinity_class)}"


# allowed


class InsideClass(ClassedPodMessage, frozen=True):
    reason = Reason.INSIDE_CLASS

    def text(self) -> str:
        return f"{self.subject} stays inside AffinityClass {self.affinity_class}"


class InsidePreviousClass(ClassedPodMessage, frozen=True):
    reason = Reason.INSIDE_PREVIOUS_CLASS
    previous: str
    application: str
    release: str

    def text(self) -> str:
        before = class_text(self.previous) if self.previous else "no class"
        return (
            f"{self.subject} fits the previous class, {before}: {self.application} is changing to "
            f"{class_text(self.affinity_class)}, and both are admitted until HelmRelease {self.release} is ready"
        )


class Unsatisfiable(PodMessage, frozen=True):
    reason = Reason.UNSATISFIABLE

    def text(self) -> str:
        return f"{self.subject} fits no node at all: its nodeSelector and its node affinity contradict each other"


class ApplicationWithoutClass(PodMessage, frozen=True):
    reason = Reason.APPLICATION_WITHOUT_CLASS
    application: str

    def text(self) -> str:
        return f"{self.subject} belongs to {self.application}, which has no AffinityClass: it may run anywhere"


class UnownedAllowed(PodMessage, frozen=True):
    reason = Reason.UNOWNED_ALLOWED

    def text(self) -> str:
        return f"{self.subject} belongs to no application: it may run anywhere"


class NamespaceExempt(Message, frozen=True):
    reason = Reason.NAMESPACE_EXEMPT
    namespace: str

    def text(self) -> str:
        return f"Pods in namespace {self.namespace} are never checked"


# outside its class


class MissingNodeSelector(ClassedPodMessage, frozen=True):
    reason = Reason.MISSING_NODE_SELECTOR
    key: str
    value: str
    has: str | None = None
    """The value that the pod has instead."""
    node: str = ""
    """A node that it could run on."""

    def text(self) -> str:
        has = "" if self.has is None else f"its nodeSelector has {self.key}={self.has}"
        reaches = f"it could run on node {self.node}" if self.node else ""
        details = " and ".join(filter(None, (has, reaches)))
        return (
            f"{self._belongs} but missing required nodeSelector {self.key}={self.value}"
            f"{'; ' if details else ''}{details}"
        )


class OutsideClass(ClassedPodMessage, frozen=True):
    reason = Reason.OUTSIDE_CLASS
    example: str
    """Labels of a node that it could run on."""
    node: str = ""

    def text(self) -> str:
        node = f", or on node {self.node}" if self.node else ""
        return f"{self._belongs} but could run outside it, for example on a node with {self.example}{node}"


class NodeNameOutsideClass(ClassedPodMessage, frozen=True):
    reason = Reason.NODE_NAME_OUTSIDE_CLASS
    node: str
    is_known: bool

    def text(self) -> str:
        which = "is outside it" if self.is_known else "is not a known node"
        return f"{self._belongs} but spec.nodeName {self.node} {which}: remove it, or name a node of the class"


class TooComplex(ClassedPodMessage, frozen=True):
    reason = Reason.TOO_COMPLEX

    def text(self) -> str:
        return (
            f"{self._belongs} but its node affinity is too complex to check against it: use fewer terms and values, or "
            "a nodeSelector"
        )


class PodClassMissing(Message, frozen=True):
    reason = Reason.AFFINITY_CLASS_NOT_FOUND
    affinity_class: str

    def text(self) -> str:
        return f"{class_text(self.affinity_class)} not found"


class ReleaseClassNotAllowed(ClassedPodMessage, frozen=True):
    """The class is only a label of the release, and the tenant does not allow it."""

    reason = Reason.RELEASE_CLASS_NOT_ALLOWED
    application: str
    release: str
    tenant: str
    allowed: Sequence[str]

    def text(self) -> str:
        return (
            f"{self.subject} belongs to HelmRelease {self.release} with {class_text(self.affinity_class)}, which no "
            f"{self.application} has recorded, and tenant {self.tenant} allows "
            f"{listed(self.allowed, NAMED) or 'no class'}"
        )


# pods that have to fit one of the allowed classes


class _Unclassed(PodMessage, frozen=True):
    tenant: str
    allowed: Sequence[str]

    @property
    def _classes(self) -> str:
        named = listed(self.allowed, NAMED)
        return f"one of the AffinityClasses {named}" if named else "an AffinityClass, but allows none"


class ClasslessRefused(_Unclassed, frozen=True):
    """Its application has no class."""

    reason = Reason.APPLICATION_WITHOUT_CLASS_REFUSED
    application: str

    def text(self) -> str:
        return (
            f"{self.subject} belongs to {self.application}, which has no AffinityClass, and tenant {self.tenant} "
            f"requires its pods to fit {self._classes}"
        )


class UnbackedRefused(_Unclassed, frozen=True):
    """Its release has no class, and no record of the application that it names."""

    reason = Reason.APPLICATION_WITHOUT_CLASS_REFUSED
    application: str
    release: str

    def text(self) -> str:
        return (
            f"{self.subject} belongs to HelmRelease {self.release}, which has no AffinityClass and no record on "
            f"{self.application}, and tenant {self.tenant} requires its pods to fit {self._classes}"
        )


class UnownedRefused(_Unclassed, frozen=True):
    reason = Reason.UNOWNED_REFUSED

    def text(self) -> str:
        return (
            f"{self.subject} belongs to no application, and tenant {self.tenant} requires such pods to fit "
            f"{self._classes}"
        )


# owners


class _UnreadOwner(PodMessage, frozen=True):
    owner: str
    error: str

    @property
    def _unread(self) -> str:
        error = self.error or "unknown error"
        return f"{self.subject} may belong to an application: its owner {self.owner} cannot be read: {error}"


class OwnerUnknown(_UnreadOwner, frozen=True):
    """The pod is outside a class that it may have."""

    reason = Reason.OWNER_UNKNOWN
    affinity_class: str = ""
    """Empty if pods of no application are denied."""

    def text(self) -> str:
        could = "pods of no application are denied here"
        if self.affinity_class:
            could = f"it may have {class_text(self.affinity_class)}, which it is outside of"
        return f"{self._unread}, and {could}"


class OwnerForbidden(OwnerUnknown, frozen=True):
    reason = Reason.OWNER_FORBIDDEN


class OwnerUnknownButHarmless(_UnreadOwner, frozen=True):
    """The pod is inside every class that it may have."""

    reason = Reason.OWNER_UNKNOWN

    def text(self) -> str:
        return f"{self._unread}; it would be allowed whichever it is"


class OwnerForbiddenButHarmless(OwnerUnknownButHarmless, frozen=True):
    reason = Reason.OWNER_FORBIDDEN


class OwnersAmbiguous(PodMessage, frozen=True):
    reason = Reason.OWNERS_AMBIGUOUS
    releases: Sequence[str]

    def text(self) -> str:
        return (
            f"{self.subject} belongs to several HelmReleases and must fit the classes of all of them: "
            f"{', '.join(self.releases)}"
        )


class DeadEndMessage(Message, frozen=True):
    """An owner that leads to no application."""

    owner: str


class OwnerMissing(DeadEndMessage, frozen=True):
    reason = Reason.OWNER_MISSING

    def text(self) -> str:
        return f"{self.owner} does not exist"


class OwnerReplaced(DeadEndMessage, frozen=True):
    reason = Reason.OWNER_REPLACED

    def text(self) -> str:
        return f"{self.owner} is gone: an object of the same name has another uid"


class OwnerCycle(DeadEndMessage, frozen=True):
    reason = Reason.OWNER_CYCLE

    def text(self) -> str:
        return f"{self.owner} owns itself through a cycle of owner references"


class OwnerUnread(DeadEndMessage, frozen=True):
    reason = Reason.OWNER_UNKNOWN
    error: str

    def text(self) -> str:
        return f"{self.owner} cannot be read: {self.error or 'unknown error'}"


class OwnerUnreadForbidden(OwnerUnread, frozen=True):
    reason = Reason.OWNER_FORBIDDEN


# remedies


class ApplySchedulingInChart(Message, frozen=True):
    reason = Reason.APPLY_SCHEDULING_IN_CHART

    def text(self) -> str:
        return "Apply _scheduling to the pods in the chart"


class GrantRead(Message, frozen=True):
    reason = Reason.GRANT_READ

    def text(self) -> str:
        return (
            "Grant get, list and watch on the owner's kind: set affinity.ownerKinds of the chart, or create a "
            'ClusterRole with the label rbac.nodeyard.dev/aggregate-to-affinity: "true"'
        )
