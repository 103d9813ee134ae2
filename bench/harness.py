"""The benchmark harness: contestants run in turns for several rounds, and the medians are compared.

All contestants of a benchmark do the same work and report the same metrics. A `Requirement` bounds the ratio of two
contestants' medians, or one contestant's median. Absolute numbers depend on the machine and are only for orientation.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Numbers = dict[str, float]


@dataclass(frozen=True)
class Contestant:
    """One way to do the work. `run` does it once and returns the metrics."""

    name: str
    run: Callable[[], Numbers]


@dataclass(frozen=True)
class Requirement:
    """Bounds on `numerator / denominator` of one metric, or on the numerator alone if there is no denominator."""

    metric: str
    numerator: str
    denominator: str = ""
    at_least: float | None = None
    at_most: float | None = None

    def describe(self) -> str:
        what = f"{self.metric}: {self.numerator}" + (f" / {self.denominator}" if self.denominator else "")
        bounds = [f">= {self.at_least:g}"] if self.at_least is not None else []
        bounds += [f"<= {self.at_most:g}"] if self.at_most is not None else []
        return f"{what} {' and '.join(bounds)}"

    def value(self, medians: dict[str, Numbers]) -> float:
        top = medians[self.numerator][self.metric]
        return top / medians[self.denominator][self.metric] if self.denominator else top

    def is_met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


@dataclass
class Result:
    """The metrics of all rounds of one benchmark."""

    name: str
    rounds: dict[str, list[Numbers]] = field(default_factory=dict)
    requirements: Sequence[Requirement] = ()
    notes: Sequence[str] = ()
    """Text below the table, such as numbers quoted from another run."""

    def medians(self) -> dict[str, Numbers]:
        return {
            contestant: {metric: statistics.median(r[metric] for r in runs) for metric in runs[0]}
            for contestant, runs in self.rounds.items()
        }

    def spread(self, contestant: str, metric: str) -> float:
        """Return (largest - smallest) / median."""
        values = [numbers[metric] for numbers in self.rounds[contestant]]
        middle = statistics.median(values)
        return (max(values) - min(values)) / middle if middle else 0.0

    def missed(self) -> list[str]:
        medians = self.medians()
        return [
            f"{requirement.describe()}, is {value:.2f}"
            for requirement in self.requirements
            if not requirement.is_met(value := requirement.value(medians))
        ]

    def markdown(self) -> str:
        medians = self.medians()
        contestants = list(medians)
        metrics, rounds = list(medians[contestants[0]]), len(self.rounds[contestants[0]])
        lines = [
            f"### {self.name}",
            "",
            "One round." if rounds == 1 else f"Medians of {rounds} rounds, ± half the range.",
            "",
            f"| | {' | '.join(contestants)} |" + (" ratio |" if len(contestants) == 2 else ""),
            f"|---|{'--:|' * (len(contestants) + (len(contestants) == 2))}",
        ]
        for metric in metrics:
            cells = [f"{medians[c][metric]:,.1f} (±{self.spread(c, metric) / 2:.0%})" for c in contestants]
            if len(contestants) == 2:
                first, second = (medians[c][metric] for c in contestants)
                cells.append(f"{first / second:.2f}" if second else "")
            lines.append(f"| {metric} | {' | '.join(cells)} |")
        lines.append("")
        for requirement in self.requirements:
            value = requirement.value(medians)
            lines.append(f"- {'met' if requirement.is_met(value) else 'MISSED'}: {requirement.describe()}: {value:.2f}")
        for note in self.notes:
            lines += ["", note.rstrip()]
        return "\n".join(lines) + "\n"

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        content = {"name": self.name, "rounds": self.rounds, "medians": self.medians(), "missed": self.missed()}
        (folder / f"{self.name}.json").write_text(json.dumps(content, indent=2) + "\n")
        (folder / f"{self.name}.md").write_text(self.markdown())


def compare(
    name: str,
    contestants: Sequence[Contestant],
    *,
    requirements: Iterable[Requirement] = (),
    rounds: int = 3,
    warm_up: bool = True,
    log: Callable[[str], None] = print,
) -> Result:
    """Run every contestant once to warm up, then in turns. The order alternates, so that none always goes first."""
    result = Result(name, {contestant.name: [] for contestant in contestants}, tuple(requirements))
    if warm_up:
        for contestant in contestants:
            log(f"{name}: warming up {contestant.name}")
            contestant.run()
    for number in range(rounds):
        order = contestants if number % 2 == 0 else list(reversed(contestants))
        for contestant in order:
            numbers = contestant.run()
            shown = ", ".join(f"{metric} {value:,.1f}" for metric, value in numbers.items())
            log(f"{name}: round {number + 1} {contestant.name}: {shown}")
            result.rounds[contestant.name].append(numbers)
    return result
