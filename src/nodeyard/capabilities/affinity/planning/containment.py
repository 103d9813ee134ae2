"""Is every node that a pod may go to a node of its class?

Both sides are unions of boxes (see terms): the pod's nodeSelector with each of its required terms, and the class's. The
pod is inside when each of its boxes lies in the union of the class's boxes, which is more than lying in one of them:

    zone In [dc1, dc2]      inside   {zone=dc1} or {zone=dc2}, though in neither alone

Each key contributes the few choices that matter (see representatives), each with a mask of the boxes of the class that
admit it. A combination of choices is in the boxes whose bit is in all of its masks; one with no bit left is a node that
the pod may have and the class has not: the counterexample. Combinations are built key by key, those with the same mask
together. One with a bit that survives whatever the remaining keys bring is inside and needs no further look; so a pod
in a single box of the class, and therefore every class of one box, is decided without combining anything.

The question is coNP-hard in general. A pod that would need more than `MAX_COMBINATIONS` of them, or whose terms are
larger than `MAX_SIZE`, is `TooComplex`: whoever writes pods cannot keep whoever judges them busy for long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from operator import and_
from types import MappingProxyType
from typing import Final, TypeAlias

from nodeyard.capabilities.affinity.planning.representatives import Choice, ClassKey, Value, class_keys
from nodeyard.capabilities.affinity.planning.terms import NODE_NAME, Box, boxes, narrowed_boxes
from nodeyard.kube.node_affinity import NodeMatcher, NodeSelector, node_matcher

MAX_COMBINATIONS: Final = 20_000
MAX_SIZE: Final = 10_000
"""Of a pod's terms: a point for each value and expression, ten for a term, which is about what each costs to read."""
_NO_BOX: Final[Box] = {}


@dataclass(frozen=True, slots=True)
class CompiledClass:
    """A class as it is asked: made once when the class is seen, then shared by all requests."""

    node_selector: Mapping[str, str]
    has_terms: bool
    everything: int
    """A bit for each box; none where no node can be in the class."""
    keys: tuple[ClassKey, ...]
    matches: NodeMatcher = field(repr=False, compare=False)


def compile_class(node_selector: Mapping[str, str], terms: NodeSelector | None) -> CompiledClass:
    """`terms` are those of the class's required node affinity; None where it has none, which asks for nothing."""
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
    """A node that the pod may go to and that is not in the class, by the keys that decide it."""

    labels: Mapping[str, Value]
    """None where the node lacks the label. Keys that are not here may be anything the pod asks for."""
    node_name: str | None = None
    """Where the class chooses nodes by name."""


@dataclass(frozen=True, slots=True)
class Inside:
    is_vacuous: bool = False
    """The pod's conditions contradict each other: it can go to no node at all, and so to none outside the class."""


@dataclass(frozen=True, slots=True)
class Outside:
    counterexample: Counterexample
    missing: tuple[str, str] | None
    """The first label of the class's nodeSelector that the pod does not insist on; None if it insists on all."""


@dataclass(frozen=True, slots=True)
class TooComplex:
    """Whether the pod is inside cannot be told with reasonable effort; it has to be asked for more simply."""


Verdict: TypeAlias = Inside | Outside | TooComplex

_INSIDE: Final = Inside()
_VACUOUS: Final = Inside(is_vacuous=True)
_TOO_COMPLEX: Final = TooComplex()


def contains(compiled: CompiledClass, node_selector: Mapping[str, str], required: NodeSelector | None) -> Verdict:
    """Whether the class contains every node that a pod with this nodeSelector and required affinity may go to."""
    if required is None:
        if not compiled.has_terms and compiled.node_selector.items() <= node_selector.items():
            return _INSIDE
        return _verdict(compiled, node_selector, (_NO_BOX,))
    if _size(required) > MAX_SIZE:
        # Terms only narrow what the nodeSelector leaves: where that is inside already, they need not be read.
        by_selector = contains(compiled, node_selector, None)
        return by_selector if isinstance(by_selector, Inside) else _TOO_COMPLEX
    pod_boxes = list(narrowed_boxes(node_selector, required))
    return _verdict(compiled, node_selector, pod_boxes) if pod_boxes else _VACUOUS


def _size(required: NodeSelector) -> int:
    return sum(
        10 + sum(1 + len(expression.values) for expression in (*term.match_expressions, *term.match_fields))
        for term in required.node_selector_terms
    )


def _verdict(compiled: CompiledClass, node_selector: Mapping[str, str], pod_boxes: Sequence[Box]) -> Verdict:
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
    """More combinations than anyone wants to wait for."""


_Combinations: TypeAlias = dict[int, tuple[Value, ...]]
"""The boxes they are still in, and one of them: a value for each key so far."""


class _Search:
    """Looks for combinations outside all boxes, and counts what it looks at over all boxes of a pod."""

    __slots__ = ("_everything", "_remaining")

    def __init__(self, everything: int) -> None:
        self._everything = everything
        self._remaining = MAX_COMBINATIONS

    def escape(self, choices: Mapping[str, Sequence[Choice]]) -> dict[str, Value] | None:
        """A value for each key, chosen so that no box admits them all."""
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
        """For each key: the boxes that admit whatever it and those after it may bring."""
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
