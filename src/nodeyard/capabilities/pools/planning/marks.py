"""What a MachineDeployment says while its pool is being removed, in one patch, before anything else happens.

    Drain    since when it drains
    Orphan   how long Cluster API shall evict pods, and wait for volumes, before a machine goes at the latest
    Force    that Cluster API shall evict nothing and wait for no volumes

In each case the autoscaler's annotations go: it would scale what is to be emptied. What a template said before is
recorded, so that another policy, or the pool's return, finds it as it was.

These are merge patches, bound to the version that was looked at. The fields are then held by this manager as an
update, beside what it applied. A MachineDeployment is applied only while its pool is wanted, so the two do not meet,
and a forced apply takes the fields back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.leaving import LeavingPool
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Machine
from nodeyard.capabilities.pools.types import DeletionPolicy
from nodeyard.kube import meta, moments
from nodeyard.kube.json import Object
from nodeyard.kube.patch import merge_diff, merge_patch
from nodeyard.plan.diff import diff
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Disruption, Verb, Write

PART = "removal"
_TIMEOUTS = ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds")
_EXCLUSIONS = (names.EXCLUDE_DRAINING, names.EXCLUDE_VOLUME_WAIT)
_AUTOSCALER = (names.AUTOSCALER_MIN, names.AUTOSCALER_MAX)


class Mark(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What was changed in the template, and how to change it back."""

    policy: str = ""
    added: tuple[str, ...] = ()
    """Annotations that were not there before."""
    timeouts: dict[str, int | None] = {}
    """What stood there before, where it was changed; None where nothing did."""


_NONE = Mark()


def mark(draft: Draft, pool: LeavingPool) -> bool:
    """Make the MachineDeployment say what the policy wants it to; whether there is anything to be made."""
    wanted = _marking(draft, pool)
    if _is_begun(pool):
        return bool(_rewrite(draft, pool, wanted, Reason.POOL_MARKED))
    reason = Reason.DRAIN_STARTED if pool.policy is DeletionPolicy.DRAIN else Reason.POOL_MARKED
    return bool(_rewrite(draft, pool, wanted, reason, _DISRUPTIONS[pool.policy]))


def unmark(draft: Draft, pool: LeavingPool) -> str:
    """Make it say what it said before; the action's id, empty where there is nothing to undo.

    The autoscaler's annotations come back with the next apply of the pool.
    """
    unmarked = _annotated(pool.deployment, dict.fromkeys((names.DRAIN_STARTED, names.MARKED)))
    return _rewrite(draft, pool, _with_template(unmarked, _restored(pool.deployment)), Reason.DRAIN_CANCELLED)


def has_arrived(pool: LeavingPool, machine: Machine) -> bool:
    """Whether a Machine carries what its MachineDeployment says: only then does the deletion respect it."""
    if pool.policy is DeletionPolicy.ORPHAN:
        return machine.spec.deletion.node_drain_timeout_seconds == drain_seconds(pool)
    # Cluster API passes annotations on to no Machine whose deletion has begun: one would be waited for in vain.
    is_deleting = machine.metadata.deletion_timestamp is not None
    return is_deleting or all(each in machine.metadata.annotations for each in _EXCLUSIONS)


def drain_seconds(pool: LeavingPool) -> int:
    """How long Cluster API may evict under Orphan. To it 0 is without end, which Orphan is never."""
    return max(1, pool.timeout)


def mark_of(deployment: Object) -> Mark:
    """The record; an empty one where there is none that can be read."""
    text = meta.annotations(deployment).get(names.MARKED)
    try:
        return msgspec.json.decode(text, type=Mark) if text else _NONE
    except (msgspec.DecodeError, RecursionError):
        return _NONE


_DISRUPTIONS = {
    DeletionPolicy.DRAIN: Disruption.RELEASES,
    DeletionPolicy.ORPHAN: Disruption.DELETES,
    DeletionPolicy.FORCE: Disruption.DELETES,
}


