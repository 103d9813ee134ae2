"""Builders of node selectors: `selector([expression("zone", "In", "a")])`."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.kube.node_affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

Expressions = Sequence[NodeSelectorRequirement]


def expression(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(expressions: Expressions = (), fields: Expressions = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))


def named(operator: str, *names: str) -> NodeSelectorTerm:
    """Build a requirement on the node's name."""
    return term(fields=[expression("metadata.name", operator, *names)])


def selector(*terms: NodeSelectorTerm | Expressions) -> NodeSelector:
    return NodeSelector(
        node_selector_terms=tuple(each if isinstance(each, NodeSelectorTerm) else term(each) for each in terms)
    )
