"""Label selectors: requirements that all must hold, compiled into one function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from nodeyard.kube.fields import FieldError, index, invalid, key
from nodeyard.kube.names import label_value_faults, qualified_name_faults

Labels = Mapping[str, str]
Matcher = Callable[[Labels], bool]


class SelectorError(ValueError):
    """The selector is invalid. The text is the message of the 400 with which the API server answers a list."""


class Operator(Enum):
    """Operators of requirements; the value is the name in the API."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER = "gt"
    LESS = "lt"


BINARY: Final = (
    Operator.IN,
    Operator.NOT_IN,
    Operator.EQUALS,
    Operator.DOUBLE_EQUALS,
    Operator.NOT_EQUALS,
    Operator.GREATER,
    Operator.LESS,
)
_EXACT: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS)
SETS: Final = (Operator.IN, Operator.NOT_IN)
UNARY: Final = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
ORDERED: Final = (Operator.GREATER, Operator.LESS)

OF_TOKEN: Final = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER,
    "<": Operator.LESS,
}
_MANY: Final = 16
_SYMBOL: Final = {operator: token for token, operator in OF_TOKEN.items()}


class Requirement(NamedTuple):
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in SETS:
            return f"{self.key} {_SYMBOL[self.operator]} ({values})"
        return f"{self.key}{_SYMBOL[self.operator]}{values}"


class LabelSelector:
    """Requirements that all must hold. `matches` is compiled when the selector is created."""

    __slots__ = ("is_nothing", "matches", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, is_nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self.is_nothing = is_nothing
        self.matches: Matcher = _nothing_matches if is_nothing else _compile(self.requirements)

    @property
    def empty(self) -> bool:
        """True if it selects everything."""
        return not self.requirements and not self.is_nothing

    def exact(self, label: str) -> str | None:
        """Return the only value that the selector allows for a label; None if it allows several."""
        for requirement in self.requirements:
            if requirement.key == label:
                single = requirement.operator in (*_EXACT, Operator.IN) and len(requirement.values) == 1
                return requirement.values[0] if single else None
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"LabelSelector({'nothing' if self.is_nothing else str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.requirements == other.requirements and self.is_nothing == other.is_nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self.is_nothing))


# matching


def _compile(requirements: Sequence[Requirement]) -> Matcher:
    if not requirements:
        return _everything_matches
    if all(requirement.operator in _EXACT for requirement in requirements):
        return _pairs_matcher([(requirement.key, requirement.values[0]) for requirement in requirements])
    if len(requirements) > _MANY:
        return _many_matcher(requirements)
    matchers = [_matcher(requirement) for requirement in requirements]
    if len(matchers) == 1:
        return matchers[0]
    return lambda labels: all(matcher(labels) for matcher in matchers)


def _many_matcher(requirements: Iterable[Requirement]) -> Matcher:
    """Return a matcher whose cost depends on the labels of an object, not on the number of requirements.

    A request of 8 KB can have thousands of them.
    """
    absent: set[str] = set()
    denied: dict[str, set[str]] = {}
    others: dict[tuple[str, Operator], Requirement] = {}
    for each in requirements:
        label, operator, values = each
        if operator is Operator.DOES_NOT_EXIST:
            absent.add(label)
        elif operator in (Operator.NOT_IN, Operator.NOT_EQUALS):
            denied.setdefault(label, set()).update(values)
        else:
            sort = Operator.IN if operator in _EXACT else operator
            known = others.get((label, sort))
            others[label, sort] = each if known is None else _narrower(known, each)
    matchers = [_matcher(each) for each in others.values()]

    def matches(labels: Labels) -> bool:
        return (
            # A missing label ends this at once.
            all(matcher(labels) for matcher in matchers)
            and absent.isdisjoint(labels)
            and not any(value in denied.get(label, ()) for label, value in labels.items())
        )

    return matches


def _narrower(one: Requirement, other: Requirement) -> Requirement:
    """Return what two requirements of one sort on one label, none of them negative, require together."""
    label, operator, values = one
    if operator is Operator.EXISTS:
        return one
    if operator in ORDERED:
        bounds = (int(values[0]), int(other.values[0]))
        return Requirement(label, operator, (str(max(bounds) if operator is Operator.GREATER else min(bounds)),))
    return Requirement(label, Operator.IN, tuple({*values} & {*other.values}))


def _everything_matches(labels: Labels) -> bool:
    return True


def _nothing_matches(labels: Labels) -> bool:
    return False


def _pairs_matcher(pairs: Sequence[tuple[str, str]]) -> Matcher:
    """Return a matcher of plain equality, by far the most common selector."""
    pairs = list(dict.fromkeys(pairs))
    if len(pairs) == 1:
        [(label, wanted)] = pairs
        return lambda labels: labels.get(label) == wanted
    return lambda labels: all(labels.get(label) == wanted for label, wanted in pairs)


def _matcher(requirement: Requirement) -> Matcher:
    label, operator, values = requirement
    if operator is Operator.EXISTS:
        return lambda labels: label in labels
    if operator is Operator.DOES_NOT_EXIST:
        return lambda labels: label not in labels
    if operator in ORDERED:
        return _order_matcher(label, operator is Operator.GREATER, int(values[0]))
    choices = frozenset(values)
    if operator in (Operator.NOT_IN, Operator.NOT_EQUALS):
        return lambda labels: labels.get(label) not in choices
    return lambda labels: labels.get(label) in choices


def _order_matcher(label: str, is_greater: bool, bound: int) -> Matcher:
    def matches(labels: Labels) -> bool:
        number = int64(labels.get(label, ""))
        if number is None:
            return False
        return number > bound if is_greater else number < bound

    return matches


# Leading zeros are split off: Python refuses very long numbers, Go only those that are too large.
_INTEGER_RE: Final = re.compile("([+-]?)0*([0-9]{1,19})")


def int64(text: str) -> int | None:
    """Return the integer that `Gt` and `Lt` read from a label value; None if it is not one."""
    match = _INTEGER_RE.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if -(2**63) <= number < 2**63 else None


# checking


def requirement_errors(requirement: Requirement) -> list[FieldError]:
    errors = []
    label, operator, values = requirement
    if faults := qualified_name_faults(label):
        errors.append(invalid("key", label, "; ".join(faults)))
    if operator in SETS and not values:
        errors.append(invalid("values", list(values), "for 'in', 'notin' operators, values set can't be empty"))
    if operator in UNARY and values:
        errors.append(invalid("values", list(values), "values set must be empty for exists and does not exist"))
    if operator in ORDERED and int64(values[0]) is None:
        errors.append(invalid("values[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer"))
    for position, value in enumerate(values):
        if faults := label_value_faults(value):
            errors.append(invalid(key(index("values", position), label), value, "; ".join(faults)))
    return errors


def join_errors(errors: Sequence[FieldError]) -> str:
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
