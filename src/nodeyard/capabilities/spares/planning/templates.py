"""A template made ready for planning: its selector compiled, its nodes' description put together, its faults found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.validity import faults
from nodeyard.capabilities.spares.types import NodeTemplate, Reason
from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Node, Taint
from nodeyard.kube.selectors import LabelSelector, Operator, from_object
from nodeyard.plan.model import ObjectRef

_DROPPED = (names.SPARE_LABEL, names.OUT_LABEL, names.OUT_ROLE_LABEL)
ONE_OF = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a node of the template carries, the labels that make it one included."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


class Resolved:
    """One template of the plan. Read only."""

    def __init__(self, template: NodeTemplate) -> None:
        self.template = template
        self.name = template.name
        self.priority = template.spec.priority
        self.desired = max(template.spec.nodes, 0)
        self.error = "; ".join(map(str, faults(template)))
        self.topology_key = template.spec.spread.topology_key or ZONE
        self.eligibility = (template.spec.eligibility.require_ready, template.spec.eligibility.require_empty)
        self._facts: dict[str, Object] = {}
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
    def touches_selector(self) -> bool:
        """Whether claiming a node changes a label that the selector asks about: it may then not match any more."""
        touched = {*self.wanted.labels, *_DROPPED}
        return any(requirement.key in touched for requirement in self.selector.requirements)

    def keeps(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels would still match once it is claimed."""
        after = {key: value for key, value in labels.items() if key not in _DROPPED}
        return self.selector.matches({**after, **self.wanted.labels})

    @property
    def idle(self) -> Reason | None:
        """Why nothing may be done for it; None for one that is planned as it stands."""
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

    def matches(self, node: Node) -> bool:
        return self.selector.matches(node.metadata.labels)

    def zone_of(self, node: Node) -> str:
        return node.metadata.labels.get(self.topology_key, "")

    def facts(self, node: Node) -> Object:
        """What is said about an action on one of its nodes. The same for all of one zone, and shared by them."""
        zone = self.zone_of(node)
        facts = self._facts.get(zone)
        if facts is None:
            facts = self._facts[zone] = {"template": self.name, "zone": zone}
        return facts


def resolve(templates: Iterable[NodeTemplate]) -> list[Resolved]:
    """In the order in which they choose: highest priority first, then by name."""
    return sorted(map(Resolved, templates), key=lambda each: (-each.priority, each.name))


def named_values(selector: LabelSelector, key: str) -> tuple[str, ...] | None:
    """The only values that a selector lets a label have; None where it does not name them."""
    for requirement in selector.requirements:
        if requirement.key == key and requirement.operator in ONE_OF:
            return requirement.values
    return None
