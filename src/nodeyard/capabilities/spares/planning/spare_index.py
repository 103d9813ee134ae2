"""Index of the spares of a plan by label values and zone, so that no template scans every node.

Templates select by few labels, mostly the same ones. The index groups spares by the labels that some selector names.
All spares of a `LabelGroup` look the same to that selector, so it is matched once per group instead of once per node.
If a selector requires a value, only spares with that value are grouped for it. A `ZoneQueue` orders the eligible spares
of a group by zone and name, with one cursor per zone. Cursors only move forward, which keeps the whole plan linear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from nodeyard.capabilities.spares.planning.templates import ONE_OF, Resolved
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import is_ready, owner_elsewhere
from nodeyard.kube.objects import Node, Pod
from nodeyard.kube.selectors import LabelSelector, Operator

Keys = tuple[str, ...]
Values = tuple[str | None, ...]
Eligibility = tuple[bool, bool]
"""`requireReady` and `requireEmpty`."""
RequiredLabel = tuple[str, tuple[str, ...]] | None
"""A label key and values; every spare that a selector can match has one of these values."""


class Spare:
    """One spare node and its state within the plan."""

    __slots__ = ("claimed_by", "is_unavailable", "name", "node", "pods", "refusal", "reserved_for")

    def __init__(self, node: Node, pods: Mapping[str, Sequence[Pod]] | None) -> None:
        self.node = node
        self.name = node.metadata.name
        self.pods = pods
        self.refusal = _refusal_for_all(node)
        """The reason why no template may claim it."""
        self.is_unavailable = self.refusal is not None
        """Refused, claimed, reserved, or picked for one of these."""
        self.claimed_by = ""
        self.reserved_for = ""

    def refusal_for(self, eligibility: Eligibility) -> Reason | None:
        """Return the reason why a template with this eligibility may not claim it."""
        if self.refusal is not None:
            return self.refusal
        needs_ready, needs_empty = eligibility
        if needs_ready and not is_ready(self.node):
            return Reason.NOT_READY
        if needs_ready and self.node.spec.unschedulable:
            return Reason.UNSCHEDULABLE
        if not needs_empty:
            return None
        if self.pods is None:
            return Reason.PODS_UNKNOWN
        return Reason.NOT_EMPTY if self.pods.get(self.name) else None


def _refusal_for_all(node: Node) -> Reason | None:
    if node.metadata.deletion_timestamp is not None:
        return Reason.NODE_DELETING
    return Reason.OWNED_ELSEWHERE if owner_elsewhere(node) else None


class ZoneQueue:
    """The eligible spares of one label group, by zone and then by name."""

    __slots__ = ("by_zone", "cursors")

    def __init__(self, spares: Iterable[Spare], eligibility: Eligibility, topology_key: str) -> None:
        by_zone: defaultdict[str, list[Spare]] = defaultdict(list)
        for spare in spares:
            if not spare.is_unavailable and spare.refusal_for(eligibility) is None:
                by_zone[spare.node.metadata.labels.get(topology_key, "")].append(spare)
        self.by_zone: dict[str, list[Spare]] = dict(by_zone)
        self.cursors: dict[str, int] = dict.fromkeys(by_zone, 0)

    def first_in(self, zone: str) -> Spare | None:
        """Return the first available spare of a zone. A zone without any is dropped."""
        spares = self.by_zone.get(zone)
        if spares is None:
            return None
        cursor = self.cursors[zone]
        while cursor < len(spares) and spares[cursor].is_unavailable:
            cursor += 1
        self.cursors[zone] = cursor
        if cursor < len(spares):
            return spares[cursor]
        del self.by_zone[zone]
        return None


class LabelGroup(NamedTuple):
    """The spares, by name, that have the same values of some label keys."""

    keys: Keys
    values: Values
    spares: list[Spare]

    @property
    def labels(self) -> dict[str, str]:
        return _to_labels(self.keys, self.values)


def _to_labels(keys: Keys, values: Values) -> dict[str, str]:
    return {key: value for key, value in zip(keys, values, strict=True) if value is not None}


class LabelIndex:
    """Spares by the values of the labels that selectors name, built in one pass over the spares."""

    def __init__(self, spares: list[Spare], selectors: Iterable[LabelSelector]) -> None:
        self._spares = spares
        selected = {requirement.key for selector in selectors for requirement in selector.requirements}
        self._by_label: dict[str, dict[str, list[Spare]]] = {}
        for spare in spares:
            for key, value in spare.node.metadata.labels.items():
                if key in selected:
                    self._by_label.setdefault(key, {}).setdefault(value, []).append(spare)
        self._by_labels: dict[tuple[Keys, RequiredLabel], dict[Values, list[Spare]]] = {}

    def matching(self, selector: LabelSelector) -> list[LabelGroup]:
        """Return the groups that a selector matches."""
        if selector.is_nothing:
            return []
        keys = tuple(dict.fromkeys(each.key for each in selector.requirements if each.key in self._by_label))
        required = self._rarest_required_label(selector)
        groups = self._by_labels.get((keys, required))
        if groups is None:
            groups = self._by_labels[keys, required] = _group(keys, self._with_label(required))
        return [
            LabelGroup(keys, values, spares)
            for values, spares in groups.items()
            if selector.matches(_to_labels(keys, values))
        ]

    def _rarest_required_label(self, selector: LabelSelector) -> RequiredLabel:
        """Return the required label that fewest spares have; None if the selector only excludes."""
        rarest: RequiredLabel = None
        fewest = len(self._spares)
        for requirement in selector.requirements:
            by_value = self._by_label.get(requirement.key, {})
            if requirement.operator in ONE_OF:
                values = tuple(sorted(value for value in set(requirement.values) if value in by_value))
            elif requirement.operator is Operator.EXISTS:
                values = tuple(sorted(by_value))
            else:
                continue
            size = sum(len(by_value[value]) for value in values)
            if rarest is None or size < fewest:
                rarest, fewest = (requirement.key, values), size
        return rarest

    def _with_label(self, required: RequiredLabel) -> Iterable[Spare]:
        if required is None:
            return self._spares
        key, values = required
        found = [spare for value in values for spare in self._by_label[key][value]]
        return found if len(values) == 1 else sorted(found, key=lambda spare: spare.name)


def _group(keys: Keys, spares: Iterable[Spare]) -> dict[Values, list[Spare]]:
    groups: defaultdict[Values, list[Spare]] = defaultdict(list)
    for spare in spares:
        get = spare.node.metadata.labels.get
        groups[tuple([get(key) for key in keys])].append(spare)
    return dict(groups)


class SpareIndex:
    """All spares of a plan, and which template has claimed or reserved each."""

    def __init__(
        self,
        nodes: Iterable[Node],
        pods: Mapping[str, Sequence[Pod]] | None,
        selectors: Iterable[LabelSelector],
    ) -> None:
        self.spares = [Spare(node, pods) for node in nodes]
        self.claimed: dict[str, Spare] = {}
        self.reservations = 0
        self.has_refused = any(spare.refusal is not None for spare in self.spares)
        self._index = LabelIndex(self.spares, selectors)
        self._groups: dict[LabelSelector, list[LabelGroup]] = {}
        self._queues: dict[tuple[Keys, Values, Eligibility, str], ZoneQueue] = {}

    def by_labels(self, selector: LabelSelector) -> list[LabelGroup]:
        """Return the groups that a selector matches, cached per selector."""
        found = self._groups.get(selector)
        if found is None:
            found = self._groups[selector] = self._index.matching(selector)
        return found

    def matching(self, selector: LabelSelector) -> Iterable[Spare]:
        """Yield every spare that a selector matches, whether available or not."""
        for group in self.by_labels(selector):
            yield from group.spares

    def by_zone(self, template: Resolved, *, is_reservation: bool = False) -> list[ZoneQueue]:
        """Return the queues that a template claims from.

        Groups that its selector would no longer match after the claim are left out. For a reservation, eligibility is
        ignored: the spares may become eligible later.
        """
        eligibility = (False, False) if is_reservation else template.eligibility
        return [
            self._queue(group, eligibility, template.topology_key)
            for group in self.by_labels(template.selector)
            if _still_matches(template, group)
        ]

    def has_self_defeating(self, template: Resolved) -> bool:
        """Tell whether the selector matches spares that it would no longer match after the claim."""
        return not all(_still_matches(template, group) for group in self.by_labels(template.selector))

    def _queue(self, group: LabelGroup, eligibility: Eligibility, topology_key: str) -> ZoneQueue:
        key = (group.keys, group.values, eligibility, topology_key)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = ZoneQueue(group.spares, eligibility, topology_key)
        return queue

    @contextmanager
    def dry_run(self, queues: Iterable[ZoneQueue]) -> Iterator[list[Spare]]:
        """Yield a list for picked spares; on exit make these available again and restore the queues."""
        before = [(queue, dict(queue.by_zone), dict(queue.cursors)) for queue in queues]
        picked: list[Spare] = []
        yield picked
        for spare in picked:
            spare.is_unavailable = False
        for queue, by_zone, cursors in before:
            queue.by_zone, queue.cursors = by_zone, cursors

    def claim(self, spare: Spare, template: str) -> None:
        spare.is_unavailable = True
        spare.claimed_by = template
        self.claimed[spare.name] = spare

    def reserve(self, spare: Spare, template: str) -> None:
        """Keep a spare from templates of lower priority."""
        spare.is_unavailable = True
        spare.reserved_for = template
        self.reservations += 1


def _still_matches(template: Resolved, group: LabelGroup) -> bool:
    return not template.touches_selector or template.keeps(group.labels)
