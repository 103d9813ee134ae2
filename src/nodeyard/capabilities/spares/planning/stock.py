"""The spares that are there to be claimed, shelved so that no template has to look at every node.

Templates ask about few labels, mostly the same ones. Spares are shelved once for every set of labels that some selector
asks about; all that lie on one shelf look the same to it, so a selector is tried once per shelf and not once per node.
Where it names a value, only the shelves with that value are tried. An `Aisle` is a shelf in the order of one spread: by
zone and then by name, with a mark per zone up to which everything is gone. Marks only move forward, which is what keeps
the whole plan linear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from nodeyard.capabilities.spares.planning.templates import Resolved, named_values
from nodeyard.capabilities.spares.snapshot import is_ready, owner_elsewhere
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node, Pod
from nodeyard.kube.selectors import LabelSelector

Labels = tuple[str, ...]
Values = tuple[str | None, ...]
Eligible = tuple[bool, bool]


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
        """The first that is not gone."""
        spares = self.zones[zone]
        mark = self.marks[zone]
        while mark < len(spares) and spares[mark].gone:
            mark += 1
        self.marks[zone] = mark
        return spares[mark] if mark < len(spares) else None


def as_labels(keys: Labels, values: Values) -> dict[str, str]:
    return {key: value for key, value in zip(keys, values, strict=True) if value is not None}


class Shelves:
    """The spares by the values of one set of labels."""

    __slots__ = ("_by_value", "keys", "places")

    def __init__(self, keys: Labels, spares: Iterable[Spare]) -> None:
        self.keys = keys
        places: defaultdict[Values, list[Spare]] = defaultdict(list)
        for spare in spares:
            get = spare.node.metadata.labels.get
            places[tuple([get(key) for key in keys])].append(spare)
        self.places: dict[Values, list[Spare]] = dict(places)
        self._by_value: dict[int, dict[str | None, list[Values]]] = {}

    def matching(self, selector: LabelSelector) -> list[Values]:
        return [values for values in self._narrowed(selector) if selector.matches(as_labels(self.keys, values))]

    def _narrowed(self, selector: LabelSelector) -> Iterable[Values]:
        """The shelves worth trying: those with the value that the selector names, where it names one."""
        for position, key in enumerate(self.keys):
            values = named_values(selector, key)
            if values is not None:
                index = self._index(position)
                return [place for value in dict.fromkeys(values) for place in index.get(value, ())]
        return self.places

    def _index(self, position: int) -> dict[str | None, list[Values]]:
        index = self._by_value.get(position)
        if index is None:
            index = self._by_value[position] = {}
            for values in self.places:
                index.setdefault(values[position], []).append(values)
        return index


class Stock:
    """All spares of a plan, and what has become of them so far."""

    def __init__(self, nodes: Iterable[Node], pods: Mapping[str, Sequence[Pod]] | None) -> None:
        self.spares = [Spare(node, pods) for node in nodes]
        self.claimed: dict[str, Spare] = {}
        self.holds = 0
        self.has_refused = any(spare.refusal is not None for spare in self.spares)
        self._shelves: dict[Labels, Shelves] = {}
        self._places: dict[LabelSelector, list[tuple[Labels, Values]]] = {}
        self._aisles: dict[tuple[Labels, Values, Eligible, str], Aisle] = {}

    def places(self, selector: LabelSelector) -> list[tuple[Labels, Values]]:
        """The shelves that a selector matches, all of each."""
        found = self._places.get(selector)
        if found is None:
            keys = tuple(dict.fromkeys(requirement.key for requirement in selector.requirements))
            found = [] if selector.is_nothing else [(keys, values) for values in self._shelved(keys).matching(selector)]
            self._places[selector] = found
        return found

    def _shelved(self, keys: Labels) -> Shelves:
        shelves = self._shelves.get(keys)
        if shelves is None:
            shelves = self._shelves[keys] = Shelves(keys, self.spares)
        return shelves

    def aisles(self, template: Resolved) -> list[Aisle]:
        """Where a template may take from. Shelves whose nodes it would lose by its own labels are left out."""
        return [
            self._aisle(keys, values, template.eligibility, template.topology_key)
            for keys, values in self.places(template.selector)
            if not template.touches_selector or template.keeps(as_labels(keys, values))
        ]

    def _aisle(self, keys: Labels, values: Values, eligible: Eligible, topology_key: str) -> Aisle:
        where = (keys, values, eligible, topology_key)
        aisle = self._aisles.get(where)
        if aisle is None:
            aisle = self._aisles[where] = Aisle(self._shelves[keys].places[values], eligible, topology_key)
        return aisle

    def matching(self, selector: LabelSelector) -> Iterable[Spare]:
        """Every spare that a selector matches, whatever has become of it."""
        for keys, values in self.places(selector):
            yield from self._shelves[keys].places[values]

    @contextmanager
    def rehearsal(self, aisles: Iterable[Aisle]) -> Iterator[list[Spare]]:
        """Put back, at the end, all that was picked from these aisles and is listed."""
        marks = [(aisle, dict(aisle.marks)) for aisle in aisles]
        picked: list[Spare] = []
        yield picked
        for spare in picked:
            spare.gone = False
        for aisle, before in marks:
            aisle.marks = before

    def claim(self, spare: Spare, template: str) -> None:
        spare.gone = True
        spare.taker = template
        self.claimed[spare.name] = spare

    def hold(self, template: Resolved) -> None:
        """Keep what is left of a template's spares from those below it: it waits for them to become eligible."""
        for keys, values in self.places(template.selector):
            aisle = self._aisle(keys, values, (False, False), template.topology_key)
            for zone in aisle.zones:
                while (spare := aisle.next_in(zone)) is not None:
                    spare.gone = True
                    spare.holder = template.name
                    self.holds += 1
