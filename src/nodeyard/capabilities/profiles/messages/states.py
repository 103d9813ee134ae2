"""Messages about rollouts, and about the state of nodes, roles and profiles."""

from __future__ import annotations

from nodeyard.capabilities.profiles.messages.base import (
    NodeProfileMessage,
    NodeServiceMessage,
    ProfileMessage,
    ServiceMessage,
    capitalize,
    count,
)
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import UpdatePolicy
from nodeyard.plan.message import Message, listed

# rollouts


class Pinned(NodeProfileMessage, frozen=True):
    reason = Reason.PINNED

    def text(self) -> str:
        return (
            f"{capitalize(self.subject)} keeps an earlier generation of {self.named}: spec.profileUpdatePolicy is "
            f"{UpdatePolicy.MANUAL.value}"
        )


class BudgetSpent(NodeProfileMessage, frozen=True):
    """The rollout budget is spent. The number of unavailable objects is left out: the status of every waiting node
    would be written each time that one is done."""

    reason = Reason.BUDGET_SPENT
    limit: int
    total: int

    def text(self) -> str:
        return (
            f"{capitalize(self.subject)} waits: maxUnavailable allows {self.limit} of {self.total} service objects "
            f"with {self.named} to be unavailable at once"
        )


class Stalled(ServiceMessage, frozen=True, kw_only=True):
    reason = Reason.STALLED
    profile: str = ""
    object: str
    """Name of the object that stops the rollout."""

    def text(self) -> str:
        profile = f" of profile {self.profile}" if self.profile else ""
        return (
            f"Rollout{profile} for {self.service} stopped: service object {self.object} did not become available "
            "(status.hash.profile, condition Ready) within progressDeadlineSeconds. Check its service operator"
        )


class AwaitsReport(NodeServiceMessage, frozen=True):
    reason = Reason.ROLLING
    hash: str

    def text(self) -> str:
        return f"Waiting for {self.subject} to report config hash {self.hash} in status.hash.profile"


class AwaitsReady(NodeServiceMessage, frozen=True):
    reason = Reason.ROLLING

    def text(self) -> str:
        return f"Waiting for {self.subject} to report condition Ready=True"


class ProgressMessage(ProfileMessage, frozen=True, kw_only=True):
    """The progress of a profile's rollout."""

    updated: int
    total: int
    pinned: int = 0
    ignored: str = ""
    """Kind of the service objects whose reports are ignored."""

    @property
    def progress(self) -> str:
        updated = f"{self.updated} of {count(self.total, 'service object')} updated"
        pinned = f"; {self.pinned} keep an earlier generation (profileUpdatePolicy: Manual)" if self.pinned else ""
        ignored = f"; the rollout does not wait for status.hash.profile of {self.ignored} (progress: Ignore)"
        return f"{updated}{pinned}{ignored if self.ignored else ''}"


class RollingOut(ProgressMessage, frozen=True):
    reason = Reason.ROLLING

    def text(self) -> str:
        return f"{self.named} is rolling out: {self.progress}"


class RolledOut(ProgressMessage, frozen=True):
    reason = Reason.AVAILABLE

    def text(self) -> str:
        if not self.total:
            return f"{self.named} is not deployed on any node"
        return f"{self.named} is rolled out: {self.progress}"


class WithoutObjects(ProfileMessage, frozen=True):
    """The profile of a service that has no service objects."""

    reason = Reason.AVAILABLE
    nodes: int

    def text(self) -> str:
        return (
            f"{self.named} is chosen for {count(self.nodes, 'node')}; {self.service} has no service "
            "objects to roll out to"
        )


# nodes, roles and profiles


class NodeDeleting(Message, frozen=True):
    reason = Reason.DELETING
    node: str

    def text(self) -> str:
        return f"Node {self.node} is being deleted; the objects created for it are garbage-collected"


class Reconciled(Message, frozen=True):
    reason = Reason.RECONCILED
    node: str = ""

    def text(self) -> str:
        return f"Node {self.node} has the profiles chosen for it" if self.node else "In sync with the spec"


class ProgressIgnored(Message, frozen=True):
    reason = Reason.PROGRESS_IGNORED
    node: str
    services: tuple[str, ...]

    def text(self) -> str:
        return (
            f"Node {self.node} has the profiles chosen for it. The rollout does not wait for {listed(self.services)}: "
            "its operator reports no status.hash.profile, or spec.progress is Ignore"
        )


class RoleHasNodes(Message, frozen=True):
    reason = Reason.ROLE_HAS_NODES
    role: str
    nodes: int

    def text(self) -> str:
        nodes = count(self.nodes, "node")
        return f"Role {self.role} has {nodes}; its annotations apply to nodes that do not set their own"


class SetForNodes(ProfileMessage, frozen=True):
    """The choice of a role."""

    reason = Reason.SET_FOR_NODES
    nodes: int
    followers: int

    def text(self) -> str:
        return f"{self.named}, for {self.followers} of its {count(self.nodes, 'node')}"


class NoProfileOnRole(Message, frozen=True):
    reason = Reason.NO_PROFILE_ON_ROLE
    role: str
    key: str
    kind: str
    is_empty: bool = False

    def text(self) -> str:
        if self.is_empty:
            return (
                f"Annotation {self.key} on role {self.role} is empty: its nodes have no {self.kind} unless they set "
                "their own"
            )
        return (
            f"Role {self.role} has no annotation {self.key}: a node's own annotation or the nodeSelector of a "
            f"{self.kind} decides"
        )


class UsedByNode(Message, frozen=True):
    reason = Reason.USED_BY_NODE
    key: str

    def text(self) -> str:
        return f"The node names it in its annotation {self.key}"


class UsedByRole(Message, frozen=True):
    reason = Reason.USED_BY_ROLE
    key: str
    nodes: int
    followers: int

    def text(self) -> str:
        return f"The role names it in {self.key}, for {self.followers} of its {count(self.nodes, 'node')}"


class UsedBySelector(Message, frozen=True):
    reason = Reason.USED_BY_SELECTOR

    def text(self) -> str:
        return "Its spec.nodeSelector matches the node, and no annotation overrides it"
