"""The list of capabilities of this build."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.runtime.capability import Capability

CAPABILITIES: tuple[Capability, ...] = (SPARES, POOLS, AFFINITY, CLUSTERTREE, PROFILES)


class UnknownCapability(ValueError):
    """The text lists the choices."""


def choose(names: Sequence[str], among: Sequence[Capability] | None = None) -> tuple[Capability, ...]:
    """Select capabilities by name, in the order of the list; no names select all."""
    known = CAPABILITIES if among is None else tuple(among)
    unknown = [name for name in names if name not in {each.name for each in known}]
    if unknown:
        choices = ", ".join(each.name for each in known) or "none in this build"
        raise UnknownCapability(f'unknown capability "{unknown[0]}"; choose from: {choices}')
    return tuple(each for each in known if not names or each.name in names)
