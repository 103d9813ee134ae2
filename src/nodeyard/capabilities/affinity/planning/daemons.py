"""Pods of a DaemonSet: they are made for one node each, and say so by its name.

The controller of DaemonSets puts the name where the template's required terms were, so what a class asked for by node
affinity is not on the pod any more. Such a pod is inside where the node is, by the labels that it has now: when these
change, the controller looks at the template again and takes the pod away. Nobody does that for other pods, so to them
a node's name is no excuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from nodeyard.capabilities.affinity.planning.containment import CompiledClass, Inside, Verdict, contains
from nodeyard.kube.node_affinity import NODE_NAME_FIELD, NodeSelector, NodeSelectorTerm
from nodeyard.kube.objects import ObjectMeta

NodeOf: TypeAlias = Callable[[str], ObjectMeta | None]
"""A node by its name, as far as there is one."""
_DAEMON_SET: Final = "DaemonSet"
_INSIDE: Final = Inside()


def node_of_daemon(metadata: ObjectMeta, required: NodeSelector | None) -> str:
    """The one node that a DaemonSet has made this pod for; empty where no DaemonSet has."""
    if required is None or not any(each.controller and each.kind == _DAEMON_SET for each in metadata.owner_references):
        return ""
    named = {_node_of(term) for term in required.node_selector_terms}
    return named.pop() if len(named) == 1 else ""


def _node_of(term: NodeSelectorTerm) -> str:
    for field in term.match_fields:
        if (field.key, field.operator, len(field.values)) == (NODE_NAME_FIELD, "In", 1):
            return field.values[0]
    return ""


def contains_pod(
    compiled: CompiledClass, node_selector: Mapping[str, str], required: NodeSelector | None, node: ObjectMeta | None
) -> Verdict:
    """Like `contains`, of a pod that a DaemonSet has made for this node where there is one."""
    verdict = contains(compiled, node_selector, required)
    if isinstance(verdict, Inside) or node is None or not compiled.matches(node.labels, node.name):
        return verdict
    return _INSIDE
