"""Nodes and roles: what they choose, and the cell they ask for."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.collecting import known
from nodeyard.capabilities.profiles.planning.inheritance import effective
from nodeyard.capabilities.profiles.reviews.annotations import choice_faults, choice_warnings
from nodeyard.capabilities.profiles.reviews.cells import node_loss, node_move, role_moves, wanted_cell
from nodeyard.capabilities.profiles.reviews.verdicts import counted
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole
from nodeyard.runtime.capability import View
from nodeyard.runtime.judging import decoded, judged
from nodeyard.runtime.webhooks import Review, Verdict, allowed


def review_node(review: Review, view: View) -> Verdict:
    new, old = (decoded(each, OpenStackDataPlaneNode) for each in (review.object, review.old_object))
    if new is None or new.is_deleting:
        return allowed()
    services = known(view)
    fresh, standing = choice_faults(new, old, services)
    if move := node_move(new, view):
        is_old = old is not None and wanted_cell(old, view) == wanted_cell(new, view)
        (standing if is_old else fresh).append(move)
    warnings = [
        *choice_warnings(new, old, services, view),
        *node_loss(new, old, view),
        *_inheritance(new, old, view),
    ]
    return judged(fresh, standing, warnings)


def _inheritance(new: OpenStackDataPlaneNode, old: OpenStackDataPlaneNode | None, view: View) -> Iterator[str]:
    """What does not go together with the role, where that may be news."""
    if old is not None and old.spec == new.spec:
        return
    role = view.get(names.ROLE_KIND, new.wanted.role, new.metadata.namespace) if new.wanted.role else None
    yield from (fault.message for fault in effective(new, role).faults)


def review_role(review: Review, view: View) -> Verdict:
    if review.operation == "DELETE":
        return _review_removal(review, view)
    new, old = (decoded(each, OpenStackDataPlaneRole) for each in (review.object, review.old_object))
    if new is None or new.metadata.deletion_timestamp is not None:
        return allowed()
    services = known(view)
    fresh, standing = choice_faults(new, old, services)
    fault, notice = role_moves(new, old, view)
    warnings = [*choice_warnings(new, old, services, view), *([notice] if notice else ())]
    return judged([*fresh, *([fault] if fault else ())], standing, warnings)


def _review_removal(review: Review, view: View) -> Verdict:
    nodes = view.indexed(names.NODE_KIND, names.BY_ROLE, f"{review.namespace}/{review.name}")
    left = sorted(node.name for node in nodes if not node.is_deleting)
    if not left:
        return allowed()
    return allowed(
        f"{names.ROLE_KIND} {review.name} is the role of {counted(left)}: without it they keep what is deployed, and "
        "follow their own annotations alone"
    )
