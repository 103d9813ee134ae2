"""Defaults of built-in types, by definition: a pod's are the same wherever a pod template stands.

Each takes an object whose fields have been decoded and returns it with what the real server would add.
"""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.apiserver.kinds.defaults import (
    admission,
    configuration,
    identities,
    nodes,
    registrations,
    services,
    workloads,
)
from nodeyard.apiserver.kinds.pod import defaults as pods
from nodeyard.kube.json import Object

DEFAULTS: dict[str, Callable[[Object], Object]] = {
    **admission.DEFAULTS,
    **configuration.DEFAULTS,
    **identities.DEFAULTS,
    **nodes.DEFAULTS,
    **pods.DEFAULTS,
    **registrations.DEFAULTS,
    **services.DEFAULTS,
    **workloads.DEFAULTS,
}
