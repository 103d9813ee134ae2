"""Rollout budget of a node, from aggregates of service objects and from the reservations of other nodes.

The aggregates are updated on each event, so the cost does not grow with the fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.collect.rollout_counts import due, rollout_count
from nodeyard.capabilities.profiles.planning.availability import (
    annotation,
    deadline_seconds,
    is_available,
    limit,
    written_at,
)
from nodeyard.capabilities.profiles.planning.resolution import Resolution, resolve
from nodeyard.capabilities.profiles.planning.rollout import is_disruptive
from nodeyard.capabilities.profiles.planning.services import awaits_role, desired_config
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Service
from nodeyard.runtime.capability import View


def budgets(view: View, snapshot: NodeSnapshot, now: datetime) -> Mapping[str, Budget]:
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
    first = due(rollout, deadline)
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
        unavailable=unavailable + reserved,
        stalled=stalled_object(view, service, f"{namespace}/{name}", now - deadline, ignores=ignores)
        if is_late
        else "",
        # Objects that are not written yet have no deadline before this.
        due=first or now + deadline,
    )


def stalled_object(view: View, service: Service, group: str, since: datetime, *, ignores: bool) -> str:
    """Return the first object by name that was written before `since` and is still unavailable."""
    kind = watched.kind_name(service.object_api_version, service.object_kind)
    for each in view.indexed(kind, watched.UNAVAILABLE, group):
        written = written_at(each)
        if written is not None and written <= since and not is_available(each, ignores=ignores):
            return str(each["metadata"]["name"])
    return ""


def _shows(view: View, service: Service, key: str, hash: str) -> bool:
    """Check if the cache shows the write of another node, or its object is gone."""
    _, namespace, node = key.split("/")
    obj = view.get(watched.kind_name(service.object_api_version, service.object_kind), node, namespace)
    return obj is None or annotation(obj, names.HASH) == hash
