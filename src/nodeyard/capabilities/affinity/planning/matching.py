"""The nodes of a class: which there are, and how many in each zone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from nodeyard.capabilities.affinity.planning.containment import CompiledClass
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import ObjectMeta

NO_ZONE = ""
"""Stands for the zone of nodes that have none."""


def is_in_class(compiled: CompiledClass, node: ObjectMeta) -> bool:
    return compiled.matches(node.labels, node.name)


def count_by_zone(compiled: CompiledClass, nodes: Iterable[ObjectMeta]) -> dict[str, int]:
    """Nodes of the class in each zone that has any, zones in order of their names."""
    counts = Counter(node.labels.get(ZONE, NO_ZONE) for node in nodes if is_in_class(compiled, node))
    return dict(sorted(counts.items()))
