"""How what a plan sees is taken from the cache: a node, its role, what they name, and what was made for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.budgets import budgets
from nodeyard.capabilities.profiles.grants import Grants
from nodeyard.capabilities.profiles.losses import losses
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.services import Registry, registry
from nodeyard.capabilities.profiles.snapshot import Budget, Loss, NodeSnapshot, Profile, Service, Trouble
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, annotation_of
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View

_BUILT_IN: Final = registry(())


def known(view: View) -> Registry:
    """The services there are now."""
    declared = view.all(names.SERVICE_KIND)
    return registry(declared) if declared else _BUILT_IN


def collect_node(view: View, namespace: str, name: str, now: datetime, grants: Grants) -> NodeSnapshot | None:
    grants.withdraw(names.node_key(namespace, name))
    node: OpenStackDataPlaneNode | None = view.get(names.NODE_KIND, name, namespace)
    if node is None:
        return None
    services = known(view)
    role: OpenStackDataPlaneRole | None = (
        view.get(names.ROLE_KIND, node.wanted.role, namespace) if node.wanted.role else None
    )
    troubles = _troubles(view, services.services)
    seen = [service for service in services.services if service.name not in troubles]
    granted: dict[str, Budget] = {}
    lost: dict[str, Loss] = {}
    snapshot = NodeSnapshot(
        node=node,
        role=role,
        services=services.services,
        claimed_twice=services.claimed_twice,
        profiles={service.name: _profiles(view, service, node, role) for service in seen},
        objects=_objects(view, node, seen),
        configurations=_configurations(view, node, seen),
        budgets=granted,
        losses=lost,
        troubles=troubles,
    )
    # Who is disturbed is known by what the node is to have: these two of the snapshot follow from the rest of it.
    granted.update(budgets(view, snapshot, now, grants))
    lost.update(losses(view, snapshot))
    return snapshot


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


def scope_fault(view: View, service: Service) -> str:
    """What is wrong with the kinds that a service names, which only the server knows."""
    troubles = _troubles(view, (service,)).values()
    return next((each.message for each in troubles if each.reason is Reason.NOT_NAMESPACED), "")


def _cluster_scoped(kind: str) -> str:
    return f"{kind} is cluster-scoped, and profiles and what is made by them are in the namespace of their node"


def _trouble(view: View, api_version: str, kind: str) -> Trouble | None:
    viewed, group = watched.viewed(api_version, kind), api_version.rpartition("/")[0]
    if not view.versions(group, kind):
        return Trouble(Reason.NOT_SERVED, f"the server does not have {viewed}")
    if not view.is_namespaced(viewed):
        return Trouble(Reason.NOT_NAMESPACED, _cluster_scoped(viewed))
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


def _configurations(
    view: View, node: OpenStackDataPlaneNode, services: Sequence[Service]
) -> Mapping[str, Sequence[Object]]:
    """By their name: a copy that somebody keeps has the same labels, and is none of ours."""
    found = {}
    for service in services:
        if service.makes_object:
            name = names.config_name(node.name, service.name)
            each = (view.get(resource.kind, name, node.metadata.namespace) for resource in watched.CONFIGURATIONS)
            found[service.name] = tuple(obj for obj in each if obj is not None)
    return found
