"""Sets of CPUs as nova writes them, and whether the shared and the dedicated one are apart.

    4-12,^8,15       4 to 12 but 8, and 15; what is excluded is excluded, wherever it stands

A CPU can be shared by guests or dedicated to one, not both: nova-compute does not start on sets that overlap. They may
come from different files, of which the later wins option by option, so that they are judged together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from nodeyard.capabilities.profiles.configuration.ini import Checked, Option, normal_section, quoted, shortened

SECTION: Final = "compute"
SHARED: Final = "cpu_shared_set"
DEDICATED: Final = "cpu_dedicated_set"
HIGHEST: Final = 65_535
"""No machine has more; without a bound a slip of the finger would fill the memory of whoever reads it."""

_NUMBER = re.compile("[0-9]{1,9}")


class Malformed(ValueError):
    """A text is not a set of CPUs; says what is wrong and how it is written."""


@dataclass(frozen=True)
class Source:
    """A text that options come from, and how to name it."""

    name: str
    checked: Checked


def parse(text: str) -> frozenset[int]:
    # One bit for each CPU: a long text of wide ranges stays cheap.
    taken = excluded = 0
    for part in filter(None, map(str.strip, text.split(","))):
        if part[0] == "^":
            excluded |= _bits(part[1:], part)
        else:
            taken |= _bits(part, part)
    if not taken:
        raise Malformed("names no CPU; write a set as 4-12,^8,15")
    left = taken & ~excluded
    if not left:
        raise Malformed("excludes every CPU that it names")
    return frozenset(cpu for cpu, bit in enumerate(reversed(f"{left:b}")) if bit == "1")


def shown(cpus: Iterable[int]) -> str:
    """The shortest way to write a set."""
    runs = groupby(enumerate(sorted(cpus)), key=lambda each: each[1] - each[0])
    return ",".join(_run([cpu for _, cpu in run]) for _, run in runs)


def faults(checked: Checked) -> list[str]:
    """What is wrong with the sets of one text, each by itself."""
    return [
        f"line {option.line}: [{SECTION}] {option.name} = {quoted(option.value)} {fault}"
        for option in checked.options
        if _is_cpu_set(option) and option.value and (fault := _fault(option.value))
    ]


def overlap_faults(sources: Sequence[Source]) -> list[str]:
    """Whether the sets that count are apart, given all texts in their order, the last of which wins."""
    shared, dedicated = _winner(sources, SHARED), _winner(sources, DEDICATED)
    if shared is None or dedicated is None:
        return []
    both = _readable(shared.value) & _readable(dedicated.value)
    if not both:
        return []
    return [
        f"[{SECTION}] {shared} and {dedicated} have CPUs in common: {shortened(shown(both))}; "
        "a CPU is either shared or dedicated, take them out of one of the two"
    ]


@dataclass(frozen=True)
class _Winner:
    option: Option
    source: str

    @property
    def value(self) -> str:
        return self.option.value

    def __str__(self) -> str:
        return f"{self.option.name} = {quoted(self.value)} ({self.source}, line {self.option.line})"


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
        raise Malformed(f"has {quoted(part)}, which is neither a CPU nor a range of them; write a set as 4-12,^8,15")
    begin, end = map(int, numbers)
    if begin > end:
        raise Malformed(f"has {quoted(part)}, a range that ends before it begins; write it as {end}-{begin}")
    if end > HIGHEST:
        raise Malformed(f"has {quoted(part)}; CPUs are numbered from 0 to {HIGHEST}")
    return (1 << end + 1) - (1 << begin)


def _fault(value: str) -> str:
    try:
        parse(value)
    except Malformed as fault:
        return str(fault)
    return ""


def _readable(value: str) -> frozenset[int]:
    """An empty value unsets the option; a malformed one is told apart."""
    return frozenset() if not value or _fault(value) else parse(value)


def _run(cpus: Sequence[int]) -> str:
    return str(cpus[0]) if len(cpus) == 1 else f"{cpus[0]}-{cpus[-1]}"
