"""Defaults of built-in types, by definition: a pod's are the same wherever a pod template stands.

Each takes an object whose fields have been decoded and returns it with what the real server would add.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodeyard.apiserver.kinds.defaults import cluster, pods, workloads
from nodeyard.kube.json import Object

DEFAULTS: Mapping[str, Callable[[Object], Object]] = {**pods.DEFAULTS, **workloads.DEFAULTS, **cluster.DEFAULTS}
