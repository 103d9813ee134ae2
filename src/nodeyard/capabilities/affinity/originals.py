"""Whether CozyStack itself is alive beside us: an APIService with a service of its own answers for tenants and
applications. Ours are CRDs, whose APIServices name no service."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collecting import is_served_elsewhere
from nodeyard.runtime.capability import Living, View

ORIGINAL: Final = "CozyStack's API server"
_HAND_OVER: Final = (
    f"It serves {names.APPS_API_VERSION}, as APIService {watched.APPS_API_SERVICE} says. Run with --take-over to "
    "enforce classes beside it: its tenants and applications stay its own, and pods are held to the class of their "
    "HelmReleases"
)


def living_original(view: View, now: datetime) -> Living | None:
    return Living(ORIGINAL, _HAND_OVER) if is_served_elsewhere(view) else None
