"""Messages about AffinityClasses: their nodes, selectors, users and pods outside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodeyard.capabilities.affinity.messages.objects import NAMED, class_text
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message, listed


class ClassMessage(Message, frozen=True):
    affinity_class: str


class NodesMatch(Message, frozen=True):
    reason = Reason.NODES_MATCH
    zones: Mapping[str, int]
    """Matching nodes by zone; at least one."""

    def text(self) -> str:
        where = ", ".join(f"{number} in {zone or 'no zone'}" for zone, number in self.zones.items())
        return f"{counted(sum(self.zones.values()), 'node')} in the class: {where}"


class NoNodeMatches(Message, frozen=True):
    reason = Reason.NO_NODE_MATCHES

    def text(self) -> str:
        return "No node matches the class: its pods stay pending"


class LabelNodes(Message, frozen=True):
    """A remedy."""

    reason = Reason.LABEL_NODES

    def text(self) -> str:
        return "Label nodes so that they match the class"


class InvalidSelector(Message, frozen=True):
    reason = Reason.INVALID_SELECTOR
    errors: Sequence[str]

    def text(self) -> str:
        return "; ".join(self.errors)


class AllNodesMatch(ClassMessage, frozen=True):
    reason = Reason.ALL_NODES_MATCH

    def text(self) -> str:
        return f"{class_text(self.affinity_class)} requires nothing: it contains every node and restricts no pod"


class SelfAssignableLabel(ClassMessage, frozen=True):
    reason = Reason.SELF_ASSIGNABLE_LABEL
    keys: Sequence[str]

    def text(self) -> str:
        return (
            f"kubelets can set {listed(self.keys, NAMED)} on their own nodes: a compromised node can join "
            f"{class_text(self.affinity_class)}; for isolation, use labels under node-restriction.kubernetes.io/"
        )


class ClassInUse(ClassMessage, frozen=True):
    reason = Reason.AFFINITY_CLASS_IN_USE
    users: Sequence[str]
    """The first users, as `Kind namespace/name`."""
    count: int

    def text(self) -> str:
        return (
            f"{class_text(self.affinity_class)} is in use by {counted(self.count, 'object')}: "
            f"{_first(self.users, self.count)}; move them to another class first"
        )


class PodsOutside(ClassMessage, frozen=True):
    reason = Reason.PODS_OUTSIDE_CLASS
    pods: Sequence[str]
    """The first pods, as `namespace/name`."""
    count: int

    def text(self) -> str:
        which = f": {_first(self.pods, self.count)}" if self.pods else ""
        return f"{counted(self.count, 'running pod')} of {class_text(self.affinity_class)} could run outside it{which}"


def _first(items: Sequence[str], total: int) -> str:
    shown = items[:NAMED]
    return ", ".join(shown) + (f" and {total - len(shown)} more" if total > len(shown) else "")
