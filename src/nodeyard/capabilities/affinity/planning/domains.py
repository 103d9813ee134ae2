"""What one label may be: a set of values, or of numbers, with or without those nodes that lack the label.

Every operator of a node selector narrows such a set, so all the requirements of one term on one key make one `Domain`:

    zone Exists, zone NotIn [a, b]      present, neither a nor b
    cores Gt 4, cores NotIn [8]         a whole number from 5, not spelled "8" (but perhaps "08")
    zone In [a], zone NotIn [a]         empty

A label's value is never negative, for it cannot begin with a sign, and is at most 63 characters long: `Lt 1` leaves
sixty-three spellings of zero, `Lt 0` nothing. A domain is empty when no label that the API server accepts is in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, count, islice
from typing import Final, NamedTuple

from nodeyard.kube.names import LABEL_VALUE_MAX
from nodeyard.kube.selectors import Operator, Requirement
from nodeyard.kube.selectors.labels import int64

NUMBERS: Final = range(2**63)
"""All that `Gt` and `Lt` can tell apart."""

_NO_VALUES: Final[frozenset[str]] = frozenset()


class Domain(NamedTuple):
    """Where `values` are known, the rest is settled: they lie in `numbers` and none of them is excluded."""

    is_optional: bool = True
    """A node without the label is in it."""
    values: frozenset[str] | None = None
    """All there are; None if they cannot be listed."""
    excluded: frozenset[str] = _NO_VALUES
    numbers: range | None = None
    """Only whole numbers of this range; None if any text will do."""

    def allows(self, value: str | None) -> bool:
        """Whether a node with this value, or without the label, is in it."""
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


def narrowed(domain: Domain, requirement: Requirement) -> Domain:
    """What is left of a domain when the requirement has to hold, too."""
    operator = requirement.operator
    if operator is Operator.EXISTS:
        return domain._replace(is_optional=False)
    if operator is Operator.DOES_NOT_EXIST:
        return Domain(is_optional=domain.is_optional, values=_NO_VALUES)
    if operator is Operator.IN:
        return among(domain, requirement.values)
    if operator is Operator.NOT_IN:
        return without(domain, requirement.values)
    bound = int64(requirement.values[0]) or 0
    return _within(domain, range(bound + 1, NUMBERS.stop) if operator is Operator.GREATER else range(bound))


def among(domain: Domain, values: Iterable[str]) -> Domain:
    return only(filter(domain.allows, values))


def without(domain: Domain, values: Collection[str]) -> Domain:
    if domain.values is not None:
        return domain._replace(values=domain.values.difference(values))
    return domain._replace(excluded=domain.excluded.union(values))


def _within(domain: Domain, numbers: range) -> Domain:
    if domain.values is not None:
        return only(value for value in domain.values if _is_number(value, numbers))
    shared = numbers if domain.numbers is None else overlap(domain.numbers, numbers)
    return Domain(is_optional=False, excluded=domain.excluded, numbers=shared)


def _is_number(value: str, numbers: range) -> bool:
    number = int64(value)
    return number is not None and number in numbers


def overlap(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


# values that nobody has named


def fresh_number(numbers: range, taken: Collection[str]) -> str | None:
    """A number of this range in a spelling that is not taken, if there is one; plain before zero-padded."""
    spellings = chain(map(str, islice(numbers, len(taken) + 1)), _padded(numbers))
    return next((spelling for spelling in spellings if spelling not in taken), None)


def _padded(numbers: range) -> Iterator[str]:
    for number in numbers:
        for width in range(len(str(number)) + 1, LABEL_VALUE_MAX + 1):
            yield f"{number:0{width}d}"


def fresh_text(taken: Collection[str]) -> str:
    """A value that is no number and not taken; also a name that a node can have."""
    candidates = chain(("other",), (f"other-{position}" for position in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)
