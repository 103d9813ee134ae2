"""Sets of values of one label: texts or numbers, with or without the absence of the label.

A box maps each key of a selector term to such a set: the scheduler never places a pod outside its boxes. The
nodeSelector applies in addition to every term, so it narrows each box. A box with an empty set contains no node and is
dropped. A key that a box does not have may have any value.

Every operator of a node selector narrows such a set, so the requirements of one term on one key make one `Domain`:

    zone Exists, zone NotIn [a, b]      present, neither a nor b
    cores Gt 4, cores NotIn [8]         a whole number from 5, not spelled "8" (but perhaps "08")
    zone In [a], zone NotIn [a]         empty

A label value cannot begin with a sign, so it is never negative, and has at most 63 characters: `Lt 1` leaves 63
spellings of zero, `Lt 0` nothing. A domain is empty if it contains no label that the API server accepts.

Sample values for one key of a class stand for all others. A class distinguishes only a few values of a label: those it
names, the numbers between its bounds, any other text, and none. For a pod's domain it is therefore enough to try one
value of each sort that the domain allows.

The mask of a value has a bit for every box of the class that admits it. A mask with all the bits of another one is no
better at escaping the class, so only the minimal masks are kept, each with a sample value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice, pairwise
from typing import Final, NamedTuple, TypeAlias

from nodeyard.kube.names import LABEL_VALUE_MAX
from nodeyard.kube.node_affinity import NodeSelector, ParsedTerm, parse_terms
from nodeyard.kube.selectors import Operator, Requirement
from nodeyard.kube.selectors.labels import int64

NUMBERS: Final = range(2**63)
"""The numbers that `Gt` and `Lt` can distinguish."""

_NO_VALUES: Final[frozenset[str]] = frozenset()


class Domain(NamedTuple):
    """A set of label values. `values`, if set, is the whole set: `excluded` and `numbers` are already applied."""

    is_optional: bool = True
    """The domain contains nodes without the label."""
    values: frozenset[str] | None = None
    """All values; None if they cannot be listed."""
    excluded: frozenset[str] = _NO_VALUES
    numbers: range | None = None
    """Only whole numbers in this range; None if any text is allowed."""

    def allows(self, value: str | None) -> bool:
        """Return whether the domain contains a value; None stands for the absent label."""
        if value is None:
            return self.is_optional
        if self.values is not None:
            return value in self.values
        if value in self.excluded:
            return False
        return self.numbers is None or _is_number(value, self.numbers)

    @property
    def is_empty(self) -> bool:
        if self.is_optional:
            return False
        if self.values is not None:
            return not self.values
        return self.numbers is not None and fresh_number(self.numbers, self.excluded) is None


ANY: Final = Domain()
PRESENT: Final = Domain(is_optional=False)


def only(values: Iterable[str]) -> Domain:
    return Domain(is_optional=False, values=frozenset(values))


def narrow(domain: Domain, requirement: Requirement) -> Domain:
    """Narrow a domain by a requirement."""
    operator = requirement.operator
    if operator is Operator.EXISTS:
        return domain._replace(is_optional=False)
    if operator is Operator.DOES_NOT_EXIST:
        return Domain(is_optional=domain.is_optional, values=_NO_VALUES)
    if operator is Operator.IN:
        return intersect(domain, requirement.values)
    if operator is Operator.NOT_IN:
        return exclude(domain, requirement.values)
    bound = int64(requirement.values[0]) or 0
    return _restrict_numbers(domain, range(bound + 1, NUMBERS.stop) if operator is Operator.GREATER else range(bound))


def intersect(domain: Domain, values: Iterable[str]) -> Domain:
    return only(filter(domain.allows, values))


def exclude(domain: Domain, values: Collection[str]) -> Domain:
    if domain.values is not None:
        return domain._replace(values=domain.values.difference(values))
    return domain._replace(excluded=domain.excluded.union(values))


def _restrict_numbers(domain: Domain, numbers: range) -> Domain:
    if domain.values is not None:
        return only(value for value in domain.values if _is_number(value, numbers))
    shared = numbers if domain.numbers is None else overlap(domain.numbers, numbers)
    return Domain(is_optional=False, excluded=domain.excluded, numbers=shared)


def _is_number(value: str, numbers: range) -> bool:
    number = int64(value)
    return number is not None and number in numbers


def overlap(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


# fresh values


def fresh_number(numbers: range, taken: Collection[str]) -> str | None:
    """Return a number of this range in a spelling that is not taken, plain before zero-padded; else None."""
    spellings = chain(map(str, islice(numbers, len(taken) + 1)), _padded(numbers))
    return next((spelling for spelling in spellings if spelling not in taken), None)


def _padded(numbers: range) -> Iterator[str]:
    for number in numbers:
        for width in range(len(str(number)) + 1, LABEL_VALUE_MAX + 1):
            yield f"{number:0{width}d}"


def fresh_text(taken: Collection[str]) -> str:
    """Return a value that is not a number and not taken; it is also a valid node name."""
    candidates = chain(("other",), (f"other-{position}" for position in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)


# boxes

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


# sample values


Value: TypeAlias = str | None
"""None where the label is absent."""


class Choice(NamedTuple):
    """A sample value of one key, with the mask of the class's boxes that admit it."""

    mask: int
    value: Value


