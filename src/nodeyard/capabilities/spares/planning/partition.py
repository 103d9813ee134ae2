"""Partition of a snapshot's nodes: by owner, spares, and nodes that no template manages any more.

The owner's label alone does not make a node a member of its template, for a kubelet may register with it. A claim or an
adoption writes a record that names the template, in the same patch as the label. A node without such a record is
adopted, in name order, while the template has fewer nodes than `spec.nodes`. The adoption is recorded, so a later node
does not displace it. All other labelled nodes are refused and left unchanged.

Spares are indexed by the labels that selectors require a value of. A selector is matched against the spares of its
rarest required label only, once per plan. A `ZoneQueue` orders the eligible spares of a selector by zone and name, with
one cursor per zone. Cursors only move forward, which keeps the whole plan linear. A `Picker` takes spares from the zone
in which the template has the fewest nodes, then by name; spares without a zone come last.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.node_patch import is_recorded
from nodeyard.capabilities.spares.planning.templates import ONE_OF, Resolved, resolve
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_ready, is_spare, owner_elsewhere, template_of
from nodeyard.kube.objects import Node, Pod
from nodeyard.kube.selectors import LabelSelector, Operator

# the spares


Eligibility = tuple[bool, bool]
"""`requireReady` and `requireEmpty`."""


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
    """The eligible spares of one selector, by zone and then by name."""

    __slots__ = ("by_zone", "cursors")

    def __init__(self, spares: Iterable[Spare], eligibility: Eligibility, topology_key: str) -> None:
        by_zone: defaultdict[str, list[Spare]] = defaultdict(list)
        for spare in spares:
            if not spare.is_unavailable and spare.refusal_for(eligibility) is None:
                by_zone[spare.node.metadata.labels.get(topology_key, "")].append(spare)
        self.by_zone: dict[str, list[Spare]] = dict(by_zone)
        self.cursors: dict[str, int] = dict.fromkeys(by_zone, 0)

    def take_first(self, zone: str) -> Spare | None:
        """Return the first available spare of a zone and make it unavailable. A zone without any is dropped."""
        spares = self.by_zone.get(zone)
        if spares is None:
            return None
        for cursor in range(self.cursors[zone], len(spares)):
            if not spares[cursor].is_unavailable:
                spares[cursor].is_unavailable = True
                self.cursors[zone] = cursor + 1
                return spares[cursor]
        del self.by_zone[zone]
        return None


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
        selected = {requirement.key for selector in selectors for requirement in selector.requirements}
        self._by_label: dict[str, dict[str, list[Spare]]] = {}
        for spare in self.spares:
            for key, value in spare.node.metadata.labels.items():
                if key in selected:
                    self._by_label.setdefault(key, {}).setdefault(value, []).append(spare)
        self._matching: dict[LabelSelector, list[Spare]] = {}
        self._queues: dict[tuple[LabelSelector, Eligibility, str, str], ZoneQueue] = {}

    def matching(self, selector: LabelSelector) -> list[Spare]:
        """Return every spare that a selector matches, by name, whether available or not."""
        found = self._matching.get(selector)
        if found is None:
            matches = selector.matches
            found = [spare for spare in self._with_rarest_label(selector) if matches(spare.node.metadata.labels)]
            self._matching[selector] = found
        return found

    def _with_rarest_label(self, selector: LabelSelector) -> Iterable[Spare]:
        """Return the spares with the required label that fewest have; all if the selector only excludes."""
        rarest: list[list[Spare]] = [self.spares]
        fewest = len(self.spares)
        for requirement in selector.requirements:
            by_value = self._by_label.get(requirement.key, {})
            if requirement.operator in ONE_OF:
                buckets = [by_value[value] for value in set(requirement.values) if value in by_value]
            elif requirement.operator is Operator.EXISTS:
                buckets = list(by_value.values())
            else:
                continue
            size = sum(map(len, buckets))
            if size <= fewest:
                rarest, fewest = buckets, size
        if len(rarest) == 1:
            return rarest[0]
        return sorted((spare for bucket in rarest for spare in bucket), key=lambda spare: spare.name)

    def queue(self, template: Resolved, *, is_reservation: bool = False) -> ZoneQueue:
        """Return the spares that a template claims from.

        Spares that its selector would no longer match after the claim are left out. For a reservation, eligibility is
        ignored: the spares may become eligible later.
        """
        eligibility = (False, False) if is_reservation else template.eligibility
        # Claims of different templates set different labels: a template that changes selected labels has its own queue.
        owner = template.name if template.touches_selector else ""
        key = (template.selector, eligibility, template.topology_key, owner)
        queue = self._queues.get(key)
        if queue is None:
            spares: Iterable[Spare] = self.matching(template.selector)
            if owner:
                spares = (spare for spare in spares if template.keeps(spare.node.metadata.labels))
            queue = self._queues[key] = ZoneQueue(spares, eligibility, template.topology_key)
        return queue

    def has_self_defeating(self, template: Resolved) -> bool:
        """Return True if the selector matches spares that it would no longer match after the claim."""
        if not template.touches_selector:
            return False
        return not all(template.keeps(spare.node.metadata.labels) for spare in self.matching(template.selector))

    @contextmanager
    def dry_run(self, queue: ZoneQueue) -> Iterator[list[Spare]]:
        """Yield a list for picked spares; on exit make these available again and restore the queue."""
        by_zone, cursors = dict(queue.by_zone), dict(queue.cursors)
        picked: list[Spare] = []
        yield picked
        for spare in picked:
            spare.is_unavailable = False
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


def count_zones(nodes: Iterable[Node], template: Resolved) -> Counter[str]:
    """Count the nodes of each zone; nodes without a zone are not counted."""
    return Counter(zone for zone in map(template.zone_of, nodes) if zone)


class Picker:
    """Picks spares for one template from its queue."""

    def __init__(self, queue: ZoneQueue, used: Mapping[str, int]) -> None:
        self._queue = queue
        self._zones = [(used.get(zone, 0), zone) for zone in queue.by_zone if zone]
        heapq.heapify(self._zones)

    def take(self, count: int) -> Iterator[Spare]:
        """Yield up to `count` spares."""
        for _ in range(count):
            spare = self.next()
            if spare is None:
                return
            yield spare

    def next(self) -> Spare | None:
        """Return the next spare and make it unavailable to others; None if none is left."""
        while self._zones:
            uses, zone = self._zones[0]
            spare = self._queue.take_first(zone)
            if spare is None:
                heapq.heappop(self._zones)
                continue
            heapq.heapreplace(self._zones, (uses + 1, zone))
            return spare
        return self._queue.take_first("")


# the partition


@dataclass(frozen=True)
class Partition:
    snapshot: SparesSnapshot
    templates: list[Resolved]
    """By descending priority, then by name."""
    owned: dict[str, list[Node]]
    """By the template in the owner's label."""
    spares: SpareIndex
    orphans: list[Node]
    """Nodes whose owner's label names a template that does not exist."""
    disowned: dict[str, list[Node]]
    """Nodes with a record that a template moved out of management, by its name."""
    untainted: list[Node]
    """Nodes with Nodeyard's spare label that have lost the spare taint."""

    def nodes_of(self, template: Resolved) -> list[Node]:
        return self.owned.get(template.name, [])


