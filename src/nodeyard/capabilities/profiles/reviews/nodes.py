"""Review nodes and roles: their annotations, and their cell.

A name that is not valid is a fault, a missing profile or role is a warning. Nova cannot move a compute to another cell,
whether its node, its role or spec.role changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.messages.base import count_nodes
from nodeyard.capabilities.profiles.messages.choices import ProfileInvalid, ProfileNotFound, RoleNotFound
from nodeyard.capabilities.profiles.messages.faults import CellChanged, CellInvalid, KeyConflict, UnknownService
from nodeyard.capabilities.profiles.planning.inheritance import inherit
from nodeyard.capabilities.profiles.planning.registry import Registry
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.capabilities.profiles.types import (
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    Source,
    annotation_of,
)
from nodeyard.capabilities.profiles.watched import load_registry
from nodeyard.client.resources import view_kind
from nodeyard.kube.json import json_equal
from nodeyard.kube.names import subdomain_faults
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, allowed, decode, ratchet

_COMPUTES: Final = view_kind(names.NOVA_API_VERSION, names.COMPUTE_KIND)
_Choosing = OpenStackDataPlaneNode | OpenStackDataPlaneRole


def review_node(review: AdmissionRequest, view: View) -> AdmissionResponse:
    new, old = (decode(each, OpenStackDataPlaneNode) for each in (review.object, review.old_object))
    if new is None or new.is_deleting:
        return allowed()
    services = load_registry(view)
    fresh, standing = _choice_faults(new, old, services)
    if move := _node_cell_fault(new, view):
        is_old = old is not None and _wanted_cell(old, view) == _wanted_cell(new, view)
        (standing if is_old else fresh).append(move)
    warnings = [
        *_choice_warnings(new, old, services, view),
        *_node_cell_warnings(new, old, view),
        *_inheritance(new, old, view),
        *_missing_role(new, old, view),
    ]
    return ratchet(fresh, standing, warnings)


def _inheritance(new: OpenStackDataPlaneNode, old: OpenStackDataPlaneNode | None, view: View) -> Iterator[str]:
    """Return inheritance faults if the spec has changed."""
    if old is not None and json_equal(old.spec, new.spec):
        return
    role = view.get(names.ROLE_KIND, new.wanted.role, new.metadata.namespace) if new.wanted.role else None
    yield from (fault.error for fault in inherit(new, role).faults)


def _missing_role(new: OpenStackDataPlaneNode, old: OpenStackDataPlaneNode | None, view: View) -> Iterator[str]:
    """Return a warning if the change sets spec.role to a missing role."""
    role = new.wanted.role
    if not role or (old is not None and old.wanted.role == role):
        return
    if view.get(names.ROLE_KIND, role, new.metadata.namespace) is None:
        yield RoleNotFound(node=new.name, role=role).text()


def review_role(review: AdmissionRequest, view: View) -> AdmissionResponse:
    if review.operation == "DELETE":
        return _review_removal(review, view)
    new, old = (decode(each, OpenStackDataPlaneRole) for each in (review.object, review.old_object))
    if new is None or new.metadata.deletion_timestamp is not None:
        return allowed()
    services = load_registry(view)
    fresh, standing = _choice_faults(new, old, services)
    fault, notice = _role_cell_change(new, old, view)
    warnings = [*_choice_warnings(new, old, services, view), *([notice] if notice else ())]
    return ratchet([*fresh, *([fault] if fault else ())], standing, warnings)


def _review_removal(review: AdmissionRequest, view: View) -> AdmissionResponse:
    nodes = view.indexed(names.NODE_KIND, names.BY_ROLE, f"{review.namespace}/{review.name}")
    left = sorted(node.name for node in nodes if not node.is_deleting)
    if not left:
        return allowed()
    return allowed(
        f"{names.ROLE_KIND} {review.name} is the role of {count_nodes(left)}: without it they keep the deployed "
        "configuration, and only their own annotations apply"
    )


# annotations


def _annotations_of(obj: _Choosing | None) -> Mapping[str, str]:
    return {} if obj is None else obj.metadata.annotations


def _choice_faults(new: _Choosing, old: _Choosing | None, services: Registry) -> tuple[list[str], list[str]]:
    """Return the faults that this change adds, and those that it does not change."""
    fresh: list[str] = []
    standing: list[str] = []
    before, after = _annotations_of(old), _annotations_of(new)
    for key, message in _faults(new, services):
        (standing if before.get(key) == after[key] else fresh).append(message)
    return fresh, standing


def _faults(new: _Choosing, services: Registry) -> Iterator[tuple[str, str]]:
    """Return annotation keys and the faults of their values."""
    given = _annotations_of(new)
    for service in services.services:
        if faults := _name_faults(given.get(service.annotation_key)):
            yield service.annotation_key, _invalid(new, service, faults[0])
    if faults := _name_faults(given.get(names.CELL)):
        source, node, role = _layer(new)
        cell = given[names.CELL]
        yield (
            names.CELL,
            CellInvalid(service=names.NOVA, cell=cell, source=source, node=node, role=role, error=faults[0]).text(),
        )


def _invalid(new: _Choosing, service: Service, error: str) -> str:
    source, node, role = _layer(new)
    kind, key = service.profile_kind, service.annotation_key
    value = _annotations_of(new)[key]
    return ProfileInvalid(
        service=service.name, kind=kind, profile=value, key=key, source=source, node=node, role=role, error=error
    ).text()


def _name_faults(value: str | None) -> list[str]:
    """Return the faults of a name; an empty value is valid and means no profile."""
    return subdomain_faults(value) if value else []


def _choice_warnings(new: _Choosing, old: _Choosing | None, services: Registry, view: View) -> Iterator[str]:
    """Return warnings about changed annotations: not used by any service, or naming a missing profile."""
    changed = dict(_annotations_of(new).items() - _annotations_of(old).items())
    known = {service.annotation_key: service for service in services.services}
    asking = {service.create_when for service in services.services}
    for key, value in sorted(changed.items()):
        if key in known:
            yield from _missing_profile(new, known[key], value, view)
        elif key in services.key_conflicts:
            yield KeyConflict(key=key, services=tuple(services.key_conflicts[key])).text()
        elif key.endswith(names.PROFILE_SUFFIX) and key not in asking:
            yield UnknownService(key=key).text()


def _missing_profile(new: _Choosing, service: Service, value: str, view: View) -> Iterator[str]:
    kind = view_kind(service.profile_api_version, service.profile_kind)
    if not value or subdomain_faults(value) or not watched.is_synced(view, kind):
        return
    namespace = new.metadata.namespace
    if view.get(kind, value, namespace) is None:
        source, node, role = _layer(new)
        yield ProfileNotFound(
            service=service.name,
            kind=service.profile_kind,
            profile=value,
            key=service.annotation_key,
            source=source,
            node=node,
            role=role,
            namespace=namespace,
        ).text()


def _layer(obj: _Choosing) -> tuple[str, str, str]:
    """Return the layer of an object, and its name as a node or as a role."""
    name = obj.metadata.name
    return (Source.NODE.value, name, "") if isinstance(obj, OpenStackDataPlaneNode) else (Source.ROLE.value, "", name)


# cells


def _wanted_cell(node: OpenStackDataPlaneNode | None, view: View) -> str | None:
    """Return the cell of a node, by its own annotation or that of its role; None if the role is missing."""
    own = annotation_of(node, names.CELL)
    if node is None or own is not None:
        return own
    if not node.wanted.role:
        return ""
    role: OpenStackDataPlaneRole | None = view.get(names.ROLE_KIND, node.wanted.role, node.metadata.namespace)
    return None if role is None else annotation_of(role, names.CELL) or ""


def _present_cell(node: OpenStackDataPlaneNode, view: View) -> str:
    """Return the cell of a node's compute; empty if there is no compute or no cell."""
    compute = view.get(_COMPUTES, node.name, node.metadata.namespace)
    return "" if compute is None else watched.spec_string(compute, "cellName")


