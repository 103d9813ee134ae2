"""Profiles on the dashboard: the profiles of a node, and rollouts with what they wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.collect.profiles import collect_profile
from nodeyard.capabilities.profiles.messages.states import RollingOut, Stalled
from nodeyard.capabilities.profiles.planning.profiles import rollout_message
from nodeyard.capabilities.profiles.planning.rollout import deadline_seconds, limit, written_at
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.report.profiles import PROGRESSING
from nodeyard.capabilities.profiles.snapshot import ProfileSnapshot
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, State
from nodeyard.client.resources import view_kind
from nodeyard.kube.conditions import find
from nodeyard.kube.objects import Condition
from nodeyard.plan.layout import counted
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View
from nodeyard.runtime.surface import Attention, Blocker, Rollout, Severity, Surface, Tile, rungs

# tiles


def tile(view: View, name: str) -> Tile | None:
    """Return the profiles of the data plane node with the name of the node, as SERVICE/PROFILE."""
    for namespace in watched.namespaces(view):
        node: OpenStackDataPlaneNode | None = view.get(names.NODE_KIND, name, namespace)
        if node is not None:
            chosen = [
                f"{service}/{each.value}"
                for service, each in sorted(node.status.profiles.items())
                if each.state == State.RESOLVED
            ]
            return Tile(profile=", ".join(chosen))
    return None


def _nodes(_view: View, old: OpenStackDataPlaneNode | None, new: OpenStackDataPlaneNode | None) -> Iterable[str]:
    known = new or old
    is_same = old is not None and new is not None and old.status.profiles == new.status.profiles
    return () if known is None or is_same else (known.name,)


# rollouts


def attention(view: View, now: datetime) -> Iterator[Attention]:
    for snapshot, message in _running(view, now):
        if isinstance(message, Stalled):
            yield Attention(
                kind="StoppedRollout",
                severity=Severity.WARNING,
                object=_ref(snapshot),
                reason=message.reason,
                message=message.text(),
                since=_stalled_since(view, snapshot),
                link={"view": "rollouts", "kind": "Profile"},
            )


def rollouts(view: View, now: datetime) -> Iterator[Rollout]:
    for snapshot, message in _running(view, now):
        is_stalled = isinstance(message, Stalled)
        progressing = _progressing(snapshot)
        yield Rollout(
            capability=names.CAPABILITY,
            kind="Profile",
            object=_ref(snapshot),
            done=min(snapshot.updated, snapshot.rollout.available),
            total=snapshot.rollout.total,
            state="Stopped" if is_stalled else "RollingOut",
            next=_next_step(snapshot, is_stalled=is_stalled),
            message=message.text(),
            since=None if progressing is None else progressing.last_transition_time,
            blockers=(_blocker(view, snapshot, message),) if isinstance(message, Stalled) else (),
        )


def _running(view: View, now: datetime) -> Iterator[tuple[ProfileSnapshot, RollingOut | Stalled]]:
    """Yield the profiles whose rollout runs or has stopped; the counters are aggregates."""
    for service in watched.load_registry(view).services:
        kind = view_kind(service.profile_api_version, service.profile_kind)
        if not service.makes_object or not watched.is_synced(view, kind):
            continue
        for raw in view.all(kind):
            snapshot = collect_profile(view, service.name, watched.namespace_of(raw), raw["metadata"]["name"], now)
            message = None if snapshot is None else rollout_message(snapshot)
            if snapshot is not None and isinstance(message, RollingOut | Stalled):
                yield snapshot, message


def _ref(snapshot: ProfileSnapshot) -> ObjectRef:
    metadata, service = snapshot.raw["metadata"], snapshot.service
    return ObjectRef(
        api_version=service.profile_api_version,
        kind=service.profile_kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata.get("uid", ""),
    )


def _progressing(snapshot: ProfileSnapshot) -> Condition | None:
    conditions = (snapshot.raw.get("status") or {}).get("conditions") or ()
    try:
        return find(msgspec.convert(conditions, tuple[Condition, ...]), PROGRESSING)
    except msgspec.ValidationError:
        return None


def _next_step(snapshot: ProfileSnapshot, *, is_stalled: bool) -> str:
    rollout = snapshot.rollout
    allowed = limit(snapshot.service, snapshot.profile, max(rollout.total, snapshot.node_count))
    left, unavailable = rollout.total - snapshot.updated - snapshot.pinned, rollout.total - rollout.available
    if is_stalled:
        return "Nothing before this object is available again."
    if left > 0 and unavailable >= allowed:
        return f"{counted(left, 'object')} to write, once fewer than {allowed} are unavailable."
    if left > 0:
        return f"{counted(min(left, allowed - unavailable), 'object')} of {left} written next."
    return f"{counted(unavailable, 'object')} to become available."


def _blocker(view: View, snapshot: ProfileSnapshot, message: Stalled) -> Blocker:
    service, namespace = snapshot.service, snapshot.raw["metadata"]["namespace"]
    group, _, _ = service.object_api_version.rpartition("/")
    kind = f"{service.object_kind.lower()}.{group}" if group else service.object_kind.lower()
    return Blocker(
        object=ObjectRef(
            api_version=service.object_api_version,
            kind=service.object_kind,
            namespace=namespace,
            name=snapshot.stalled,
        ),
        reason=message.reason,
        message=message.text(),
        since=_stalled_since(view, snapshot),
        ways_out=(
            f"kubectl describe {kind} {snapshot.stalled} --namespace {namespace}",
            "Raise spec.maxUnavailable or spec.progressDeadlineSeconds of the profile.",
        ),
    )


def _stalled_since(view: View, snapshot: ProfileSnapshot) -> datetime | None:
    """Return the progress deadline that the stalled object missed."""
    service, namespace = snapshot.service, snapshot.raw["metadata"]["namespace"]
    obj: Any = view.get(view_kind(service.object_api_version, service.object_kind), snapshot.stalled, namespace)
    written = None if obj is None else written_at(obj)
    return None if written is None else written + timedelta(seconds=deadline_seconds(service, snapshot.profile))


_PROFILE_KINDS: Final = (names.COMPUTE_PROFILE_KIND, names.NETWORK_PROFILE_KIND, names.TELEMETRY_PROFILE_KIND)
_ROLLOUT: Final = rungs(
    (Reason.CONFIG_INVALID, "Its configuration is invalid"),
    (Reason.CONFIG_WARNING, "Its configuration gives a warning"),
    (Reason.STALLED, "An object missed its progress deadline"),
    (Reason.AVAILABLE, "All objects have the profile and are available"),
    (Reason.ROLLING, "Objects are still being changed"),
)

SURFACE: Final = Surface(
    tile=tile,
    tile_nodes={names.NODE_KIND: _nodes},
    attention=attention,
    rollouts=rollouts,
    ladders=dict.fromkeys(_PROFILE_KINDS, _ROLLOUT),
)
