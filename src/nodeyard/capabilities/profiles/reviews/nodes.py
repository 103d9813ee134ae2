"""Review nodes and roles: their choices and their cell."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.collect import load_registry
from nodeyard.capabilities.profiles.messages import count_nodes, text
from nodeyard.capabilities.profiles.planning.inheritance import inherit
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.reviews.annotations import choice_faults, choice_warnings
from nodeyard.capabilities.profiles.reviews.cells import (
    node_cell_fault,
    node_cell_warnings,
    role_cell_change,
    wanted_cell,
)
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole
from nodeyard.kube.json import json_equal
from nodeyard.runtime.capability import View
from nodeyard.runtime.ratcheting import decoded, judged
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, allowed


def review_node(review: AdmissionRequest, view: View) -> AdmissionResponse:
    new, old = (decoded(each, OpenStackDataPlaneNode) for each in (review.object, review.old_object))
    if new is None or new.is_deleting:
        return allowed()
    services = load_registry(view)
    fresh, standing = choice_faults(new, old, services)
    if move := node_cell_fault(new, view):
        is_old = old is not None and wanted_cell(old, view) == wanted_cell(new, view)
        (standing if is_old else fresh).append(move)
    warnings = [
        *choice_warnings(new, old, services, view),
        *node_cell_warnings(new, old, view),
        *_inheritance(new, old, view),
        *_missing_role(new, old, view),
    ]
    return judged(fresh, standing, warnings)


def _inheritance(new: OpenStackDataPlaneNode, old: OpenStackDataPlaneNode | None, view: View) -> Iterator[str]:
    """Return inheritance faults if the spec has changed."""
    if old is not None and json_equal(old.spec, new.spec):
        return
    role = view.get(names.ROLE_KIND, new.wanted.role, new.metadata.namespace) if new.wanted.role else None
    yield from (fault.message for fault in inherit(new, role).faults)


def _missing_role(new: OpenStackDataPlaneNode, old: OpenStackDataPlaneNode | None, view: View) -> Iterator[str]:
    """Return a warning if the change sets spec.role to a missing role."""
    role = new.wanted.role
    if not role or (old is not None and old.wanted.role == role):
        return
    if view.get(names.ROLE_KIND, role, new.metadata.namespace) is None:
        yield text(Reason.ROLE_NOT_FOUND, {"node": new.name, "role": role})


def review_role(review: AdmissionRequest, view: View) -> AdmissionResponse:
    if review.operation == "DELETE":
        return _review_removal(review, view)
    new, old = (decoded(each, OpenStackDataPlaneRole) for each in (review.object, review.old_object))
    if new is None or new.metadata.deletion_timestamp is not None:
        return allowed()
    services = load_registry(view)
    fresh, standing = choice_faults(new, old, services)
    fault, notice = role_cell_change(new, old, view)
    warnings = [*choice_warnings(new, old, services, view), *([notice] if notice else ())]
    return judged([*fresh, *([fault] if fault else ())], standing, warnings)


def _review_removal(review: AdmissionRequest, view: View) -> AdmissionResponse:
    nodes = view.indexed(names.NODE_KIND, names.BY_ROLE, f"{review.namespace}/{review.name}")
    left = sorted(node.name for node in nodes if not node.is_deleting)
    if not left:
        return allowed()
    return allowed(
        f"{names.ROLE_KIND} {review.name} is the role of {count_nodes(left)}: without it they keep the deployed "
        "configuration, and only their own annotations apply"
    )