def _node_cell_fault(node: OpenStackDataPlaneNode, view: View) -> str:
    """Return the fault of a node whose compute would change its cell; empty if none."""
    wanted, present = _wanted_cell(node, view), _present_cell(node, view)
    if not wanted or not present or wanted == present:
        return ""
    return CellChanged(service=names.NOVA, node=node.name, from_=present, to=wanted).text()


def _node_cell_warnings(new: OpenStackDataPlaneNode, old: OpenStackDataPlaneNode | None, view: View) -> Iterator[str]:
    if old is not None and _wanted_cell(old, view) and _wanted_cell(new, view) == "" and _present_cell(new, view):
        yield _removal_warning([new.name])


def _role_cell_change(new: OpenStackDataPlaneRole, old: OpenStackDataPlaneRole | None, view: View) -> tuple[str, str]:
    """Return the fault and the warning of a role that changes its cell; each may be empty."""
    before, after = (annotation_of(each, names.CELL) or "" for each in (old, new))
    if before == after:
        return "", ""
    followers = {node.name: _present_cell(node, view) for node in _followers(new, view)}
    moving = sorted(node for node, cell in followers.items() if cell and after and cell != after)
    losing = sorted(node for node, cell in followers.items() if cell and not after)
    return _move_fault(new, moving, before, after) if moving else "", _removal_warning(losing) if losing else ""


def _followers(role: OpenStackDataPlaneRole, view: View) -> Iterator[OpenStackDataPlaneNode]:
    """Iterate over nodes of a role that do not set their own cell."""
    nodes = view.indexed(names.NODE_KIND, names.BY_ROLE, f"{role.metadata.namespace}/{role.metadata.name}")
    return (node for node in nodes if not node.is_deleting and annotation_of(node, names.CELL) is None)


def _move_fault(role: OpenStackDataPlaneRole, nodes: list[str], before: str, after: str) -> str:
    remedy = f"Keep {before!r}, or create another role" if before else "Set it to the cell that they are in"
    return (
        f"Annotation {names.CELL} on role {role.metadata.name} cannot be {after!r}: nova does not move computes "
        f"between cells, and {count_nodes(nodes)} would change cell. {remedy}"
    )


def _removal_warning(nodes: list[str]) -> str:
    return f"This change removes {names.CELL}, which deletes the {names.COMPUTE_KIND} of {count_nodes(nodes)}"
