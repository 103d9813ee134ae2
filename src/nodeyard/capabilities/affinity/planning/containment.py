"""Decide whether every node that a pod may run on is in its class.

Both sides are unions of boxes (`value_sets`): the nodeSelector with each required term, of the pod and of the
class. The pod is inside if each of its boxes lies in the union of the class's boxes, not necessarily in one of them:

    zone In [dc1, dc2]      inside   {zone=dc1} or {zone=dc2}, though in neither alone

Each key contributes a few sample values, each with a mask of the class's boxes that admit it. A
combination of values lies in the boxes whose bit is in all of its masks. A combination with no bit left is a
counterexample: a node that the pod may run on and that is outside the class. Combinations are built key by key, and
those with the same mask are merged. A combination with a bit that survives all remaining keys is inside and is dropped.
A pod in a single box of the class, and any class of one box, is therefore decided without combining.

The problem is coNP-hard in general. A pod that needs more than `MAX_COMBINATIONS`, or whose terms are larger than
`MAX_SIZE`, is `TooComplex`: the author of a pod cannot keep admission busy.

Classes are compiled once. A class cannot change its selectors, but it can be deleted and recreated under its name, and
its status changes all the time. A cache entry is therefore valid only for the same object, or for one with an equal
spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from operator import and_
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from nodeyard.capabilities.affinity.planning.value_sets import (
    NODE_NAME,
    Box,
    Choice,
    ClassKey,
    Value,
    boxes,
    class_keys,
    narrow_boxes,
)
from nodeyard.capabilities.affinity.types import AffinityClass, AffinityClassSpec
from nodeyard.kube.names import ZONE
from nodeyard.kube.node_affinity import NODE_NAME_FIELD, NodeMatcher, NodeSelector, NodeSelectorTerm, node_matcher
from nodeyard.kube.objects import ObjectMeta

MAX_COMBINATIONS: Final = 20_000
MAX_SIZE: Final = 10_000
"""Cost limit of a pod's terms: one per value and expression, ten per term, which is about their parsing cost."""
NodeOf: TypeAlias = Callable[[str], ObjectMeta | None]
"""Returns a node by its name, or None."""
_DAEMON_SET: Final = "DaemonSet"
_NO_BOX: Final[Box] = {}


@dataclass(frozen=True, slots=True)
class CompiledClass:
    """A class prepared for checks: compiled once, then shared by all requests."""

    node_selector: Mapping[str, str]
    has_terms: bool
    everything: int
    """One bit per box; zero if no node can be in the class."""
    keys: tuple[ClassKey, ...]
    matches: NodeMatcher = field(repr=False, compare=False)
    shapes: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)
    """Results of earlier checks by the shape of the pod."""


def compile_class(node_selector: Mapping[str, str], terms: NodeSelector | None) -> CompiledClass:
    """Compile a class; `terms` are its required node affinity, None if it has none."""
    selector = dict(sorted(node_selector.items()))
    made = list(boxes(selector, terms))
    return CompiledClass(
        node_selector=MappingProxyType(selector),
        has_terms=terms is not None,
        everything=(1 << len(made)) - 1,
        keys=class_keys(made),
        matches=node_matcher(selector, terms),
    )


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A node that the pod may run on and that is outside the class, by the keys that decide it."""

    labels: Mapping[str, Value]
    """None if the node lacks the label. Other keys may have any value that the pod allows."""
    node_name: str | None = None
    """Set if the class selects nodes by name."""


@dataclass(frozen=True, slots=True)
class Inside:
    is_vacuous: bool = False
    """The pod's requirements contradict each other: it fits no node, and so none outside the class."""


@dataclass(frozen=True, slots=True)
class Outside:
    counterexample: Counterexample
    missing: tuple[str, str] | None
    """The first label of the class's nodeSelector that the pod does not require; None if it requires all."""


@dataclass(frozen=True, slots=True)
class TooComplex:
    """The pod cannot be checked within the cost limits."""


Containment: TypeAlias = Inside | Outside | TooComplex

_INSIDE: Final = Inside()
_VACUOUS: Final = Inside(is_vacuous=True)
_TOO_COMPLEX: Final = TooComplex()


def contains(compiled: CompiledClass, node_selector: Mapping[str, str], required: NodeSelector | None) -> Containment:
    """Check that the class contains every node that a pod with this nodeSelector and affinity may run on."""
    if required is None:
        if not compiled.has_terms and compiled.node_selector.items() <= node_selector.items():
            return _INSIDE
        return _check_boxes(compiled, node_selector, (_NO_BOX,))
    if size_of(required) > MAX_SIZE:
        # Terms only narrow the nodeSelector: if that is inside already, they need not be parsed.
        by_selector = contains(compiled, node_selector, None)
        return by_selector if isinstance(by_selector, Inside) else _TOO_COMPLEX
    pod_boxes = list(narrow_boxes(node_selector, required))
    return _check_boxes(compiled, node_selector, pod_boxes) if pod_boxes else _VACUOUS