def partition(snapshot: SparesSnapshot) -> Partition:
    """Partition the nodes in one pass."""
    owned: dict[str, list[Node]] = {}
    spares: list[Node] = []
    untainted: list[Node] = []
    disowned: dict[str, list[Node]] = {}
    for node in snapshot.nodes:
        owner = template_of(node)
        if owner is not None:
            owned.setdefault(owner, []).append(node)
        elif is_spare(node):
            spares.append(node)
        elif names.LABELLED in node.metadata.annotations:
            untainted.append(node)
        elif _can_return(node):
            disowned.setdefault(node.metadata.labels[names.OUT_LABEL], []).append(node)
    known = {template.name for template in snapshot.templates}.union(snapshot.malformed)
    orphans = [node for owner, nodes in owned.items() if owner not in known for node in nodes]
    templates = resolve(snapshot.templates)
    index = SpareIndex(spares, snapshot.pods, {template.selector for template in templates})
    return Partition(snapshot, templates, owned, index, orphans, disowned, untainted)


def _can_return(node: Node) -> bool:
    metadata = node.metadata
    if names.OUT_LABEL not in metadata.labels or names.RECORD not in metadata.annotations:
        return False
    return metadata.deletion_timestamp is None and not owner_elsewhere(node)


class Members(NamedTuple):
    """The nodes that have a template's label and match its selector."""

    kept: list[Node]
    """Nodes of the template."""
    refused: list[Node]
    """Nodes without a record, beyond `spec.nodes`."""


def members_of(template: Resolved, nodes: Iterable[Node]) -> Members:
    """Split the nodes with the template's label. Nodes that the selector does not match are in neither list."""
    matching = [node for node in nodes if template.matches(node)]
    unrecorded = [node for node in matching if not is_recorded(node, template.name)]
    if not unrecorded:
        return Members(matching, [])
    room = max(0, template.desired - (len(matching) - len(unrecorded)))
    refused = sorted(unrecorded, key=lambda node: node.metadata.name)[room:]
    refused_names = {node.metadata.name for node in refused}
    return Members([node for node in matching if node.metadata.name not in refused_names], refused)
