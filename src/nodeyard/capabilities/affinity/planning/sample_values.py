"""Sample values for one key of a class, which stand for all others.

A class distinguishes only a few values of a label: those it names, the numbers between its bounds, any other text, and
none. For a pod's domain it is therefore enough to try one value of each sort that the domain allows.

The mask of a value has a bit for every box of the class that admits it. A mask with all the bits of another one is no
better at escaping the class, so only the minimal masks are kept, each with a sample value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from nodeyard.capabilities.affinity.planning.value_sets import (
    NUMBERS,
    Box,
    Domain,
    base_of,
    fresh_number,
    fresh_text,
    overlap,
)

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
