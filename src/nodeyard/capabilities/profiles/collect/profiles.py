"""Collect the snapshot of a profile, a role or a ProfileService, whose status is reported."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.collect.nodes import scope_fault
from nodeyard.capabilities.profiles.collect.removals import find_open, find_open_of_role
from nodeyard.capabilities.profiles.collect.rollouts import (
    first_deadline,
    ignores_progress,
    rollout_count,
    stalled_object,
)
from nodeyard.capabilities.profiles.planning.rollout import deadline_seconds
from nodeyard.capabilities.profiles.snapshot import (
    ProfileSnapshot,
    ProfileUser,
    RoleChoice,
    RoleSnapshot,
    Service,
    ServiceSnapshot,
)
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneRole, ProfileService, Source, annotation_of
from nodeyard.capabilities.profiles.watched import load_registry
from nodeyard.client.resources import view_kind
from nodeyard.plan.builder import NAMED
from nodeyard.plan.model import EVERY_GROUP
from nodeyard.runtime.annotations import approval_ids
from nodeyard.runtime.capability import View

LISTED: Final = 100
"""Number of nodes that the status of a profile names."""


def collect_profile(view: View, service_name: str, namespace: str, name: str, now: datetime) -> ProfileSnapshot | None:
    service = next((each for each in load_registry(view).services if each.name == service_name), None)
    if service is None or not namespace:
        return None
    raw = view.get(view_kind(service.profile_api_version, service.profile_kind), name, namespace)
    if raw is None:
        return None
    profile = watched.parse_profile(service, raw)
    ignores = ignores_progress(view, service, profile)
    rollout = rollout_count(view, service, namespace, name, ignores=ignores)
    deadline = timedelta(seconds=deadline_seconds(service, profile))
    due = first_deadline(rollout, deadline)
    is_late = due is not None and due <= now
    return ProfileSnapshot(
        service,
        raw,
        profile,
        watched.count_users(view, service, namespace, name),
        tuple(islice(watched.list_users(view, service, namespace, name), LISTED)),
        rollout,
        due,
        stalled_object(view, service, f"{namespace}/{name}", now - deadline, ignores=ignores) if is_late else "",
        tuple(_used_by(view, service, namespace, name)),
        ignores,
        view.counted(names.NODE_KIND, watched.PINNED, names.profile_key(service.name, namespace, name)),
        find_open(view, service, (namespace,), raw, now) if approval_ids(raw) else (),
    )


def _used_by(view: View, service: Service, namespace: str, profile: str) -> Iterator[ProfileUser]:
    choice = f"{namespace}/{service.annotation_key}={profile}"
    for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice):
        nodes, followers = _followers(view, service, f"{namespace}/{role.metadata.name}")
        yield ProfileUser(Source.ROLE, role.metadata.name, nodes, followers)
    selected = names.profile_key(service.name, namespace, profile)
    for source, index, value in (
        (Source.NODE, names.BY_ANNOTATION, choice),
        (Source.SELECTOR, watched.SELECTED, selected),
    ):
        for node in islice(view.indexed(names.NODE_KIND, index, value), NAMED):
            yield ProfileUser(source, node.name)


def _followers(view: View, service: Service, role: str) -> tuple[int, int]:
    """Count the nodes of a role, and those that do not override its choice for a service."""
    nodes = view.counted(names.NODE_KIND, names.BY_ROLE, role)
    return nodes, nodes - view.counted(names.NODE_KIND, watched.BY_ROLE_KEY, f"{role}/{service.annotation_key}")


def collect_role(view: View, namespace: str, name: str) -> RoleSnapshot | None:
    role: OpenStackDataPlaneRole | None = view.get(names.ROLE_KIND, name, namespace)
    if role is None:
        return None
    nodes = view.counted(names.NODE_KIND, names.BY_ROLE, f"{namespace}/{name}")
    services = load_registry(view).services
    choices = tuple(_role_choice(view, each, role) for each in services)
    return RoleSnapshot(role, nodes, choices, find_open_of_role(view, role, services) if approval_ids(role) else ())


def _role_choice(view: View, service: Service, role: OpenStackDataPlaneRole) -> RoleChoice:
    namespace, value = role.metadata.namespace, annotation_of(role, service.annotation_key)
    _, followers = _followers(view, service, f"{namespace}/{role.metadata.name}")
    kind = view_kind(service.profile_api_version, service.profile_kind)
    return RoleChoice(service, value, followers, value is not None and view.get(kind, value, namespace) is not None)


def collect_service(view: View, name: str, now: datetime) -> ServiceSnapshot | None:
    service: ProfileService | None = view.get(names.SERVICE_KIND, name)
    if service is None:
        return None
    declared = load_registry(view)
    fault = declared.faults.get(name, "")
    service_in_use = next((each for each in declared.services if each.name == name and not each.is_built_in), None)
    open_removals: Collection[str] = ()
    if approval_ids(service):
        open_removals = (
            find_open(view, service_in_use, watched.namespaces(view), service, now)
            if service_in_use is not None
            else (EVERY_GROUP,)
        )
    fault = fault or (scope_fault(view, service_in_use) if service_in_use else "")
    return ServiceSnapshot(service, fault, open_removals)
