"""The planner's input, and what a Node says about its place: spare, of a template, or managed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.client.decoder import Malformed
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE, POOL_DRAINING
from nodeyard.kube.objects import Node, Pod

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
