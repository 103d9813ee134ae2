"""Contention: a template waits behind a short template of higher priority if both could claim the same node.

Two selectors compete if one node could match both. The selectors alone decide this, not the present nodes: the answer
must be the same while there are no spares.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable

from nodeyard.capabilities.spares.planning.templates import ONE_OF, Resolved, named_values
from nodeyard.kube.selectors import LabelSelector, Operator, Requirement

_NONE_OF = (Operator.NOT_EQUALS, Operator.NOT_IN)


def can_overlap(a: LabelSelector, b: LabelSelector) -> bool:
    """Tell whether one node could match both selectors."""
    if a.is_nothing or b.is_nothing:
        return False
    by_key: dict[str, list[Requirement]] = {}
    for requirement in (*a.requirements, *b.requirements):
        by_key.setdefault(requirement.key, []).append(requirement)
    return all(len(together) == 1 or _is_satisfiable(together) for together in by_key.values())


def _is_satisfiable(requirements: Iterable[Requirement]) -> bool:
    """Tell whether one value of a label, or its absence, satisfies all requirements."""
    allowed: set[str] | None = None
    refused: set[str] = set()
    must_exist = must_lack = False
    for requirement in requirements:
        if requirement.operator in ONE_OF:
            allowed = set(requirement.values) if allowed is None else allowed & set(requirement.values)
            must_exist = True
        elif requirement.operator in _NONE_OF:
            refused.update(requirement.values)
        elif requirement.operator is Operator.DOES_NOT_EXIST:
            must_lack = True
        else:
            must_exist = True
    if must_lack:
        return not must_exist
    return allowed is None or bool(allowed - refused)


class Waiting:
    """The templates of higher priority that are short of nodes, indexed by one label.

    The label is the one that most selectors require a value of. Templates that require another value cannot compete
    and are skipped.
    """

    def __init__(self, templates: Iterable[Resolved]) -> None:
        self._key = _most_required_key(templates)
        self._all: list[Resolved] = []
        self._by_value: dict[str, list[Resolved]] = {}
        self._without_value: list[Resolved] = []
        self._selectors: set[LabelSelector] = set()

    def add(self, template: Resolved) -> None:
        """Add a short template; call in order of priority. Of several with one selector only the first is kept."""
        if template.selector in self._selectors:
            return
        self._selectors.add(template.selector)
        self._all.append(template)
        values = named_values(template.selector, self._key)
        if values is None:
            self._without_value.append(template)
            return
        for value in values:
            self._by_value.setdefault(value, []).append(template)

    def competitor(self, template: Resolved) -> Resolved | None:
        """Return the highest template that competes with this one; None if there is none."""
        for other in self._candidates(template.selector):
            if can_overlap(other.selector, template.selector):
                return other
        return None

    def _candidates(self, selector: LabelSelector) -> Iterable[Resolved]:
        values = named_values(selector, self._key)
        if values is None:
            return self._all
        by_value = (self._by_value.get(value, ()) for value in values)
        return heapq.merge(self._without_value, *by_value, key=lambda each: (-each.priority, each.name))


def _most_required_key(templates: Iterable[Resolved]) -> str:
    counts = Counter(
        requirement.key
        for template in templates
        for requirement in template.selector.requirements
        if requirement.operator in ONE_OF
    )
    return min(counts, key=lambda key: (-counts[key], key), default="")
