"""Rollout budget of a node, from aggregates of service objects and from held rollout slots.

The aggregates are updated on each event, so the cost does not grow with the fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from nodeyard.capabilities.profiles import names, watched
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
from nodeyard.capabilities.profiles.rollout_counts import rollout_count
from nodeyard.capabilities.profiles.rollout_slots import RolloutSlots
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Profile, Service
from nodeyard.capabilities.profiles.users import count_users
from nodeyard.runtime.capability import View


def budgets(view: View, snapshot: NodeSnapshot, now: datetime, slots: RolloutSlots) -> Mapping[str, Budget]:
    """Return budgets of services whose object would be disrupted. A node that is not written to takes no slot."""
    found: dict[str, Budget] = {}
    if snapshot.node.is_paused or snapshot.node.is_deleting or not snapshot.has_config_maps:
        return found
    for name, resolution in resolve(snapshot).items():
        live = snapshot.objects.get(name)
        if live is None or not resolution.is_settled or awaits_role(snapshot, resolution.service):
            continue
        ignores = name in snapshot.ignored
        if is_disruptive(live, desired_config(snapshot, name).rendered.hash, ignores=ignores):
            found[name] = _budget(view, snapshot, resolution, now, slots)
    return found


def slot_group(service: Service, value: str) -> tuple[str, str]:
    """Return the key of a budget: the objects of a service with one profile, as `namespace/profile`."""
    return service.name, value


def _budget(view: View, snapshot: NodeSnapshot, resolution: Resolution, now: datetime, slots: RolloutSlots) -> Budget:
    service, profile = resolution.service, resolution.profile
    namespace, name = snapshot.node.metadata.namespace, profile.name if profile else ""
    key, group = names.node_key(namespace, snapshot.node.name), slot_group(service, f"{namespace}/{name}")
    ignores = service.name in snapshot.ignored
    rollout = rollout_count(view, service, namespace, name, ignores=ignores)
    total = max(rollout.total, count_users(view, service, namespace, name) if profile else 0)
    unavailable = rollout.total - rollout.available
    deadline = timedelta(seconds=deadline_seconds(service, profile))
    due = rollout.due(deadline)
    is_late = due is not None and due <= now
    stalled = stalled_object(view, service, group[1], now - deadline, ignores=ignores) if is_late else ""
    has_slot, allowed = False, limit(service, profile, total)
    if stalled:
        slots.enqueue(group, key)
    else:
        room = allowed - unavailable
        has_slot = slots.acquire(group, key, now, room, _has_written(view, service, profile, name, ignores=ignores))
        unavailable += 0 if has_slot else slots.held(group)
    return Budget(
        total=total,
        limit=allowed,
        unavailable=unavailable,
        has_slot=has_slot,
        is_stalled=bool(stalled),
        stalled=stalled,
        # Slot holders that have not written yet have no deadline before this.
        due=min(due or now + deadline, slots.next_expiry(group) or now + deadline),
    )


def stalled_object(view: View, service: Service, group: str, since: datetime, *, ignores: bool) -> str:
    """Return the first object by name that was written before `since` and is still unavailable."""
    kind = watched.kind_name(service.object_api_version, service.object_kind)
    for each in view.indexed(kind, watched.UNAVAILABLE, group):
        written = written_at(each)
        if written is not None and written <= since and not is_available(each, ignores=ignores):
            return str(each["metadata"]["name"])
    return ""


def _has_written(
    view: View, service: Service, profile: Profile | None, profile_name: str, *, ignores: bool
) -> Callable[[str], bool]:
    """Return a predicate: the write of a slot holder is visible in the cache."""
    kind = watched.kind_name(service.object_api_version, service.object_kind)

    def has_written(key: str) -> bool:
        _, namespace, name = key.split("/")
        obj = view.get(kind, name, namespace)
        if obj is None or watched.spec_string(obj, service.profile_field) != profile_name:
            return False
        if ignores and profile is not None and annotation(obj, names.GENERATION) == str(profile.generation):
            return True
        return not is_available(obj, ignores=ignores)

    return has_written
