"""How what a plan sees is taken from the cache: a node, its role, what they name, and what was made for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import merge

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.grants import Grants
from nodeyard.capabilities.profiles.planning.availability import deadline_seconds, limit, written_at
from nodeyard.capabilities.profiles.planning.inheritance import effective
from nodeyard.capabilities.profiles.planning.resolution import Resolution, resolve
from nodeyard.capabilities.profiles.planning.rollout import is_disturbing
from nodeyard.capabilities.profiles.planning.services import wish_for
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.services import Registry, registry
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Profile, Service, Trouble
from nodeyard.capabilities.profiles.standings import standing_of
from nodeyard.capabilities.profiles.types import (
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    State,
    annotation_of,
)
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View


def known(view: View) -> Registry:
    """The services there are now."""
    return registry(view.all(names.SERVICE_KIND))


def collect_node(view: View, namespace: str, name: str, now: datetime, grants: Grants, key: str) -> NodeSnapshot | None:
    grants.withdraw(key)
    node: OpenStackDataPlaneNode | None = view.get(names.NODE_KIND, name, namespace)
    if node is None:
        return None
    services = known(view)
    role: OpenStackDataPlaneRole | None = (
        view.get(names.ROLE_KIND, node.wanted.role, namespace) if node.wanted.role else None
    )
    troubles = _troubles(view, services.services)
    seen = [service for service in services.services if service.name not in troubles]
    snapshot = NodeSnapshot(
        node=node,
        role=role,
        services=services.services,
        claimed_twice=services.claimed_twice,
        profiles={service.name: _profiles(view, service, node, role) for service in seen},
        objects=_objects(view, node, seen),
        configurations=_configurations(view, node),
        troubles=troubles,
    )
    return replace(snapshot, budgets=_budgets(view, snapshot, now, grants, key))


def _troubles(view: View, services: Sequence[Service]) -> Mapping[str, Trouble]:
    """Declared kinds may not be served, or not be ours to see."""
    found = {}
    for service in services:
        if service.is_built_in:
            continue
        kinds = [(service.profile_api_version, service.profile_kind)]
        if service.makes_object:
            kinds.append((service.object_api_version, service.object_kind))
        for api_version, kind in kinds:
            trouble = _trouble(view, api_version, kind)
            if trouble is not None:
                found[service.name] = trouble
    return found


def _trouble(view: View, api_version: str, kind: str) -> Trouble | None:
    viewed, group = watched.viewed(api_version, kind), api_version.rpartition("/")[0]
    if not view.versions(group, kind):
        return Trouble(Reason.NOT_SERVED, f"the server does not have {viewed}")
    if view.is_synced(viewed):
        return None
    return Trouble(Reason.FORBIDDEN, view.trouble(viewed) or f"{viewed} has not been told yet")


def _profiles(
    view: View, service: Service, node: OpenStackDataPlaneNode, role: OpenStackDataPlaneRole | None
) -> Mapping[str, Profile]:
    kind, namespace = watched.viewed(service.profile_api_version, service.profile_kind), node.metadata.namespace
    wanted = {annotation_of(each, service.annotation_key) for each in (node, role)}
    found = [view.get(kind, name, namespace) for name in sorted(name for name in wanted if name)]
    found += view.indexed(kind, watched.SELECTING, namespace)
    return {each["metadata"]["name"]: watched.seen(service, each) for each in found if each is not None}


def _objects(view: View, node: OpenStackDataPlaneNode, services: Sequence[Service]) -> Mapping[str, Object]:
    found = {
        service.name: view.get(
            watched.viewed(service.object_api_version, service.object_kind), node.name, node.metadata.namespace
        )
        for service in services
        if service.makes_object
    }
    return {name: each for name, each in found.items() if each is not None}


def _configurations(view: View, node: OpenStackDataPlaneNode) -> Mapping[str, Object]:
    """By the service they are for, whichever kind they are kept in."""
    value = f"{node.metadata.namespace}/{node.name}"
    found: dict[str, Object] = {}
    for resource in watched.CONFIGURATIONS:
        for each in view.indexed(resource.kind, names.BY_NODE, value):
            found[each["metadata"]["labels"].get(names.SERVICE_LABEL, "")] = each
    return found


# budgets


def _budgets(view: View, snapshot: NodeSnapshot, now: datetime, grants: Grants, key: str) -> Mapping[str, Budget]:
    """Only of services whose object would be disturbed: the others need none."""
    inherited = effective(snapshot.node, snapshot.role)
    found = {}
    for name, resolution in resolve(snapshot).items():
        live = snapshot.objects.get(name)
        if live is None or resolution.state not in (State.RESOLVED, State.NONE, State.DISABLED):
            continue
        if is_disturbing(live, wish_for(snapshot, resolution, inherited).rendered.hash):
            found[name] = _budget(view, snapshot, resolution, now, grants, key)
    return found


def _budget(
    view: View, snapshot: NodeSnapshot, resolution: Resolution, now: datetime, grants: Grants, key: str
) -> Budget:
    service, profile = resolution.service, resolution.profile
    namespace = snapshot.node.metadata.namespace
    group = f"{namespace}/{profile.name if profile else ''}"
    kind = watched.viewed(service.object_api_version, service.object_kind)
    disturbed: Sequence[Object] = view.indexed(kind, watched.UNAVAILABLE, group)
    total = standing_of(view, service, namespace, profile.name if profile else "").total
    if profile is not None:
        total = max(total, members(view, service, namespace, profile.name))
    patience = timedelta(seconds=deadline_seconds(service, profile))
    due = {each["metadata"]["name"]: since + patience for each in disturbed if (since := written_at(each))}
    stalled = next((name for name, moment in sorted(due.items()) if now >= moment), "")
    seen = [names.node_key(namespace, each["metadata"]["name"]) for each in disturbed]
    if stalled:
        grants.wait(group_of(service, group), key)
    return Budget(
        total=total,
        unavailable=len(disturbed),
        is_stalled=bool(stalled),
        stalled=stalled,
        # Those who were let through a moment ago have not written yet: their time is not over before this.
        due=min(due.values(), default=now + patience),
        is_granted=not stalled and grants.ask(group_of(service, group), key, seen, limit(service, profile, total)),
    )


def group_of(service: Service, value: str) -> tuple[str, str]:
    """Those who share a budget: the objects of a service that have one profile, as `namespace/profile`."""
    return service.name, value


def members(view: View, service: Service, namespace: str, profile: str) -> int:
    """How many nodes name a profile, by themselves or by their role; in time that does not grow with them."""
    choice = f"{namespace}/{service.annotation_key}={profile}"
    count = len(view.indexed(names.NODE_KIND, names.BY_ANNOTATION, choice))
    for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice):
        value = f"{namespace}/{role.metadata.name}"
        count += len(view.indexed(names.NODE_KIND, names.BY_ROLE, value))
        count -= len(view.indexed(names.NODE_KIND, watched.BY_ROLE_KEY, f"{value}/{service.annotation_key}"))
    return count


def users(view: View, service: Service, namespace: str, profile: str) -> Iterator[str]:
    """The nodes that name a profile, by themselves or by their role, by name; the first cost no more than they are."""
    choice = f"{namespace}/{service.annotation_key}={profile}"
    return merge(
        (node.name for node in view.indexed(names.NODE_KIND, names.BY_ANNOTATION, choice)),
        *(
            _followers(view, service, f"{namespace}/{role.metadata.name}")
            for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice)
        ),
    )


def _followers(view: View, service: Service, role: str) -> Iterator[str]:
    """The nodes of a role that leave the choice to it, by name."""
    for node in view.indexed(names.NODE_KIND, names.BY_ROLE, role):
        if service.annotation_key not in node.metadata.annotations:
            yield node.name
