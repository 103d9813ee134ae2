"""Review cells: nova cannot move a compute to another cell, whether its node, its role or spec.role changes."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.messages import count_nodes, text
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, annotation_of
from nodeyard.runtime.capability import View

_COMPUTES = watched.kind_name(names.NOVA_API_VERSION, names.COMPUTE_KIND)


def wanted_cell(node: OpenStackDataPlaneNode | None, view: View) -> str | None:
    """Return the cell of a node, by its own annotation or that of its role; None if the role is missing."""
    own = annotation_of(node, names.CELL)
    if node is None or own is not None:
        return own
    if not node.wanted.role:
        return ""
    role: OpenStackDataPlaneRole | None = view.get(names.ROLE_KIND, node.wanted.role, node.metadata.namespace)
    return None if role is None else annotation_of(role, names.CELL) or ""


def present_cell(node: OpenStackDataPlaneNode, view: View) -> str:
    """Return the cell of a node's compute; empty if there is no compute or no cell."""
    compute = view.get(_COMPUTES, node.name, node.metadata.namespace)
    return "" if compute is None else watched.spec_string(compute, "cellName")


def node_cell_fault(node: OpenStackDataPlaneNode, view: View) -> str:
    """Return the fault of a node whose compute would change its cell; empty if none."""
    wanted, present = wanted_cell(node, view), present_cell(node, view)
    if not wanted or not present or wanted == present:
        return ""
    return text(Reason.CELL_CHANGED, {"service": names.NOVA, "node": node.name, "from": present, "to": wanted})


def node_cell_warnings(new: OpenStackDataPlaneNode, old: OpenStackDataPlaneNode | None, view: View) -> Iterator[str]:
    if old is not None and wanted_cell(old, view) and wanted_cell(new, view) == "" and present_cell(new, view):
        yield _removal_warning([new.name])


def role_cell_change(new: OpenStackDataPlaneRole, old: OpenStackDataPlaneRole | None, view: View) -> tuple[str, str]:
    """Return the fault and the warning of a role that changes its cell; each may be empty."""
    before, after = (annotation_of(each, names.CELL) or "" for each in (old, new))
    if before == after:
        return "", ""
    followers = {node.name: present_cell(node, view) for node in _followers(new, view)}
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
