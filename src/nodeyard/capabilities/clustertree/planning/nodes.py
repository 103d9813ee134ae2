"""A node of the root as its model wants it, and the step there: create it, take it over, or change it.

What is wanted is made of what is there, so that both are of one type and everything that others wrote stays. A node is
created whole, with its taint, labels and status in one request: a pod that has no business there never meets it bare.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning import patches
from nodeyard.capabilities.clustertree.planning.addresses import addresses_of, node_info_of
from nodeyard.capabilities.clustertree.planning.amounts import Offer, offer_of
from nodeyard.capabilities.clustertree.planning.changes import Change
from nodeyard.capabilities.clustertree.planning.conditions import conditions_of, gone, unseen
from nodeyard.capabilities.clustertree.planning.cordons import cordon_of
from nodeyard.capabilities.clustertree.planning.labels import labels_of
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, node_ref, owned_by
from nodeyard.capabilities.clustertree.planning.steady import Steady
from nodeyard.capabilities.clustertree.planning.taints import taints_of
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeNodeSpec, TreeNodeStatus, TreeSnapshot
from nodeyard.kube.names import MIRRORED_CLUSTER
from nodeyard.plan.diff import diff
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Verb, Write

_replace = msgspec.structs.replace
_NONE: Final = "0"


def keep(draft: Draft, mirror: Mirror, steady: Steady, after: tuple[str, ...]) -> bool:
    """Make the node as it should be; whether all of it is in this plan."""
    name, made_of = mirror.placement.name, mirror.made_of()
    if steady.is_right(name, made_of):
        return True
    offer = offer_of(mirror)
    wanted = _wanted(mirror, offer)
    if mirror.node is None:
        _create(draft, mirror, wanted, after)
        return False
    known = len(draft.actions)
    reason = Reason.NODE_UPDATED if is_adopted(mirror.node) else Reason.NODE_ADOPTED
    Change(mirror.snapshot.cluster, mirror.node, wanted, after).plan(draft, reason)
    if offer.held_until is not None:
        draft.wake(offer.held_until)
    elif len(draft.actions) == known:
        steady.note(name, made_of)
    return True


def keep_unseen(draft: Draft, snapshot: TreeSnapshot, node: TreeNode) -> None:
    """Leave the node as it is, but for what the line tells of it."""
    status = _replace(node.status, conditions=unseen(node, snapshot, draft.now))
    Change(snapshot.cluster, node, _replace(node, status=status)).plan(draft, Reason.NODE_UPDATED)


def empty(draft: Draft, snapshot: TreeSnapshot, node: TreeNode, *, is_gone: bool = False) -> tuple[str, ...]:
    """Leave the node as it is, but let it offer nothing: others have what it mirrored, or it is gone from the leaf.

    What is to be sent first, by id."""
    known = len(draft.actions)
    status = _replace(
        node.status,
        conditions=(gone if is_gone else unseen)(node, snapshot, draft.now),
        capacity=dict.fromkeys(node.status.capacity, _NONE),
        allocatable=dict.fromkeys(node.status.allocatable, _NONE),
    )
    annotations = {key: text for key, text in node.metadata.annotations.items() if key != names.LARGEST_FREE}
    wanted = _replace(node, metadata=_replace(node.metadata, annotations=annotations), status=status)
    Change(snapshot.cluster, node, wanted, amounts=Reason.NODE_EMPTIED).plan(draft, Reason.NODE_UPDATED)
    return tuple(each.id for each in draft.actions[known:])


def _wanted(mirror: Mirror, offer: Offer) -> TreeNode:
    cluster, placement, present = mirror.snapshot.cluster, mirror.placement, mirror.present
    labels, taints, cordon, conditions = labels_of(mirror), taints_of(mirror), cordon_of(mirror), conditions_of(mirror)
    notes = {
        MIRRORED_CLUSTER: cluster.name,
        names.NODE_MODE: placement.model.mode.value,
        names.MODEL: placement.model.identity,
        names.MIRRORED_LABELS: labels.recorded,
        names.MIRRORED_TAINTS: taints.recorded,
        names.MIRRORED_CONDITIONS: conditions.recorded,
        names.CORDONED_BY: cordon.by,
        names.WRITTEN_AT: offer.written_at,
        names.LARGEST_FREE: offer.largest,
    }
    annotations = {key: value for key, value in present.metadata.annotations.items() if key not in notes}
    metadata = _replace(
        present.metadata,
        labels=labels.over(present.metadata.labels, mirror.said(names.MIRRORED_LABELS)),
        annotations=annotations | {key: value for key, value in notes.items() if value},
        owner_references=owned_by(cluster, present.metadata.owner_references),
    )
    spec = TreeNodeSpec(
        taints=taints.over(present.spec.taints, mirror.said(names.MIRRORED_TAINTS)),
        unschedulable=cordon.is_cordoned,
        # Once set it can never be changed.
        provider_id=present.spec.provider_id or names.provider_id(cluster.name, placement.name),
    )
    status = TreeNodeStatus(
        conditions=conditions.stand,
        addresses=addresses_of(mirror),
        capacity=dict(offer.capacity),
        allocatable=dict(offer.allocatable),
        node_info=node_info_of(mirror),
    )
    return TreeNode(metadata=metadata, spec=spec, status=status)


def _create(draft: Draft, mirror: Mirror, wanted: TreeNode, after: tuple[str, ...]) -> None:
    model = mirror.placement.model
    draft.act(
        Verb.CREATE,
        node_ref(wanted.name),
        Reason.NODE_CREATED,
        {
            "cluster": mirror.snapshot.cluster.name,
            "node": wanted.name,
            "mode": model.mode.value,
            "model": model.title,
        },
        Write(body=patches.wire(wanted, draft.now)),
        diff=diff(None, patches.wire(wanted)),
        after=after,
    )
