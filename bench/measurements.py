"""The results that the repository keeps in bench/results.json; `bench.report` renders them.

A result replaces the one of the same name, so that a few benchmarks can be run again. Each keeps its date and machine.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from bench.harness import Requirement, Result
from nodeyard.testing import versions

PATH = Path(__file__).parent / "results.json"
_UNITS = {" MB": "MB", " ms": "ms", "per second": "1/s", "% of one core": "%", ", s": "s", "seconds": "s"}
"""Units, by what a metric's name ends with; the last also by what it contains."""


class Machine(msgspec.Struct, frozen=True):
    cpu: str
    cores: int
    memory_gb: int
    python: str
    kubernetes: str
    nodeyard: str

    def describe(self) -> str:
        return (
            f"{self.cores} cores of {self.cpu}, {self.memory_gb} GB; Python {self.python}, "
            f"Kubernetes {self.kubernetes}, Nodeyard {self.nodeyard}"
        )


class Row(msgspec.Struct, omit_defaults=True):
    """The median of one metric of one contestant, or with `against` the ratio of two."""

    name: str
    what: str
    value: float
    unit: str = ""
    against: str = ""
    spread: float | None = None
    """(largest - smallest) / median; None after one round."""
    at_least: float | None = None
    at_most: float | None = None
    met: bool | None = None
    """None if nothing is required."""


class Measured(msgspec.Struct):
    benchmark: str
    name: str
    date: str
    machine: Machine
    rounds: int
    rows: list[Row]


def this_machine() -> Machine:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return Machine(
        cpu=models[0].partition(":")[2].strip() if models else platform.machine(),
        cores=os.cpu_count() or 1,
        memory_gb=round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9),
        python=platform.python_version(),
        kubernetes=versions.kubernetes(),
        nodeyard=metadata.version("nodeyard"),
    )


def measured(benchmark: str, result: Result, date: str, machine: Machine) -> Measured:
    medians = result.medians()
    rounds = len(next(iter(result.rounds.values())))
    limits = {(each.numerator, each.metric): each for each in result.requirements if not each.denominator}
    rows = [
        _row(
            Row(name, metric, value, unit(metric), spread=result.spread(name, metric) if rounds > 1 else None),
            limits.get((name, metric)),
        )
        for name, numbers in medians.items()
        for metric, value in numbers.items()
    ]
    rows += [
        _row(Row(each.numerator, each.metric, each.value(medians), against=each.denominator), each)
        for each in result.requirements
        if each.denominator
    ]
    return Measured(benchmark, result.name, date, machine, rounds, rows)


def unit(metric: str) -> str:
    return next((found for end, found in _UNITS.items() if metric.endswith(end)), "s" if "seconds" in metric else "")


def read(path: Path) -> list[Measured]:
    return msgspec.json.decode(path.read_bytes(), type=list[Measured]) if path.exists() else []


def merge(path: Path, new: Measured) -> None:
    """Write the new result and those of other names, ordered by benchmark."""
    kept = [each for each in read(path) if each.name != new.name]
    write(path, sorted([*kept, new], key=lambda each: each.benchmark))


def write(path: Path, results: Sequence[Measured]) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")


def _row(row: Row, required: Requirement | None) -> Row:
    if required is not None:
        row.at_least, row.at_most, row.met = required.at_least, required.at_most, required.is_met(row.value)
    row.value = float(f"{row.value:.6g}")
    row.spread = None if row.spread is None else round(row.spread, 3)
    return row
