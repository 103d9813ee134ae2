"""Compile AffinityClasses once and match nodes against them.

A class cannot change its selectors, but it can be deleted and recreated under its name, and its status changes all the
time. A cache entry is therefore valid only for the same object, or for one with an equal spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from nodeyard.capabilities.affinity.planning.containment import CompiledClass, compile_class
from nodeyard.capabilities.affinity.types import AffinityClass, AffinityClassSpec
from nodeyard.kube.names import ZONE
from nodeyard.kube.node_affinity import NodeSelector
from nodeyard.kube.objects import ObjectMeta

MAX_CLASSES: Final = 1024
NO_ZONE: Final = ""
"""The zone of nodes without a zone label."""
_MATCHES_NOTHING: Final = NodeSelector()
_cache: dict[str, tuple[AffinityClass, CompiledClass]] = {}


def compiled(affinity_class: AffinityClass) -> CompiledClass:
    """Return the compiled form of a class, from the cache if its spec has not changed."""
    name = affinity_class.metadata.name
    cached = _cache.get(name)
    if cached is not None and cached[0] is affinity_class:
        return cached[1]
    if cached is not None and cached[0].spec == affinity_class.spec:
        made = cached[1]
    else:
        made = compile_class(affinity_class.spec.node_selector, terms_of(affinity_class.spec))
    if len(_cache) >= MAX_CLASSES:
        _cache.clear()
    _cache[name] = (affinity_class, made)
    return made


def terms_of(spec: AffinityClassSpec) -> NodeSelector | None:
    """Return the required terms of a class; None if it has none. Malformed terms match no node."""
    if spec.node_affinity is None or spec.node_affinity.required is None:
        return None
    try:
        return msgspec.convert(spec.node_affinity.required, NodeSelector)
    except msgspec.ValidationError:
        return _MATCHES_NOTHING


def is_in_class(compiled: CompiledClass, node: ObjectMeta) -> bool:
    return compiled.matches(node.labels, node.name)


def count_by_zone(compiled: CompiledClass, nodes: Iterable[ObjectMeta]) -> dict[str, int]:
    """Count the nodes of the class in each zone that has any, sorted by zone name."""
    counts = Counter(node.labels.get(ZONE, NO_ZONE) for node in nodes if is_in_class(compiled, node))
    return dict(sorted(counts.items()))