def size_of(required: NodeSelector) -> int:
    return sum(
        10 + sum(1 + len(expression.values) for expression in (*term.match_expressions, *term.match_fields))
        for term in required.node_selector_terms
    )


def _check_boxes(compiled: CompiledClass, node_selector: Mapping[str, str], pod_boxes: Sequence[Box]) -> Containment:
    search = _Search(compiled.everything)
    for box in pod_boxes:
        try:
            escape = search.escape({key.key: _choices(key, node_selector, box) for key in compiled.keys})
        except _Exhausted:
            return _TOO_COMPLEX
        if escape is not None:
            return _outside(compiled, escape)
    return _INSIDE


def _choices(key: ClassKey, node_selector: Mapping[str, str], box: Box) -> Sequence[Choice]:
    domain = box.get(key.key)
    if domain is not None:
        return key.choices(domain)
    value = node_selector.get(key.key)
    return key.unconstrained if value is None else (Choice(key.mask_of(value), value),)


def _outside(compiled: CompiledClass, escape: Mapping[str, Value]) -> Outside:
    labels = {key.key: escape[key.key] for key in compiled.keys if key.key != NODE_NAME}
    missing = (pair for pair in compiled.node_selector.items() if labels.get(*pair) != pair[1])
    return Outside(Counterexample(labels, escape.get(NODE_NAME)), next(missing, None))


class _Exhausted(Exception):
    """The search exceeded MAX_COMBINATIONS."""


_Combinations: TypeAlias = dict[int, tuple[Value, ...]]
"""One combination, a value for each key so far, by the mask of the boxes it is still in."""


class _Search:
    """Searches combinations outside all boxes, with one limit for all boxes of a pod."""

    __slots__ = ("_everything", "_remaining")

    def __init__(self, everything: int) -> None:
        self._everything = everything
        self._remaining = MAX_COMBINATIONS

    def escape(self, choices: Mapping[str, Sequence[Choice]]) -> dict[str, Value] | None:
        """Return a value for each key such that no box admits them all; None if there is none."""
        if not choices:
            return None if self._everything else {}
        keys = sorted(choices, key=lambda key: len(choices[key]))
        combined: _Combinations = {self._everything: ()}
        for place, survives in enumerate(self._surviving([choices[key] for key in keys])):
            combined = {mask: values for mask, values in combined.items() if not mask & survives}
            if not combined:
                return None
            combined = self._extended(combined, choices[keys[place]])
            if 0 in combined:
                rest = (choices[key][0].value for key in keys[place + 1 :])
                return dict(zip(keys, (*combined[0], *rest), strict=True))
        return None

    def _surviving(self, choices: Sequence[Sequence[Choice]]) -> list[int]:
        """Return, for each key, the boxes that admit every choice of it and of the keys after it."""
        always = (reduce(and_, (choice.mask for choice in each)) for each in reversed(choices))
        return list(accumulate(always, and_))[::-1]

    def _extended(self, combined: _Combinations, choices: Sequence[Choice]) -> _Combinations:
        self._remaining -= len(choices) * len(combined)
        if self._remaining < 0:
            raise _Exhausted
        extended: _Combinations = {}
        for mask, values in combined.items():
            for choice in choices:
                extended.setdefault(mask & choice.mask, (*values, choice.value))
        return extended


# pods of a DaemonSet
#
# The DaemonSet controller creates one pod per node and replaces the required terms of the template with the node's
# name, so the terms of a class are no longer on the pod. Such a pod is inside if its node is, by the node's current
# labels: when these change, the controller evaluates the template again and deletes the pod. No controller does that
# for other pods, so a node name does not excuse them.


def node_of_daemon(metadata: ObjectMeta, required: NodeSelector | None) -> str:
    """Return the node that a DaemonSet created this pod for; empty for other pods."""
    if required is None or not any(each.controller and each.kind == _DAEMON_SET for each in metadata.owner_references):
        return ""
    named = {_node_of(term) for term in required.node_selector_terms}
    return named.pop() if len(named) == 1 else ""


def _node_of(term: NodeSelectorTerm) -> str:
    for each in term.match_fields:
        if (each.key, each.operator, len(each.values)) == (NODE_NAME_FIELD, "In", 1):
            return each.values[0]
    return ""


def contains_pod(
    compiled: CompiledClass, node_selector: Mapping[str, str], required: NodeSelector | None, node: ObjectMeta | None
) -> Containment:
    """Like `contains`; `node` is the node that a DaemonSet created the pod for, if one did."""
    containment = contains(compiled, node_selector, required)
    if isinstance(containment, Inside) or node is None or not compiled.matches(node.labels, node.name):
        return containment
    return _INSIDE


# classes


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
