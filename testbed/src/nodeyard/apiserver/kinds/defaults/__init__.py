"""Defaults."""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.apiserver.kinds.defaults import admission
from nodeyard.kube.json import Object

DEFAULTS: dict[str, Callable[[Object], Object]] = {
    **admission.DEFAULTS,
}
