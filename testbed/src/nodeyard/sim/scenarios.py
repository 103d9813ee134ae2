"""The neighbours that each capability works with, as the simulation plays them, and its example."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Scenario:
    """How the demo and `plan -f` without a cluster set the scene for one capability."""

    example: str
    """The folder under examples/."""
    stages: tuple[str, ...] = ()
    """The stage files of sim/stages that play what it works with."""


SCENARIOS: Final = {
    "spares": Scenario("01-spares"),
    "pools": Scenario("02-pools", ("providers", "machines")),
    "affinity": Scenario("03-affinity", ("releases",)),
    "clustertree": Scenario("04-clustertree"),
    "profiles": Scenario("05-profiles", ("services",)),
}


def stages_of(capabilities: Iterable[str]) -> tuple[str, ...]:
    """Return the stage files that these capabilities need, each once."""
    known = (SCENARIOS[name] for name in capabilities if name in SCENARIOS)
    return tuple(dict.fromkeys(stage for scenario in known for stage in scenario.stages))
