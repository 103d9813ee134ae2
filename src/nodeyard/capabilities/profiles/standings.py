"""How the service objects of a profile stand, kept up to date object by object: no change makes anyone count again.

With thousands of nodes under one profile, the edit of one of them costs as much as with ten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.planning.availability import annotation, is_available, moment
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import Aggregate, View


@dataclass(frozen=True)
class Standing:
    total: int = 0
    available: int = 0
    """Those that run what they were told."""
    generations: Mapping[str, int] = field(default_factory=dict)
    """How many have each generation of the profile."""
    told: Mapping[str, int] = field(default_factory=dict)
    """Of those that do not run what they were told: how many were told at each moment."""

    @property
    def is_done(self) -> bool:
        return self.available == self.total

    def due(self, patience: timedelta) -> datetime | None:
        """When the first of those that do not run what they were told is past its deadline."""
        told = (moment(text) for text in self.told)
        first = min((each for each in told if each is not None), default=None)
        return None if first is None else first + patience


def standing_of(view: View, service: Service, namespace: str, profile: str) -> Standing:
    """Of all objects that have a profile."""
    if not service.makes_object:
        return Standing()
    found: Standing = view.aggregate(_name(service), f"{namespace}/{profile}")
    return found


def aggregate(service: Service) -> Aggregate:
    """By `namespace/profile`. It is named by what it is of: a declaration that has changed does not find the numbers of
    what it said before."""
    return Aggregate(
        name=_name(service),
        kind=watched.viewed(service.object_api_version, service.object_kind),
        empty=Standing,
        group=watched.by_profile(service.profile_field),
        add=add,
        remove=remove,
    )


def _name(service: Service) -> str:
    return f"{watched.viewed(service.object_api_version, service.object_kind)} by {service.profile_field}"


def add(standing: Standing, obj: Object) -> Standing:
    return _changed(standing, obj, 1)


def remove(standing: Standing, obj: Object) -> Standing:
    return _changed(standing, obj, -1)


def _changed(standing: Standing, obj: Object, by: int) -> Standing:
    is_running = is_available(obj)
    return Standing(
        standing.total + by,
        standing.available + by * is_running,
        _counted(standing.generations, annotation(obj, names.GENERATION), by),
        standing.told if is_running else _counted(standing.told, annotation(obj, names.WRITTEN), by),
    )


def _counted(counts: Mapping[str, int], value: str, by: int) -> Mapping[str, int]:
    """One more or one less of a value; those that nobody has are left out."""
    changed = {**counts, value: counts.get(value, 0) + by}
    if not changed[value]:
        del changed[value]
    return changed
