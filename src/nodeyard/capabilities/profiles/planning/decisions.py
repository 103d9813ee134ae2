"""Explain the profiles of a node and its service objects, for `nodeyard why osdpnode/...`.

Every service is a candidate: taken if a profile resolves, else left. Its facts are the layer that chose, the shadowed
layers and the reason it waits. The rule is the first reason that blocks the node, if any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.resolution import Resolution, is_role_missing, unknown_keys
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.capabilities.profiles.types import State
from nodeyard.kube.json import Object
from nodeyard.plan.model import Blocked, Candidate, Decision, ObjectRef

Resolutions = Mapping[str, Resolution]

_CHANGES: Mapping[str, tuple[Reason, ...]] = {
    Reason.FROM_NODE: (Reason.ANNOTATE_NODE,),
    Reason.FROM_ROLE: (Reason.ANNOTATE_NODE, Reason.ANNOTATE_ROLE),
    Reason.FROM_SELECTOR: (Reason.ANNOTATE_NODE, Reason.ANNOTATE_ROLE),
    Reason.DISABLED: (Reason.ANNOTATE_NODE,),
    Reason.NONE: (Reason.ANNOTATE_NODE, Reason.ANNOTATE_ROLE),
    Reason.RECONCILED: (Reason.ANNOTATE_NODE, Reason.ANNOTATE_ROLE),
    Reason.INVALID: (Reason.FIX_ANNOTATION,),
    Reason.NOT_FOUND: (Reason.CREATE_PROFILE, Reason.ANNOTATE_NODE),
    Reason.AMBIGUOUS: (Reason.SET_PRIORITY, Reason.ANNOTATE_NODE),
    Reason.ROLE_NOT_FOUND: (Reason.CREATE_ROLE,),
    Reason.FORBIDDEN: (Reason.GRANT_PERMISSION,),
    Reason.PINNED: (Reason.FOLLOW_PROFILE,),
    Reason.STALLED: (Reason.CHECK_OPERATOR,),
}
_NOTICES = (Reason.PINNED,)
"""Informational reasons, which do not block."""


def decide(
    ref: ObjectRef, snapshot: NodeSnapshot, resolutions: Resolutions, plan_blocked: Sequence[Blocked]
) -> Decision | None:
    """Return the decision about an object; None if it is not an object of this node."""
    metadata = snapshot.node.metadata
    if (ref.namespace, ref.name) != (metadata.namespace, metadata.name):
        return None
    if ref.kind == names.NODE_KIND:
        return _decide_node(ref, snapshot, resolutions, plan_blocked)
    made = (each for each in resolutions.values() if each.service.makes_object)
    resolution = next((each for each in made if _is_made(ref, each)), None)
    return None if resolution is None else _decide_object(ref, resolution, plan_blocked)


def _is_made(ref: ObjectRef, resolution: Resolution) -> bool:
    """Check if the object is of the service's kind, in any version."""
    service = resolution.service
    group = service.object_api_version.rpartition("/")[0]
    return (ref.api_version.rpartition("/")[0], ref.kind) == (group, service.object_kind)


def _decide_node(
    ref: ObjectRef, snapshot: NodeSnapshot, resolutions: Resolutions, blocked: Sequence[Blocked]
) -> Decision:
    rule, facts = _rule(snapshot, resolutions, blocked)
    services = (_candidate(each, blocked) for _name, each in sorted(resolutions.items()))
    return _decision(ref, rule, facts, (*services, *_unused_annotations(snapshot)))


def _decide_object(ref: ObjectRef, resolution: Resolution, blocked: Sequence[Blocked]) -> Decision:
    blocker = _blocker(resolution, blocked)
    if blocker is None:
        return _decision(ref, resolution.reason.value, resolution.facts, ())
    return _decision(ref, blocker.reason, {**resolution.facts, **blocker.facts}, (_candidate(resolution, blocked),))


def _decision(ref: ObjectRef, rule: str, facts: Object, candidates: tuple[Candidate, ...]) -> Decision:
    changes = tuple(each.value for each in _CHANGES.get(rule, ()))
    return Decision(object=ref, rule=rule, facts=facts, candidates=candidates, would_change=changes)


def _rule(snapshot: NodeSnapshot, resolutions: Resolutions, blocked: Sequence[Blocked]) -> tuple[str, Object]:
    """Return the first blocking reason, or Reconciled."""
    blocker = next((each for each in blocked if each.reason not in _NOTICES), None)
    if blocker is not None:
        return blocker.reason, blocker.facts
    node = snapshot.node
    if is_role_missing(snapshot):
        return Reason.ROLE_NOT_FOUND.value, {"node": node.name, "role": node.wanted.role}
    unsettled = next((each for _name, each in sorted(resolutions.items()) if not each.is_settled), None)
    if unsettled is not None:
        return unsettled.reason.value, unsettled.facts
    if blocked:
        return blocked[0].reason, blocked[0].facts
    keys = [each.service.annotation_key for _name, each in sorted(resolutions.items())]
    return Reason.RECONCILED.value, {"node": node.name, "role": node.wanted.role, "keys": keys}


def _candidate(resolution: Resolution, blocked: Sequence[Blocked]) -> Candidate:
    blocker = _blocker(resolution, blocked)
    facts = resolution.facts
    if blocker is not None:
        facts = {**facts, "waits": {"reason": blocker.reason, "facts": blocker.facts}}
    return Candidate(
        name=resolution.service.name,
        is_taken=resolution.state is State.RESOLVED,
        reason=resolution.reason.value,
        facts=facts,
    )


def _blocker(resolution: Resolution, blocked: Sequence[Blocked]) -> Blocked | None:
    """Return the reason that blocks the deployment of a choice, other than the choice itself."""
    about = (each for each in blocked if each.facts.get("service") == resolution.service.name)
    return next((each for each in about if each.reason != resolution.reason), None)


def _unused_annotations(snapshot: NodeSnapshot) -> Iterator[Candidate]:
    """Return candidates for annotations that no service uses."""
    role = snapshot.role.metadata.annotations if snapshot.role is not None else {}
    for key, services in sorted(snapshot.key_conflicts.items()):
        if key in snapshot.node.metadata.annotations or key in role:
            facts: Object = {"key": key, "services": list(services)}
            yield Candidate(name=key, is_taken=False, reason=Reason.KEY_CONFLICT.value, facts=facts)
    for key in unknown_keys(snapshot):
        yield Candidate(name=key, is_taken=False, reason=Reason.UNKNOWN_SERVICE.value, facts={"key": key})
