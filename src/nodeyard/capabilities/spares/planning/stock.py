"""The spares that are there to be claimed, shelved so that no template has to look at every node.

Templates ask about few labels, mostly the same ones. Spares are shelved by the labels that some selector asks about;
all that lie on one shelf look the same to it, so a selector is tried once per shelf and not once per node. Where it
insists on a value, only the spares with that value are shelved for it. An `Aisle` is a shelf in the order of one
spread: by zone and then by name, with a mark per zone up to which everything is gone. Marks only move forward, which is
what keeps the whole plan linear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from nodeyard.capabilities.spares.planning.templates import ONE_OF, Resolved
from nodeyard.capabilities.spares.snapshot import is_ready, owner_elsewhere
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node, Pod
from nodeyard.kube.selectors import LabelSelector, Operator

Labels = tuple[str, ...]
Values = tuple[str | None, ...]
Eligible = tuple[bool, bool]
Anchor = tuple[str, Labels] | None
"""A label and its values, one of which every spare has that a selector can match."""


class Spare:
    """One node of the stock. `gone` once it is claimed or held; `refusal` where nobody may have it."""

    __slots__ = ("gone", "holder", "name", "node", "pods", "refusal", "taker")

    def __init__(self, node: Node, pods: Mapping[str, Sequence[Pod]] | None) -> None:
        self.node = node
        self.name = node.metadata.name
        self.pods = pods
        self.refusal = _standing_refusal(node)
        self.gone = self.refusal is not None
        self.taker = ""
        self.holder = ""

    def refused(self, eligible: Eligible) -> Reason | None:
        """Why a template that asks for this may not have it."""
        if self.refusal is not None:
            return self.refusal
        needs_ready, needs_empty = eligible
        if needs_ready and not is_ready(self.node):
            return Reason.NOT_READY
        if not needs_empty:
            return None
        if self.pods is None:
            return Reason.PODS_UNKNOWN
        return Reason.NOT_EMPTY if self.pods.get(self.name) else None


def _standing_refusal(node: Node) -> Reason | None:
    if node.metadata.deletion_timestamp is not None:
        return Reason.NODE_DELETING
    return Reason.OWNED_ELSEWHERE if owner_elsewhere(node) else None


class Aisle:
    """The eligible spares of one shelf by zone and name."""

    __slots__ = ("marks", "zones")

    def __init__(self, spares: Iterable[Spare], eligible: Eligible, topology_key: str) -> None:
        zones: defaultdict[str, list[Spare]] = defaultdict(list)
        for spare in spares:
            if not spare.gone and spare.refused(eligible) is None:
                zones[spare.node.metadata.labels.get(topology_key, "")].append(spare)
        self.zones: dict[str, list[Spare]] = dict(zones)
        self.marks: dict[str, int] = dict.fromkeys(zones, 0)

    def next_in(self, zone: str) -> Spare | None:
        """The first that is not gone. A zone in which all are gone is not looked into again."""
        spares = self.zones.get(zone)
        if spares is None:
            return None
        mark = self.marks[zone]
        while mark < len(spares) and spares[mark].gone:
            mark += 1
        self.marks[zone] = mark
        if mark < len(spares):
            return spares[mark]
        del self.zones[zone]
        return None


class Place(NamedTuple):
    """One shelf: the labels by which it was made, their values, and what lies there, by name."""

    keys: Labels
    values: Values
    spares: list[Spare]


def as_labels(keys: Labels, values: Values) -> dict[str, str]:
    return {key: value for key, value in zip(keys, values, strict=True) if value is not None}


def _is_lasting(template: Resolved, place: Place) -> bool:
    return not template.touches_selector or template.keeps(as_labels(place.keys, place.values))


class Shelves:
    """Spares by the values of one set of labels."""

    __slots__ = ("keys", "places")

    def __init__(self, keys: Labels, spares: Iterable[Spare]) -> None:
        self.keys = keys
        places: defaultdict[Values, list[Spare]] = defaultdict(list)
        for spare in spares:
            get = spare.node.metadata.labels.get
            places[tuple([get(key) for key in keys])].append(spare)
        self.places: dict[Values, list[Spare]] = dict(places)

    def matching(self, selector: LabelSelector) -> list[Place]:
        """The shelves that a selector matches, all of each."""
        return [
            Place(self.keys, values, spares)
            for values, spares in self.places.items()
            if selector.matches(as_labels(self.keys, values))
        ]


class Catalogue:
    """Who has which value of the labels that selectors ask about; found in one pass over the stock."""

    def __init__(self, spares: list[Spare], selectors: Iterable[LabelSelector]) -> None:
        self._spares = spares
        asked = {requirement.key for selector in selectors for requirement in selector.requirements}
        self._values: dict[str, dict[str, list[Spare]]] = {}
        for spare in spares:
            for key, value in spare.node.metadata.labels.items():
                if key in asked:
                    self._values.setdefault(key, {}).setdefault(value, []).append(spare)
        self._shelves: dict[tuple[Labels, Anchor], Shelves] = {}

    def shelves(self, selector: LabelSelector) -> Shelves:
        """Shelves that hold all that the selector can match, and as little else as possible."""
        keys = tuple(dict.fromkeys(each.key for each in selector.requirements if each.key in self._values))
        anchor = self._anchor(selector)
        shelves = self._shelves.get((keys, anchor))
        if shelves is None:
            shelves = self._shelves[keys, anchor] = Shelves(keys, self._anchored(anchor))
        return shelves

    def _anchor(self, selector: LabelSelector) -> Anchor:
        """The values that fewest spares have, of those that the selector insists on; None where it only excludes."""
        best: Anchor = None
        fewest = len(self._spares)
        for requirement in selector.requirements:
            of_key = self._values.get(requirement.key, {})
            if requirement.operator in ONE_OF:
                values = tuple(sorted(value for value in set(requirement.values) if value in of_key))
            elif requirement.operator is Operator.EXISTS:
                values = tuple(sorted(of_key))
            else:
                continue
            size = sum(len(of_key[value]) for value in values)
            if best is None or size < fewest:
                best, fewest = (requirement.key, values), size
        return best

    def _anchored(self, anchor: Anchor) -> Iterable[Spare]:
        if anchor is None:
            return self._spares
        key, values = anchor
        found = [spare for value in values for spare in self._values[key][value]]
        return found if len(values) == 1 else sorted(found, key=lambda spare: spare.name)


class Stock:
    """All spares of a plan, and what has become of them so far."""

    def __init__(
        self,
        nodes: Iterable[Node],
        pods: Mapping[str, Sequence[Pod]] | None,
        selectors: Iterable[LabelSelector],
    ) -> None:
        self.spares = [Spare(node, pods) for node in nodes]
        self.claimed: dict[str, Spare] = {}
        self.holds = 0
        self.has_refused = any(spare.refusal is not None for spare in self.spares)
        self._catalogue = Catalogue(self.spares, selectors)
        self._places: dict[LabelSelector, list[Place]] = {}
        self._aisles: dict[tuple[Labels, Values, Eligible, str], Aisle] = {}

    def places(self, selector: LabelSelector) -> list[Place]:
        found = self._places.get(selector)
        if found is None:
            found = [] if selector.is_nothing else self._catalogue.shelves(selector).matching(selector)
            self._places[selector] = found
        return found

    def aisles(self, template: Resolved) -> list[Aisle]:
        """Where a template may take from. Shelves whose nodes it would lose by its own labels are left out."""
        return [
            self._aisle(place, template.eligibility, template.topology_key)
            for place in self.places(template.selector)
            if _is_lasting(template, place)
        ]

    def loses(self, template: Resolved) -> bool:
        """Whether there are spares that the template matches, and would not match any more as its own."""
        return not all(_is_lasting(template, place) for place in self.places(template.selector))

    def _aisle(self, place: Place, eligible: Eligible, topology_key: str) -> Aisle:
        where = (place.keys, place.values, eligible, topology_key)
        aisle = self._aisles.get(where)
        if aisle is None:
            aisle = self._aisles[where] = Aisle(place.spares, eligible, topology_key)
        return aisle

    def matching(self, selector: LabelSelector) -> Iterable[Spare]:
        """Every spare that a selector matches, whatever has become of it."""
        for place in self.places(selector):
            yield from place.spares

    @contextmanager
    def rehearsal(self, aisles: Iterable[Aisle]) -> Iterator[list[Spare]]:
        """Put back, at the end, all that was picked from these aisles and is listed."""
        before = [(aisle, dict(aisle.zones), dict(aisle.marks)) for aisle in aisles]
        picked: list[Spare] = []
        yield picked
        for spare in picked:
            spare.gone = False
        for aisle, zones, marks in before:
            aisle.zones, aisle.marks = zones, marks

    def claim(self, spare: Spare, template: str) -> None:
        spare.gone = True
        spare.taker = template
        self.claimed[spare.name] = spare

    def hold(self, template: Resolved) -> None:
        """Keep what is left of a template's spares from those below it: it waits for them to become eligible."""
        for place in self.places(template.selector):
            aisle = self._aisle(place, (False, False), template.topology_key)
            for zone in list(aisle.zones):
                while (spare := aisle.next_in(zone)) is not None:
                    spare.gone = True
                    spare.holder = template.name
                    self.holds += 1