def _rewrite(
    draft: Draft, pool: LeavingPool, wanted: Object, reason: Reason, disruption: Disruption = Disruption.NONE
) -> str:
    body = merge_diff(pool.deployment, wanted)
    if body is None:
        return ""
    is_disruptive = disruption is not Disruption.NONE
    return draft.act(
        Verb.PATCH,
        pool.ref,
        reason,
        pool.facts(policy=pool.policy.value, nodes=len(pool.disturbed)),
        Write(body=body, resource_version=meta.resource_version(pool.deployment)),
        diff=diff(pool.deployment, wanted),
        disruption=disruption,
        disrupts=pool.disturbed if is_disruptive else (),
        part=PART,
        part_of=pool.undertaking if is_disruptive else "",
    )


def _is_begun(pool: LeavingPool) -> bool:
    """Whether it has been let go under this policy: what is still to be said then asks for nothing new."""
    if pool.policy is DeletionPolicy.DRAIN:
        return pool.started is not None
    return mark_of(pool.deployment).policy == pool.policy


def _marking(draft: Draft, pool: LeavingPool) -> Object:
    """The MachineDeployment as the policy wants it."""
    annotations: dict[str, str | None] = dict.fromkeys(_AUTOSCALER)
    template = _restored(pool.deployment)
    if pool.policy is DeletionPolicy.DRAIN:
        annotations[names.MARKED] = None
        if pool.started is None:
            annotations[names.DRAIN_STARTED] = moments.written(draft.now)
    else:
        change = _orphaned if pool.policy is DeletionPolicy.ORPHAN else _forced
        record, template = change(pool, template)
        annotations[names.MARKED] = msgspec.json.encode(record).decode()
    return _with_template(_annotated(pool.deployment, annotations), template)


def _orphaned(pool: LeavingPool, template: Object) -> tuple[Mark, Object]:
    """The record, and the template, for Orphan."""
    before = _deletion(template)
    record = Mark(policy=DeletionPolicy.ORPHAN.value, timeouts={each: before.get(each) for each in _TIMEOUTS})
    return record, merge_patch(template, {"spec": {"deletion": dict.fromkeys(_TIMEOUTS, drain_seconds(pool))}})


def _forced(_pool: LeavingPool, template: Object) -> tuple[Mark, Object]:
    """The record, and the template, for Force."""
    added = tuple(each for each in _EXCLUSIONS if each not in meta.annotations(template))
    record = Mark(policy=DeletionPolicy.FORCE.value, added=added)
    return record, _annotated(template, dict.fromkeys(added, names.TRUE))


def _restored(deployment: Object) -> Object:
    """The template as it was before it was marked."""
    template: Object = (deployment.get("spec") or {}).get("template") or {}
    record = mark_of(deployment)
    template = _annotated(template, dict.fromkeys(each for each in record.added if each in _EXCLUSIONS))
    timeouts = {each: record.timeouts[each] for each in _TIMEOUTS if each in record.timeouts}
    if not timeouts:
        return template
    deletion = {**_deletion(template), **timeouts}
    # Cluster API refuses an empty one.
    is_left = any(value is not None for value in deletion.values())
    return merge_patch(template, {"spec": {"deletion": deletion if is_left else None}})


def _annotated(obj: Object, changes: Mapping[str, str | None]) -> Object:
    """With these annotations, and without those that are None; itself where it is so already."""
    present = meta.annotations(obj)
    real = {key: value for key, value in changes.items() if value is not None or key in present}
    return merge_patch(obj, {"metadata": {"annotations": real}}) if real else obj


def _with_template(deployment: Object, template: Object) -> Object:
    spec = deployment.get("spec") or {}
    return deployment if template is spec.get("template") else {**deployment, "spec": {**spec, "template": template}}


def _deletion(template: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (template.get("spec") or {}).get("deletion") or {}
    return found