class ClassKey(NamedTuple):
    """A key that decides whether a node is in the class."""

    key: str
    indifferent: int
    """Mask of the boxes that do not restrict the key."""
    domains: tuple[tuple[int, Domain], ...]
    """The domains of the other boxes, each with its bit."""
    names: tuple[str, ...]
    """Every value that the class names, in its order."""
    pieces: tuple[range, ...]
    """Ranges of numbers that the class does not distinguish; empty if it has no Gt or Lt."""
    unconstrained: tuple[Choice, ...]
    """The choices of a pod that does not restrict the key."""

    def mask_of(self, value: Value) -> int:
        return sum(bit for bit, domain in self.domains if domain.allows(value)) | self.indifferent

    def choices(self, domain: Domain) -> Sequence[Choice]:
        """Return the choices of a pod that restricts the key to this domain."""
        masks: dict[int, Value] = {}
        for value in sample_values(domain, self.names, self.pieces):
            masks.setdefault(self.mask_of(value), value)
        return _minimal(masks)


def sample_values(domain: Domain, names: Sequence[str], pieces: Sequence[range]) -> Iterator[Value]:
    """Yield one value of every sort that the domain allows."""
    if domain.is_optional:
        yield None
    if domain.values is not None:
        yield from sorted(domain.values)
        return
    yield from filter(domain.allows, names)
    taken = domain.excluded.union(names)
    if domain.numbers is None:
        yield fresh_text(taken)
    else:
        pieces = [overlap(piece, domain.numbers) for piece in pieces or (NUMBERS,)]
    for piece in pieces:
        number = fresh_number(piece, taken)
        if number is not None:
            yield number


def _minimal(masks: Mapping[int, Value]) -> tuple[Choice, ...]:
    return tuple(
        Choice(mask, value)
        for mask, value in masks.items()
        if not any(other != mask and other & mask == other for other in masks)
    )


def class_keys(class_boxes: Sequence[Box]) -> tuple[ClassKey, ...]:
    """Return the keys of a class in the order in which it names them."""
    return tuple(_class_key(key, class_boxes) for key in dict.fromkeys(chain.from_iterable(class_boxes)))


def _class_key(key: str, class_boxes: Sequence[Box]) -> ClassKey:
    domains = tuple((1 << place, box[key]) for place, box in enumerate(class_boxes) if key in box)
    indifferent = sum(1 << place for place, box in enumerate(class_boxes) if key not in box)
    names = tuple(dict.fromkeys(name for _, domain in domains for name in _names(domain)))
    made = ClassKey(key, indifferent, domains, names, _pieces([domain for _, domain in domains]), ())
    return made._replace(unconstrained=tuple(made.choices(base_of(key))))


def _names(domain: Domain) -> Sequence[str]:
    return sorted(domain.excluded if domain.values is None else domain.values)


def _pieces(domains: Sequence[Domain]) -> tuple[range, ...]:
    compared = [domain.numbers for domain in domains if domain.numbers is not None]
    if not compared:
        return ()
    bounds = {NUMBERS.start, NUMBERS.stop}.union(*((numbers.start, numbers.stop) for numbers in compared))
    return tuple(range(start, stop) for start, stop in pairwise(sorted(bounds)))
