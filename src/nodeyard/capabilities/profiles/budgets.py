"""How much of a rollout a node may take part in now, from aggregates and from who else was let through just now.

The cost does not grow with the fleet: what stands in the way is counted as it changes, not when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.grants import Grants
from nodeyard.capabilities.profiles.planning.availability import (
    deadline_seconds,
    is_available,
    limit,
    written_at,
)
from nodeyard.capabilities.profiles.planning.resolution import Resolution, resolve
from nodeyard.capabilities.profiles.planning.rollout import is_disturbing
from nodeyard.capabilities.profiles.planning.services import is_held, wish_for
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Service
from nodeyard.capabilities.profiles.standings import standing_of
from nodeyard.capabilities.profiles.users import members
from nodeyard.runtime.capability import View


def budgets(view: View, snapshot: NodeSnapshot, now: datetime, grants: Grants) -> Mapping[str, Budget]:
    """Only of services whose object would be disturbed: the others need none. Nor does a node that nothing is done to
    have to keep a place from others."""
    found: dict[str, Budget] = {}
    if snapshot.node.is_paused or snapshot.node.is_deleting:
        return found
    for name, resolution in resolve(snapshot).items():
        live = snapshot.objects.get(name)
        if live is None or not resolution.is_settled or is_held(snapshot, resolution.service):
            continue
        if is_disturbing(live, wish_for(snapshot, name).rendered.hash):
            found[name] = _budget(view, snapshot, resolution, now, grants)
    return found


def group_of(service: Service, value: str) -> tuple[str, str]:
    """Those who share a budget: the objects of a service that have one profile, as `namespace/profile`."""
    return service.name, value


def _budget(view: View, snapshot: NodeSnapshot, resolution: Resolution, now: datetime, grants: Grants) -> Budget:
    service, profile = resolution.service, resolution.profile
    namespace, name = snapshot.node.metadata.namespace, profile.name if profile else ""
    key, group = names.node_key(namespace, snapshot.node.name), group_of(service, f"{namespace}/{name}")
    standing = standing_of(view, service, namespace, name)
    total = max(standing.total, members(view, service, namespace, name) if profile else 0)
    unavailable = standing.total - standing.available
    patience = timedelta(seconds=deadline_seconds(service, profile))
    due = standing.due(patience)
    stalled = stalled_object(view, service, group[1], now - patience) if due is not None and due <= now else ""
    is_granted = False
    if stalled:
        grants.wait(group, key)
    else:
        room = limit(service, profile, total) - unavailable
        is_granted = grants.ask(group, key, now, room, _has_written(view, service, name))
        unavailable += 0 if is_granted else grants.count(group)
    return Budget(
        total=total,
        unavailable=unavailable,
        is_granted=is_granted,
        is_stalled=bool(stalled),
        stalled=stalled,
        # Those who were let through a moment ago have not written yet: their time is not over before this.
        due=min(due or now + patience, grants.lapse(group) or now + patience),
    )


def stalled_object(view: View, service: Service, group: str, since: datetime) -> str:
    """Which object of a group has not done what it was told by then: the first by name."""
    kind = watched.viewed(service.object_api_version, service.object_kind)
    for each in view.indexed(kind, watched.UNAVAILABLE, group):
        told = written_at(each)
        if told is not None and told <= since:
            return str(each["metadata"]["name"])
    return ""


def _has_written(view: View, service: Service, profile: str) -> Callable[[str], bool]:
    """Whether a node that was let through is seen to have been told."""
    kind = watched.viewed(service.object_api_version, service.object_kind)

    def has_written(key: str) -> bool:
        _, namespace, name = key.split("/")
        obj = view.get(kind, name, namespace)
        return obj is not None and watched.named(obj, service.profile_field) == profile and not is_available(obj)

    return has_written
