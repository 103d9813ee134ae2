"""A NodeTemplate resolved for planning: validated, selector compiled, desired node settings merged.

A template waits behind a short template of higher priority if both could claim the same node. Two selectors compete if
one node could match both. The selectors alone decide this, not the present nodes: the answer must be the same while
there are no spares.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import Mismatch, NodesMessage
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.capabilities.spares.validation import faults
from nodeyard.kube.names import ZONE, is_restricted
from nodeyard.kube.objects import Node, Taint
from nodeyard.kube.selectors import LabelSelector, Operator, Requirement, from_object
from nodeyard.plan.model import ObjectRef

_DROPPED = (names.SPARE_LABEL, names.OUT_LABEL, names.OUT_ROLE_LABEL)
ONE_OF = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Settings of a template's nodes, including the owner's and the role label."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


class Resolved:
    """One template of the plan. Read-only."""

    def __init__(self, template: NodeTemplate) -> None:
        self.template = template
        self.name = template.name
        self.priority = template.spec.priority
        self.desired = max(template.spec.nodes, 0)
        self.error = "; ".join(map(str, faults(template)))
        self.topology_key = template.spec.spread.topology_key or ZONE
        self.eligibility = (template.spec.eligibility.require_ready, template.spec.eligibility.require_empty)
        self._messages: dict[tuple[type[NodesMessage], str], NodesMessage] = {}
        nothing = LabelSelector(is_nothing=True)
        self.selector = nothing if self.error else from_object(template.selector_object)

    @cached_property
    def ref(self) -> ObjectRef:
        metadata = self.template.metadata
        return ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=self.name, uid=metadata.uid)

    @cached_property
    def wanted(self) -> Wanted:
        inner = self.template.spec.template
        own = {names.TEMPLATE_LABEL: self.name, names.role_label(self.name): names.TRUE}
        return Wanted({**own, **inner.metadata.labels}, inner.metadata.annotations, inner.spec.taints)

    @cached_property
    def wanted_if_adopted(self) -> Wanted:
        """Settings of an adopted node: without restricted labels unless `spec.adoption.restrictedLabels` is set."""
        wanted = self.wanted
        if self.template.spec.adoption.restricted_labels or not any(map(is_restricted, wanted.labels)):
            return wanted
        labels = {key: value for key, value in wanted.labels.items() if not is_restricted(key)}
        return Wanted(labels, wanted.annotations, wanted.taints)

    @cached_property
    def touches_selector(self) -> bool:
        """Tell whether a claim changes a label that the selector names, so that it may stop matching."""
        touched = {*self.wanted.labels, *_DROPPED}
        return any(requirement.key in touched for requirement in self.selector.requirements)

    def keeps(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the selector still matches a node with these labels after the claim."""
        after = {key: value for key, value in labels.items() if key not in _DROPPED}
        return self.selector.matches({**after, **self.wanted.labels})

    @property
    def idle(self) -> Reason | None:
        """Return the reason why the template writes nothing; None if it is active."""
        if self.error:
            return Reason.INVALID
        if self.template.is_paused:
            return Reason.PAUSED
        if self.template.is_dry_run:
            return Reason.DRY_RUN
        return None

    @property
    def can_claim(self) -> bool:
        return self.idle is None and not self.template.is_deleting

    def approval_group(self, verb: str) -> str:
        """Name the approval group of this template version; a new generation needs a new approval."""
        metadata = self.template.metadata
        return f"{verb} {self.name} {metadata.uid} {metadata.generation}"

    def mismatch(self, node: Node) -> Mismatch:
        """Return the first requirement of the selector that the node fails, with the node's value."""
        labels = node.metadata.labels
        for requirement, selector in self._requirements:
            if not selector.matches(labels):
                return Mismatch(
                    template=self.name,
                    requirement=str(requirement),
                    label=requirement.key,
                    value=labels.get(requirement.key),
                )
        raise ValueError(f"spec.selector of {self.name} matches node {node.metadata.name}")

    @cached_property
    def _requirements(self) -> list[tuple[Requirement, LabelSelector]]:
        return [(each, LabelSelector([each])) for each in self.selector.requirements]

    def can_keep(self, node: Node) -> bool:
        """Tell whether the selector matches the node now and after the claim."""
        return self.matches(node) and (not self.touches_selector or self.keeps(node.metadata.labels))

    def matches(self, node: Node) -> bool:
        return self.selector.matches(node.metadata.labels)

    def zone_of(self, node: Node) -> str:
        return node.metadata.labels.get(self.topology_key, "")

    def message(self, kind: type[NodesMessage], node: Node) -> NodesMessage:
        """Return the message of an action on a node; shared by all nodes of a zone."""
        key = kind, self.zone_of(node)
        message = self._messages.get(key)
        if message is None:
            message = self._messages[key] = kind(template=self.name, zone=key[1])
        return message


def resolve(templates: Iterable[NodeTemplate]) -> list[Resolved]:
    """Resolve templates and sort them by descending priority, then by name."""
    return sorted(map(Resolved, templates), key=lambda each: (-each.priority, each.name))


def named_values(selector: LabelSelector, key: str) -> tuple[str, ...] | None:
    """Return the values that a selector allows for a label; None if it does not list them."""
    for requirement in selector.requirements:
        if requirement.key == key and requirement.operator in ONE_OF:
            return requirement.values
    return None


# contention


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
