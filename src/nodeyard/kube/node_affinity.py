"""Matching of nodes by a pod's nodeSelector and required node affinity, as in kube-scheduler.

    nodeSelector AND (term OR term OR ...)      a term: all its expressions on labels and on fields

With required affinity at least one term must match. A term without expressions never matches, nor does one that the
scheduler cannot parse. The API server accepts some of the latter (`Gt` with a value that is not a number), so pods have
them; `parse_terms` leaves them out as the scheduler does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from nodeyard.kube.objects import NullableStruct, PlainStruct, Slice
from nodeyard.kube.selectors.fields import FieldRequirement, FieldSelector
from nodeyard.kube.selectors.labels import ORDERED, LabelSelector, Operator, Requirement, requirement_errors
from nodeyard.kube.selectors.objects import from_labels

NODE_NAME_FIELD: Final = "metadata.name"
"""The only field that `matchFields` supports."""

OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER,
    "Lt": Operator.LESS,
}


class NodeSelectorRequirement(NullableStruct, frozen=True):
    key: str = ""
    operator: str = ""
    values: Slice[str] = ()


class NodeSelectorTerm(NullableStruct, frozen=True):
    match_expressions: Slice[NodeSelectorRequirement] = ()
    match_fields: Slice[NodeSelectorRequirement] = ()


class NodeSelector(NullableStruct, frozen=True):
    node_selector_terms: Slice[NodeSelectorTerm] = ()


class NodeAffinity(PlainStruct, frozen=True):
    """Node affinity without preferred terms, which exclude no node."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(PlainStruct, frozen=True):
    """The affinity of a pod to nodes."""

    node_affinity: NodeAffinity | None = None

    @property
    def required_nodes(self) -> NodeSelector | None:
        return None if self.node_affinity is None else self.node_affinity.required


class ParsedTerm(NamedTuple):
    """A term that the scheduler can parse: all requirements must hold; a term without any matches every node."""

    labels: tuple[Requirement, ...]
    fields: tuple[FieldRequirement, ...]
    """Terms about the node's name only."""


def parse_terms(selector: NodeSelector) -> list[ParsedTerm]:
    """Return the terms that can match, in order."""
    return [parsed for term in selector.node_selector_terms if (parsed := _parse(term)) is not None]


def _parse(term: NodeSelectorTerm) -> ParsedTerm | None:
    if not term.match_expressions and not term.match_fields:
        return None
    labels: list[Requirement] = []
    for expression in term.match_expressions:
        requirement = _parse_expression(expression)
        if requirement is None:
            return None
        labels.append(requirement)
    fields: list[FieldRequirement] = []
    for expression in term.match_fields:
        field = _parse_field(expression)
        if field is None or (field.field != NODE_NAME_FIELD and not FieldSelector([field]).matches({})):
            return None
        if field.field == NODE_NAME_FIELD:
            fields.append(field)
    return ParsedTerm(tuple(labels), tuple(fields))


def _parse_expression(expression: NodeSelectorRequirement) -> Requirement | None:
    operator = OPERATORS.get(expression.operator)
    if operator is None or (operator in ORDERED and len(expression.values) != 1):
        return None
    requirement = Requirement(expression.key, operator, expression.values)
    return None if requirement_errors(requirement) else requirement


def _parse_field(expression: NodeSelectorRequirement) -> FieldRequirement | None:
    if expression.operator not in ("In", "NotIn") or len(expression.values) != 1:
        return None
    return FieldRequirement(expression.key, "=" if expression.operator == "In" else "!=", expression.values[0])


NodeMatcher = Callable[[Mapping[str, str], str], bool]
"""Returns True if a node with these labels and this name matches."""


def node_matcher(node_selector: Mapping[str, str], required: NodeSelector | None) -> NodeMatcher:
    """Return a function that tells whether a node matches; it is compiled once per pod and called for every node."""
    is_selected = from_labels(node_selector).matches
    if required is None:
        return lambda labels, name: is_selected(labels)
    terms = [(LabelSelector(term.labels), FieldSelector(term.fields)) for term in parse_terms(required)]

    def matches(labels: Mapping[str, str], name: str) -> bool:
        fields = {NODE_NAME_FIELD: name}
        return is_selected(labels) and any(
            by_labels.matches(labels) and by_fields.matches(fields) for by_labels, by_fields in terms
        )

    return matches
