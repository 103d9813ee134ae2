"""Defaults."""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.apiserver.kinds.defaults import admission, workloads
from nodeyard.apiserver.kinds.pod import defaults as pods
from nodeyard.kube.json import Object

DEFAULTS: dict[str, Callable[[Object], Object]] = {
    **admission.DEFAULTS,
    **pods.DEFAULTS,
    **workloads.DEFAULTS,
}
