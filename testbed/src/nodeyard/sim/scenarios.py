"""Scenarios: for each capability its example and the simulated components that it works with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Scenario:
    """Set-up for a capability in the demo and in `plan -f` without a cluster."""

    example: str
    """Its folder under examples/."""
    stages: tuple[str, ...] = ()
    """The stages that simulate the components it works with."""


SCENARIOS: Final = {
    "spares": Scenario("01-spares"),
    "pools": Scenario("02-pools", ("providers", "machines")),
    "affinity": Scenario("03-affinity", ("releases",)),
    "clustertree": Scenario("04-clustertree"),
    "profiles": Scenario("05-profiles", ("services",)),
}


def stages_of(capabilities: Iterable[str]) -> tuple[str, ...]:
    """Return the stages that these capabilities need, each once."""
    known = (SCENARIOS[name] for name in capabilities if name in SCENARIOS)
    return tuple(dict.fromkeys(stage for scenario in known for stage in scenario.stages))
