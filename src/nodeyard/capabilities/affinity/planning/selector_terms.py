"""Convert selector terms to boxes: a box maps each key to the domain of values that the term allows.

The nodeSelector applies in addition to every term, so it narrows each box. A box with an empty domain contains no node
and is dropped. The scheduler never places a pod outside its boxes; a key that a box does not have may have any value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from nodeyard.capabilities.affinity.planning.value_sets import ANY, PRESENT, Domain, exclude, intersect, narrow, only
from nodeyard.kube.node_affinity import NodeSelector, ParsedTerm, parse_terms

NODE_NAME: Final = "field metadata.name"
"""The key of a node's name. It contains a space, so it cannot collide with a label key such as `metadata.name`."""

Box: TypeAlias = dict[str, Domain]


def base_of(key: str) -> Domain:
    """Return the unrestricted domain of a key: a label may be absent, a node name may not."""
    return PRESENT if key == NODE_NAME else ANY


def boxes(node_selector: Mapping[str, str], required: NodeSelector | None) -> Iterator[Box]:
    """Yield the satisfiable boxes, including the keys of the nodeSelector."""
    selected = {key: only((value,)) for key, value in node_selector.items()}
    if required is None:
        yield selected
        return
    for box in narrow_boxes(node_selector, required):
        yield selected | box


def narrow_boxes(node_selector: Mapping[str, str], required: NodeSelector) -> Iterator[Box]:
    """Yield the satisfiable boxes with only the keys of the terms, narrowed by the nodeSelector."""
    for term in parse_terms(required):
        box = _make_box(node_selector, term)
        if not any(domain.is_empty for domain in box.values()):
            yield box


def _make_box(node_selector: Mapping[str, str], term: ParsedTerm) -> Box:
    box: Box = {}
    for requirement in term.labels:
        key = requirement.key
        domain = box.get(key)
        if domain is None:
            domain = only((node_selector[key],)) if key in node_selector else ANY
        box[key] = narrow(domain, requirement)
    for field in term.fields:
        domain, values = box.get(NODE_NAME, PRESENT), (field.value,)
        box[NODE_NAME] = intersect(domain, values) if field.operator == "=" else exclude(domain, values)
    return box
