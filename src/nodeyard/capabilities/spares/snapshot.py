"""What may influence the decision about all templates, frozen, and how it is collected from the cache.

Pods are kept only for nodes whose emptiness matters: spares, where a template asks for empty ones, and the nodes of
templates that give nodes back. Whether pods are watched at all is said by `needs_pods`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.client.decoding import Malformed
from nodeyard.kube.names import MIRROR_POD, MIRRORED_CLUSTER, MIRRORED_NODE, POOL_DRAINING
from nodeyard.kube.objects import Node, Pod
from nodeyard.runtime.capability import View

_FINISHED = ("Succeeded", "Failed")
_TREES = "clustertree"


@dataclass(frozen=True)
class SparesSnapshot:
    nodes: Sequence[Node] = ()
    """By name."""
    templates: Sequence[NodeTemplate] = ()
    """By name."""
    pods: Mapping[str, Sequence[Pod]] | None = field(default_factory=dict)
    """The workload of the nodes that matter, by node; None while pods are not known."""
    malformed: Mapping[str, Malformed] = field(default_factory=dict)
    """Templates that did not decode, by name: they and their nodes are left alone."""


def collect(view: View, _key: str, _now: datetime) -> SparesSnapshot:
    nodes: Sequence[Node] = view.all("Node")
    templates: Sequence[NodeTemplate] = view.all(names.KIND)
    malformed = {name: each for (_namespace, name), each in view.aside(names.KIND).items()}
    if malformed:
        # One that was understood once is no longer what it was then.
        templates = [template for template in templates if template.name not in malformed]
    return SparesSnapshot(nodes, templates, _pods(view, nodes, templates), malformed)


def needs_pods(templates: Iterable[NodeTemplate]) -> bool:
    return any(template.spec.eligibility.require_empty or template.releases for template in templates)


def _pods(view: View, nodes: Iterable[Node], templates: Sequence[NodeTemplate]) -> Mapping[str, Sequence[Pod]] | None:
    if not needs_pods(templates):
        return {}
    if not view.is_synced("Pod"):
        return None
    asks_for_empty = any(template.spec.eligibility.require_empty for template in templates)
    givers = {template.name for template in templates if template.releases}
    found: dict[str, Sequence[Pod]] = {}
    for node in nodes:
        owner = template_of(node)
        if owner in givers or (owner is None and asks_for_empty and is_spare(node)):
            name = node.metadata.name
            if pods := [pod for pod in view.indexed("Pod", names.PODS_BY_NODE, name) if is_workload(pod)]:
                found[name] = pods
    return found


def is_workload(pod: Pod) -> bool:
    """Whether the pod keeps its node from being empty: not a DaemonSet's, not a static one, not finished."""
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "DaemonSet":
        return False
    return MIRROR_POD not in pod.metadata.annotations and pod.status.phase not in _FINISHED


def is_spare(node: Node) -> bool:
    """By the taint, as the design says, or by a label that is not merely ours; never one that has an owner."""
    labels = node.metadata.labels
    if names.TEMPLATE_LABEL in labels:
        return False
    if has_spare_taint(node):
        return True
    return labels.get(names.SPARE_LABEL) == names.TRUE and names.LABELLED not in node.metadata.annotations


def has_spare_taint(node: Node) -> bool:
    return any(taint.key == names.SPARE_TAINT for taint in node.spec.taints)


def is_ready(node: Node) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)


def template_of(node: Node) -> str | None:
    """The template that a node names. A mirrored one names none: its labels are about the leaf that it mirrors."""
    named = node.metadata.labels.get(names.TEMPLATE_LABEL)
    return None if named is not None and owner_elsewhere(node) == _TREES else named


def owner_elsewhere(node: Node) -> str:
    """The capability that has this node by its own keys; empty where none has."""
    labels, annotations = node.metadata.labels, node.metadata.annotations
    if MIRRORED_NODE in labels or MIRRORED_CLUSTER in annotations:
        return _TREES
    return "pools" if POOL_DRAINING in annotations else ""
