"""AffinityClasses as they are asked, each compiled once.

A class's selectors cannot be changed, but a class can be deleted and made again under its name, and its status changes
all the time: what is remembered under a name is good for the very object, or for one with an equal spec.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.capabilities.affinity.planning.containment import CompiledClass, compile_class
from nodeyard.capabilities.affinity.types import AffinityClass, AffinityClassSpec
from nodeyard.kube.node_affinity import NodeSelector

MOST: Final = 1024
_NOTHING: Final = NodeSelector()
_remembered: dict[str, tuple[AffinityClass, CompiledClass]] = {}


def compiled(affinity_class: AffinityClass) -> CompiledClass:
    name = affinity_class.metadata.name
    known = _remembered.get(name)
    if known is not None and known[0] is affinity_class:
        return known[1]
    if known is not None and known[0].spec == affinity_class.spec:
        made = known[1]
    else:
        made = compile_class(affinity_class.spec.node_selector, terms_of(affinity_class.spec))
    if len(_remembered) >= MOST:
        _remembered.clear()
    _remembered[name] = (affinity_class, made)
    return made


def terms_of(spec: AffinityClassSpec) -> NodeSelector | None:
    """The terms of a class; None where it has none. Terms that nobody can read match no node."""
    if spec.node_affinity is None or spec.node_affinity.required is None:
        return None
    try:
        return msgspec.convert(spec.node_affinity.required, NodeSelector)
    except msgspec.ValidationError:
        return _NOTHING
