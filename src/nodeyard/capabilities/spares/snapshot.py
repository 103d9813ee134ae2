"""The planner's input, read from the informer caches.

Pods are included only where emptiness matters: on spares if a template has `requireEmpty`, and on nodes of templates
with `releasePolicy: Release`. `needs_pods` decides whether pods are watched at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.client.decoding import Malformed
from nodeyard.kube.drain import is_workload
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE, POOL_DRAINING
from nodeyard.kube.objects import Node, Pod
from nodeyard.runtime.capability import View

_TREES = "clustertree"


@dataclass(frozen=True)
class SparesSnapshot:
    nodes: Sequence[Node] = ()
    """By name."""
    templates: Sequence[NodeTemplate] = ()
    """By name."""
    pods: Mapping[str, Sequence[Pod]] | None = field(default_factory=dict)
    """Workload pods by node name; None until the Pod informer has synced."""
    malformed: Mapping[str, Malformed] = field(default_factory=dict)
    """Templates that cannot be decoded, by name; they and their nodes are left alone."""


def collect(view: View, _key: str, _now: datetime) -> SparesSnapshot:
    nodes: Sequence[Node] = view.all("Node")
    templates: Sequence[NodeTemplate] = view.all(names.KIND)
    malformed = {name: each for (_namespace, name), each in view.undecodable(names.KIND).items()}
    if malformed:
        # The cache may still have the last version that could be decoded.
        templates = [template for template in templates if template.name not in malformed]
    return SparesSnapshot(nodes, templates, _pods(view, nodes, templates), malformed)


def needs_pods(templates: Iterable[NodeTemplate]) -> bool:
    return any(template.spec.eligibility.require_empty or template.releases for template in templates)


def _pods(view: View, nodes: Iterable[Node], templates: Sequence[NodeTemplate]) -> Mapping[str, Sequence[Pod]] | None:
    if not needs_pods(templates):
        return {}
    if not view.is_synced("Pod"):
        return None
    needs_empty = any(template.spec.eligibility.require_empty for template in templates)
    releasing = {template.name for template in templates if template.releases}
    found: dict[str, Sequence[Pod]] = {}
    for node in nodes:
        owner = template_of(node)
        if owner in releasing or (owner is None and needs_empty and is_spare(node)):
            name = node.metadata.name
            if pods := [pod for pod in view.indexed("Pod", names.PODS_BY_NODE, name) if is_workload(pod)]:
                found[name] = pods
    return found


def is_spare(node: Node) -> bool:
    """Tell whether a node without owner has the spare taint, or a spare label that Nodeyard did not set."""
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
    """Return the template in the owner's label. Mirrored nodes have none: their labels describe the leaf node."""
    named = node.metadata.labels.get(names.TEMPLATE_LABEL)
    return None if named is not None and owner_elsewhere(node) == _TREES else named


def owner_elsewhere(node: Node) -> str:
    """Return the capability that manages this node, found by its keys; empty if none does."""
    labels, annotations = node.metadata.labels, node.metadata.annotations
    if MIRRORED_NODE in labels or MIRRORED_CLUSTER in annotations:
        return _TREES
    return "pools" if POOL_DRAINING in annotations else ""
