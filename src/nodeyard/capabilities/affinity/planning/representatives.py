"""One key of a class, and the few values that stand for all others.

However many values a label can have, a class tells only a few apart: those it names, the numbers between its bounds,
any other text, and none. So for a pod's domain it is enough to try one value of each sort that the domain allows.

What a value is worth is written as a mask with a bit for every box of the class: set where the box admits the value.
A mask that has all the bits of another one is no better at escaping the class, so only the smallest are kept, each with
a value to show for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from nodeyard.capabilities.affinity.planning.domains import NUMBERS, Domain, fresh_number, fresh_text, overlap
from nodeyard.capabilities.affinity.planning.terms import Box, base_of

Value: TypeAlias = str | None
"""None where the label is absent."""


class Choice(NamedTuple):
    """What a pod may find under one key: the boxes of the class it is then still in, and a value that shows it."""

    mask: int
    value: Value


class ClassKey(NamedTuple):
    """A key that decides whether a node is in the class."""

    key: str
    indifferent: int
    """The boxes that leave it open."""
    domains: tuple[tuple[int, Domain], ...]
    """The others, each by its bit."""
    names: tuple[str, ...]
    """Every value the class names, in its order."""
    pieces: tuple[range, ...]
    """Numbers that the class does not tell apart; none where it does not compare."""
    unconstrained: tuple[Choice, ...]
    """What a pod finds that does not ask for the key."""

    def mask_of(self, value: Value) -> int:
        return sum(bit for bit, domain in self.domains if domain.allows(value)) | self.indifferent

    def choices(self, domain: Domain) -> Sequence[Choice]:
        """What a pod finds that may find this."""
        masks: dict[int, Value] = {}
        for value in representatives(domain, self.names, self.pieces):
            masks.setdefault(self.mask_of(value), value)
        return _smallest(masks)


def representatives(domain: Domain, names: Sequence[str], pieces: Sequence[range]) -> Iterator[Value]:
    """A value of every sort that the domain allows."""
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


def _smallest(masks: Mapping[int, Value]) -> tuple[Choice, ...]:
    return tuple(
        Choice(mask, value)
        for mask, value in masks.items()
        if not any(other != mask and other & mask == other for other in masks)
    )


def class_keys(class_boxes: Sequence[Box]) -> tuple[ClassKey, ...]:
    """The keys of a class in the order in which it names them."""
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
