"""The terms of a selector as boxes: for each key the domain that the term leaves it, and the keys independent.

The nodeSelector holds beside every term, so it narrows each of them. A box with an empty side contains no node and is
not made. What is in no box of a pod, no scheduler will give it; what a box leaves open may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from nodeyard.capabilities.affinity.planning.domains import ANY, PRESENT, Domain, among, narrowed, only, without
from nodeyard.kube.node_affinity import NodeSelector, ParsedTerm, parse_terms

NODE_NAME: Final = "field metadata.name"
"""The key of a node's name. No label can be called so: there is one called `metadata.name`, but none with a space."""

Box: TypeAlias = dict[str, Domain]


def base_of(key: str) -> Domain:
    """All that a key can be: a label may be lacking, a name may not."""
    return PRESENT if key == NODE_NAME else ANY


def boxes(node_selector: Mapping[str, str], required: NodeSelector | None) -> Iterator[Box]:
    """The satisfiable ones, each with the nodeSelector in it."""
    selected = {key: only((value,)) for key, value in node_selector.items()}
    if required is None:
        yield selected
        return
    for box in narrowed_boxes(node_selector, required):
        yield selected | box


def narrowed_boxes(node_selector: Mapping[str, str], required: NodeSelector) -> Iterator[Box]:
    """The satisfiable ones, with only those keys that the terms name; what else is selected is as it is selected."""
    for term in parse_terms(required):
        box = _box(node_selector, term)
        if not any(domain.is_empty for domain in box.values()):
            yield box


def _box(node_selector: Mapping[str, str], term: ParsedTerm) -> Box:
    box: Box = {}
    for requirement in term.labels:
        key = requirement.key
        domain = box.get(key)
        if domain is None:
            domain = only((node_selector[key],)) if key in node_selector else ANY
        box[key] = narrowed(domain, requirement)
    for field in term.fields:
        domain, values = box.get(NODE_NAME, PRESENT), (field.value,)
        box[NODE_NAME] = among(domain, values) if field.operator == "=" else without(domain, values)
    return box
