"""Which templates stand in each other's way: a higher one that still waits, and asks for what a lower one asks for.

Two selectors compete where one node could satisfy both. That is decided from the selectors themselves and not from the
nodes at hand, for the answer must be the same while there are no nodes at all.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable

from nodeyard.capabilities.spares.planning.templates import ONE_OF, Resolved, named_values
from nodeyard.kube.selectors import LabelSelector, Operator, Requirement

_NONE_OF = (Operator.NOT_EQUALS, Operator.NOT_IN)


def can_overlap(a: LabelSelector, b: LabelSelector) -> bool:
    """Whether a node could match both."""
    if a.is_nothing or b.is_nothing:
        return False
    by_key: dict[str, list[Requirement]] = {}
    for requirement in (*a.requirements, *b.requirements):
        by_key.setdefault(requirement.key, []).append(requirement)
    return all(len(together) == 1 or _can_hold(together) for together in by_key.values())


def _can_hold(requirements: Iterable[Requirement]) -> bool:
    """Whether one value of a label, or its absence, satisfies all of these."""
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
    """The templates of higher priority that are still short of nodes.

    They are found by the value that they ask for of one label, the one that most selectors name: those that name
    another value cannot compete and are not looked at.
    """

    def __init__(self, templates: Iterable[Resolved]) -> None:
        self._key = _commonest_key(templates)
        self._all: list[Resolved] = []
        self._naming: dict[str, list[Resolved]] = {}
        self._open: list[Resolved] = []
        self._selectors: set[LabelSelector] = set()

    def add(self, template: Resolved) -> None:
        """In the order of priority. Of several with one selector the first speaks for all."""
        if template.selector in self._selectors:
            return
        self._selectors.add(template.selector)
        self._all.append(template)
        values = named_values(template.selector, self._key)
        if values is None:
            self._open.append(template)
            return
        for value in values:
            self._naming.setdefault(value, []).append(template)

    def competitor(self, template: Resolved) -> Resolved | None:
        """One that the template has to wait for, the highest; None where none is in its way."""
        for other in self._candidates(template.selector):
            if can_overlap(other.selector, template.selector):
                return other
        return None

    def _candidates(self, selector: LabelSelector) -> Iterable[Resolved]:
        values = named_values(selector, self._key)
        if values is None:
            return self._all
        naming = (self._naming.get(value, ()) for value in values)
        return heapq.merge(self._open, *naming, key=lambda each: (-each.priority, each.name))


def _commonest_key(templates: Iterable[Resolved]) -> str:
    counts = Counter(
        requirement.key
        for template in templates
        for requirement in template.selector.requirements
        if requirement.operator in ONE_OF
    )
    return min(counts, key=lambda key: (-counts[key], key), default="")
