"""Counters of the service objects of a profile, updated incrementally by each event.

One event costs the same with ten nodes and with thousands.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.planning.availability import annotation, is_available, parse_time, reported_hash
from nodeyard.capabilities.profiles.snapshot import Profile, RolloutCount, Service
from nodeyard.capabilities.profiles.types import Progress
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import Aggregate, View


def due(rollout: RolloutCount, deadline: timedelta) -> datetime | None:
    """Return the earliest progress deadline of the unavailable objects."""
    written = (parse_time(text) for text in rollout.unavailable_since)
    first = min((each for each in written if each is not None), default=None)
    return None if first is None else first + deadline


def rollout_count(view: View, service: Service, namespace: str, profile: str, *, ignores: bool = False) -> RolloutCount:
    """Return the counters of a profile."""
    if not service.makes_object:
        return RolloutCount()
    found: RolloutCount = view.aggregate(_aggregate_name(service), f"{namespace}/{profile}")
    return found.ignoring_reports() if ignores else found


def ignores_progress(view: View, service: Service, profile: Profile | None) -> bool:
    """Check if a rollout does not wait for `status.hash.profile`.

    `progress` of the profile decides, then that of the service. If both are empty, reports are ignored until an object
    of the service reports a hash.
    """
    mode = (profile.progress if profile is not None else "") or service.progress
    if mode or not service.makes_object:
        return mode == Progress.IGNORE
    return not reporting_count(view, service)


def reporting_count(view: View, service: Service) -> int:
    """Count the objects of a service that report a hash."""
    found: int = view.aggregate(_reporting_name(service), "")
    return found


def reporting(service: Service) -> Aggregate:
    """Return the aggregate that counts objects with a reported hash."""
    return Aggregate(
        name=_reporting_name(service),
        kind=watched.kind_name(service.object_api_version, service.object_kind),
        empty=int,
        group=lambda obj: ("",) if reported_hash(obj) else (),
        add=lambda count, _obj: count + 1,
        remove=lambda count, _obj: count - 1,
    )


def _reporting_name(service: Service) -> str:
    return f"{watched.kind_name(service.object_api_version, service.object_kind)} reporting"


def aggregate(service: Service) -> Aggregate:
    """Return the aggregate of counters by `namespace/profile`.

    Its name contains kind and field, so a changed declaration does not read the counters of the old one.
    """
    return Aggregate(
        name=_aggregate_name(service),
        kind=watched.kind_name(service.object_api_version, service.object_kind),
        empty=RolloutCount,
        group=watched.by_profile(service.profile_field),
        add=add,
        remove=remove,
    )


def _aggregate_name(service: Service) -> str:
    return f"{watched.kind_name(service.object_api_version, service.object_kind)} by {service.profile_field}"


def add(count: RolloutCount, obj: Object) -> RolloutCount:
    return _update(count, obj, 1)


def remove(count: RolloutCount, obj: Object) -> RolloutCount:
    return _update(count, obj, -1)


def _update(count: RolloutCount, obj: Object, by: int) -> RolloutCount:
    is_running, is_ready = is_available(obj), is_available(obj, ignores=True)
    written = annotation(obj, names.WRITTEN)
    return RolloutCount(
        count.total + by,
        count.available + by * is_running,
        _add_to(count.generations, annotation(obj, names.GENERATION), by),
        count.unavailable_since if is_running else _add_to(count.unavailable_since, written, by),
        count.ready + by * is_ready,
        count.unready_since if is_ready else _add_to(count.unready_since, written, by),
    )


def _add_to(counts: Mapping[str, int], value: str, by: int) -> Mapping[str, int]:
    """Add to the count of a value; drop values with count 0."""
    changed = {**counts, value: counts.get(value, 0) + by}
    if not changed[value]:
        del changed[value]
    return changed
