"""Collect the snapshot of a node from the cache: the node, its role, its profiles and the objects created for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.collect.removals import find_removals
from nodeyard.capabilities.profiles.collect.rollouts import find_budgets, ignores_progress
from nodeyard.capabilities.profiles.messages.faults import Forbidden, KindFault, NotNamespaced, NotServed
from nodeyard.capabilities.profiles.planning.resolution import resolve
from nodeyard.capabilities.profiles.snapshot import Budget, NodeSnapshot, Profile, Removal, Service
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, annotation_of
from nodeyard.capabilities.profiles.watched import load_registry
from nodeyard.client.resources import CONFIG_MAPS, SECRETS, Resource, view_kind
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View, WatchNotSynced
from nodeyard.watch.reflector import FORBIDDEN


def collect_node(view: View, namespace: str, name: str, now: datetime) -> NodeSnapshot | None:
    node: OpenStackDataPlaneNode | None = view.get(names.NODE_KIND, name, namespace)
    if node is None:
        return None
    services = load_registry(view)
    role: OpenStackDataPlaneRole | None = (
        view.get(names.ROLE_KIND, node.wanted.role, namespace) if node.wanted.role else None
    )
    kind_faults = _find_kind_faults(view, services.services)
    visible = [service for service in services.services if service.name not in kind_faults]
    ignored: set[str] = set()
    budget_by_service: dict[str, Budget] = {}
    removal_by_service: dict[str, Removal] = {}
    snapshot = NodeSnapshot(
        node=node,
        role=role,
        services=services.services,
        key_conflicts=services.key_conflicts,
        profiles={service.name: _find_profiles(view, service, node, role) for service in visible},
        objects=_find_objects(view, node, visible),
        configurations=_find_configurations(view, node, visible),
        budgets=budget_by_service,
        removals=removal_by_service,
        kind_faults=kind_faults,
        ignored=ignored,
        has_config_maps=_can_read(view, CONFIG_MAPS, namespace),
        has_secrets=_can_read(view, SECRETS, namespace),
    )
    # These three depend on the resolved profiles, which are computed from the rest of the snapshot.
    chosen = [resolve(snapshot)[service.name] for service in visible]
    ignored.update(each.service.name for each in chosen if ignores_progress(view, each.service, each.profile))
    budget_by_service.update(find_budgets(view, snapshot, now))
    removal_by_service.update(find_removals(view, snapshot, now))
    return snapshot


def _find_kind_faults(view: View, services: Sequence[Service]) -> Mapping[str, KindFault]:
    """Return faults of declared kinds, by service: not served, cluster-scoped, or forbidden."""
    found = {}
    for service in services:
        if service.is_built_in:
            continue
        kinds = [(service.profile_api_version, service.profile_kind)]
        if service.makes_object:
            kinds.append((service.object_api_version, service.object_kind))
        for api_version, kind in kinds:
            fault = _find_kind_fault(view, service.name, api_version, kind)
            if fault is not None:
                found[service.name] = fault
    return found


def _can_read(view: View, resource: Resource[Any], namespace: str) -> bool:
    """Check if ConfigMaps or Secrets of a namespace may be read; the same grant allows writes."""
    kind = watched.configuration_kind(resource, namespace)
    if view.is_synced(kind):
        return True
    if FORBIDDEN in view.watch_error(kind):
        return False
    raise WatchNotSynced(kind)


def scope_fault(view: View, service: Service) -> str:
    """Return the fault of a service whose kinds are cluster-scoped, which only discovery knows."""
    faults = _find_kind_faults(view, (service,)).values()
    return next((each.error for each in faults if isinstance(each, NotNamespaced)), "")


def _find_kind_fault(view: View, service: str, api_version: str, kind: str) -> KindFault | None:
    viewed, group = view_kind(api_version, kind), api_version.rpartition("/")[0]
    if not view.versions(group, kind):
        return NotServed(service=service, error=f"the API server does not serve {viewed}")
    if not view.is_namespaced(viewed):
        error = f"{viewed} is cluster-scoped, but profiles and service objects live in the namespace of their node"
        return NotNamespaced(service=service, error=error)
    if view.is_synced(viewed):
        return None
    return Forbidden(service=service, error=view.watch_error(viewed) or f"{viewed} is not synced yet")


def _find_profiles(
    view: View, service: Service, node: OpenStackDataPlaneNode, role: OpenStackDataPlaneRole | None
) -> Mapping[str, Profile]:
    kind, namespace = view_kind(service.profile_api_version, service.profile_kind), node.metadata.namespace
    wanted = {annotation_of(each, service.annotation_key) for each in (node, role)}
    found = [view.get(kind, name, namespace) for name in sorted(name for name in wanted if name)]
    found += view.indexed(kind, watched.SELECTING, namespace)
    return {each["metadata"]["name"]: watched.parse_profile(service, each) for each in found if each is not None}


def _find_objects(view: View, node: OpenStackDataPlaneNode, services: Sequence[Service]) -> Mapping[str, Object]:
    found = {
        service.name: view.get(
            view_kind(service.object_api_version, service.object_kind), node.name, node.metadata.namespace
        )
        for service in services
        if service.makes_object
    }
    return {name: each for name, each in found.items() if each is not None}


def _find_configurations(
    view: View, node: OpenStackDataPlaneNode, services: Sequence[Service]
) -> Mapping[str, Sequence[Object]]:
    """Find configuration objects by name: a copy made by a user has the same labels."""
    found = {}
    for service in services:
        if service.makes_object:
            name = names.config_name(node.name, service.name)
            kinds = [watched.configuration_kind(each, node.metadata.namespace) for each in watched.CONFIGURATIONS]
            each = (view.get(kind, name, node.metadata.namespace) for kind in kinds if view.is_synced(kind))
            found[service.name] = tuple(obj for obj in each if obj is not None)
    return found
