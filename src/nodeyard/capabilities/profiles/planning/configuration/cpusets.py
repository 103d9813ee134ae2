"""Parse CPU sets of nova, and check that the shared and the dedicated set do not overlap.

    4-12,^8,15       4 to 12 except 8, and 15; exclusions apply wherever they are

nova-compute does not start if the sets overlap. They may come from different files, and the last value of an option
wins, so the check needs all files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from nodeyard.capabilities.profiles.planning.configuration.ini import Checked, Option, normal_section, quoted, shortened

SECTION: Final = "compute"
SHARED: Final = "cpu_shared_set"
DEDICATED: Final = "cpu_dedicated_set"
HIGHEST: Final = 65_535
"""Upper bound of CPU numbers; without it a typing error could exhaust the memory of the parser."""

_NUMBER = re.compile("[0-9]{1,9}")
_IS_QUOTABLE: Final = re.compile(r"[0-9,^\s-]*", re.ASCII).fullmatch
"""Other values are not quoted: an indented line below, by mistake, may hold a password."""


class Malformed(ValueError):
    """Text is not a CPU set; the message has the fault and the syntax."""


@dataclass(frozen=True)
class Source:
    """Parsed text and its name in messages."""

    name: str
    checked: Checked


def parse(text: str) -> frozenset[int]:
    # One bit per CPU, so many wide ranges stay cheap.
    taken = excluded = 0
    for part in filter(None, map(str.strip, text.split(","))):
        if part[0] == "^":
            excluded |= _bits(part[1:], part)
        else:
            taken |= _bits(part, part)
    if not taken:
        raise Malformed("contains no CPU; write a set as 4-12,^8,15")
    left = taken & ~excluded
    if not left:
        raise Malformed("excludes every CPU that it contains")
    return frozenset(cpu for cpu, bit in enumerate(reversed(f"{left:b}")) if bit == "1")


def format_cpus(cpus: Iterable[int]) -> str:
    """Format a set in its shortest form."""
    runs = groupby(enumerate(sorted(cpus)), key=lambda each: each[1] - each[0])
    bounds = ((cpus[0], cpus[-1]) for cpus in ([cpu for _, cpu in run] for _, run in runs))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in bounds)


def faults(checked: Checked) -> list[str]:
    """Return syntax faults of the CPU sets of one text."""
    return [
        f"line {option.line}: [{SECTION}] {_assigned(option)} {fault}"
        for option in checked.options
        if _is_cpu_set(option) and option.value and (fault := _fault(option.value))
    ]


def overlap_faults(sources: Sequence[Source]) -> list[str]:
    """Return faults of overlapping sets, given all texts in reading order; the last value wins."""
    shared, dedicated = _winner(sources, SHARED), _winner(sources, DEDICATED)
    if shared is None or dedicated is None:
        return []
    both = _parse_or_empty(shared.value) & _parse_or_empty(dedicated.value)
    if not both:
        return []
    return [
        f"[{SECTION}] {shared} and {dedicated} overlap in CPUs {shortened(format_cpus(both))}; "
        "a CPU is either shared or dedicated: remove them from one of the two"
    ]


@dataclass(frozen=True)
class _Winner:
    option: Option
    source: str

    @property
    def value(self) -> str:
        return self.option.value

    def __str__(self) -> str:
        return f"{_assigned(self.option)} ({self.source}, line {self.option.line})"


def _winner(sources: Sequence[Source], name: str) -> _Winner | None:
    found = (
        _Winner(option, source.name)
        for source in reversed(sources)
        for option in reversed(source.checked.options)
        if _is_cpu_set(option) and option.name == name
    )
    return next(found, None)


def _is_cpu_set(option: Option) -> bool:
    return normal_section(option.section) == SECTION and option.name in (SHARED, DEDICATED)


def _bits(text: str, part: str) -> int:
    first, dash, last = (each.strip() for each in text.partition("-"))
    numbers = (first, last) if dash else (first, first)
    if not all(map(_NUMBER.fullmatch, numbers)):
        what = f"{quoted(part)}, which" if _IS_QUOTABLE(part) else "a part that"
        raise Malformed(f"has {what} is neither a CPU nor a CPU range; write a set as 4-12,^8,15")
    begin, end = map(int, numbers)
    if begin > end:
        raise Malformed(f"has {quoted(part)}, a range that ends before it begins; write it as {end}-{begin}")
    if end > HIGHEST:
        raise Malformed(f"has {quoted(part)}; CPUs are numbered from 0 to {HIGHEST}")
    return (1 << end + 1) - (1 << begin)


def _assigned(option: Option) -> str:
    return f"{option.name} = {quoted(option.value)}" if _IS_QUOTABLE(option.value) else option.name


def _fault(value: str) -> str:
    try:
        parse(value)
    except Malformed as fault:
        return str(fault)
    return ""


def _parse_or_empty(value: str) -> frozenset[int]:
    """Parse a set; empty if unset, or if malformed, which `faults` reports."""
    return frozenset() if not value or _fault(value) else parse(value)
