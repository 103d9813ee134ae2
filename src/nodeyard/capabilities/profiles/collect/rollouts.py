"""Rollouts: counters of the service objects of a profile, and the budget of a node that is to be written.

Each event updates the counters incrementally, so one event costs the same with ten nodes and with thousands. The budget
also counts the reservations of other nodes, whose writes the cache does not show yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.planning.resolution import Resolution, resolve
from nodeyard.capabilities.profiles.planning.rollout import (
    annotation,
    deadline_seconds,
    is_available,
    is_disruptive,
    limit,
    parse_time,
    reported_hash,
    written_at,
)
from nodeyard.capabilities.profiles.planning.services import awaits_role, desired_config
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Profile, RolloutCount, Service
from nodeyard.capabilities.profiles.types import Progress
from nodeyard.client.resources import view_kind
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import Aggregate, View


def first_deadline(rollout: RolloutCount, deadline: timedelta) -> datetime | None:
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
        kind=view_kind(service.object_api_version, service.object_kind),
        empty=int,
        group=lambda obj: ("",) if reported_hash(obj) else (),
        add=lambda count, _obj: count + 1,
        remove=lambda count, _obj: count - 1,
    )


def _reporting_name(service: Service) -> str:
    return f"{view_kind(service.object_api_version, service.object_kind)} reporting"


def aggregate(service: Service) -> Aggregate:
    """Return the aggregate of counters by `namespace/profile`.

    Its name contains kind and field, so a changed declaration does not read the counters of the old one.
    """
    return Aggregate(
        name=_aggregate_name(service),
        kind=view_kind(service.object_api_version, service.object_kind),
        empty=RolloutCount,
        group=watched.by_profile(service.profile_field),
        add=add,
        remove=remove,
    )


def _aggregate_name(service: Service) -> str:
    return f"{view_kind(service.object_api_version, service.object_kind)} by {service.profile_field}"


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


# budgets


def find_budgets(view: View, snapshot: NodeSnapshot, now: datetime) -> Mapping[str, Budget]:
    """Return budgets of services whose object would be disrupted. A node that is not written to needs none."""
    found: dict[str, Budget] = {}
    if snapshot.node.is_paused or snapshot.node.is_deleting or not snapshot.has_config_maps:
        return found
    for name, resolution in resolve(snapshot).items():
        live = snapshot.objects.get(name)
        if live is None or not resolution.is_settled or awaits_role(snapshot, resolution.service):
            continue
        ignores = name in snapshot.ignored
        if is_disruptive(live, desired_config(snapshot, name).rendered.hash, ignores=ignores):
            found[name] = _budget(view, snapshot, resolution, now)
    return found


def _budget(view: View, snapshot: NodeSnapshot, resolution: Resolution, now: datetime) -> Budget:
    service, profile = resolution.service, resolution.profile
    namespace, name = snapshot.node.metadata.namespace, profile.name if profile else ""
    ignores = service.name in snapshot.ignored
    rollout = rollout_count(view, service, namespace, name, ignores=ignores)
    total = max(rollout.total, watched.count_users(view, service, namespace, name) if profile else 0)
    deadline = timedelta(seconds=deadline_seconds(service, profile))
    first = first_deadline(rollout, deadline)
    is_late = first is not None and first <= now
    budget, own_key = names.budget(service.name, namespace, name), names.node_key(namespace, snapshot.node.name)
    unavailable, allowed, reserved = rollout.total - rollout.available, limit(service, profile, total), 0
    if unavailable + len(others := view.reserved(budget)) >= allowed:
        # Looked up only where it decides: many nodes may hold reservations.
        reserved = sum(key != own_key and not _shows(view, service, key, hash) for key, hash in others.items())
    return Budget(
        name=budget,
        total=total,
        limit=allowed,
        unavailable=unavailable,
        reserved=reserved,
        stalled=stalled_object(view, service, f"{namespace}/{name}", now - deadline, ignores=ignores)
        if is_late
        else "",
        # Objects that are not written yet have no deadline before this.
        due=first or now + deadline,
    )


def stalled_object(view: View, service: Service, group: str, since: datetime, *, ignores: bool) -> str:
    """Return the first object by name that was written before `since` and is still unavailable."""
    kind = view_kind(service.object_api_version, service.object_kind)
    for each in view.indexed(kind, watched.UNAVAILABLE, group):
        written = written_at(each)
        if written is not None and written <= since and not is_available(each, ignores=ignores):
            return str(each["metadata"]["name"])
    return ""


def _shows(view: View, service: Service, key: str, hash: str) -> bool:
    """Check if the cache shows the write of another node, or its object is gone."""
    _, namespace, node = key.split("/")
    obj = view.get(view_kind(service.object_api_version, service.object_kind), node, namespace)
    return obj is None or annotation(obj, names.HASH) == hash
