"""A NodeTemplate resolved for planning: validated, selector compiled, desired node settings merged."""

from __future__ import annotations

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
