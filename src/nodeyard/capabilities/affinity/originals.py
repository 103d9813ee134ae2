"""Whether CozyStack itself is alive beside us: an APIService with a service of its own answers for tenants and
applications. Ours are CRDs, whose APIServices name no service.

Its kinds, tenants, namespaces and releases are then its own: the plans touch none of them, and every definition, tenant
and class says so. AffinityClasses it does not have, so what they ask of pods is enforced beside it, by the labels of
its HelmReleases alone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collecting import is_served_elsewhere
from nodeyard.runtime.capability import Living, View

ORIGINAL: Final = "CozyStack's API server"
_HAND_OVER: Final = (
    f"It serves {names.APPS_API_VERSION}: tenants and applications are left to it, and pods are held to the class of "
    f"their HelmReleases. They are served here once APIService {watched.APPS_API_SERVICE} is gone"
)


def living_original(view: View, now: datetime) -> Living | None:
    return Living(ORIGINAL, _HAND_OVER, is_apart=True) if is_served_elsewhere(view) else None
