"""Cells: a compute that is in one cannot move to another, whoever says so: its node, its role, or a change of role."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.reviews.verdicts import counted
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, annotation_of
from nodeyard.runtime.capability import View

_COMPUTES = watched.viewed(names.NOVA_API_VERSION, names.COMPUTE_KIND)


def wanted_cell(node: OpenStackDataPlaneNode | None, view: View) -> str | None:
    """The cell that a node asks for, itself or by its role; None where that cannot be known."""
    own = annotation_of(node, names.CELL)
    if node is None or own is not None:
        return own
    if not node.wanted.role:
        return ""
    role: OpenStackDataPlaneRole | None = view.get(names.ROLE_KIND, node.wanted.role, node.metadata.namespace)
    return None if role is None else annotation_of(role, names.CELL) or ""


def present_cell(node: OpenStackDataPlaneNode, view: View) -> str:
    """The cell that a node's compute is in; empty where it has none, or is in none."""
    compute = view.get(_COMPUTES, node.name, node.metadata.namespace)
    return "" if compute is None else watched.named(compute, "cellName")


def node_move(node: OpenStackDataPlaneNode, view: View) -> str:
    """What is wrong with the cell that a node asks for; empty where nothing is."""
    wanted, present = wanted_cell(node, view), present_cell(node, view)
    if not wanted or not present or wanted == present:
        return ""
    return text(Reason.CELL_CHANGED, {"service": names.NOVA, "node": node.name, "from": present, "to": wanted})


def node_loss(new: OpenStackDataPlaneNode, old: OpenStackDataPlaneNode | None, view: View) -> Iterator[str]:
    if old is not None and wanted_cell(old, view) and wanted_cell(new, view) == "" and present_cell(new, view):
        yield _losing([new.name])


def role_moves(new: OpenStackDataPlaneRole, old: OpenStackDataPlaneRole | None, view: View) -> tuple[str, str]:
    """What is wrong with a role's new cell, and what is worth knowing about it; each empty where nothing is."""
    before, after = (annotation_of(each, names.CELL) or "" for each in (old, new))
    if before == after:
        return "", ""
    followers = {node.name: present_cell(node, view) for node in _followers(new, view)}
    moving = sorted(node for node, cell in followers.items() if cell and after and cell != after)
    losing = sorted(node for node, cell in followers.items() if cell and not after)
    return _moving(new, moving, before, after) if moving else "", _losing(losing) if losing else ""


def _followers(role: OpenStackDataPlaneRole, view: View) -> Iterator[OpenStackDataPlaneNode]:
    """The nodes of a role that do not choose a cell for themselves."""
    nodes = view.indexed(names.NODE_KIND, names.BY_ROLE, f"{role.metadata.namespace}/{role.metadata.name}")
    return (node for node in nodes if not node.is_deleting and annotation_of(node, names.CELL) is None)


def _moving(role: OpenStackDataPlaneRole, nodes: list[str], before: str, after: str) -> str:
    remedy = f"Keep {before!r}, or make another role" if before else "Name the cell that they are in"
    return (
        f"The annotation {names.CELL} of role {role.metadata.name} cannot be {after!r}: computes do not move between "
        f"cells, and {counted(nodes)} would have to. {remedy}"
    )


def _losing(nodes: list[str]) -> str:
    return f"Without {names.CELL} the {names.COMPUTE_KIND} of {counted(nodes)} is deleted"
