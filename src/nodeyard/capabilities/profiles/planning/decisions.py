"""Why a node has the profiles that it has: `nodeyard why osdpnode/...`, and the same of what is made for it.

Every service of the node is a candidate: taken where it has a profile, left where it has none, with who chose, what
that shadows, and what it waits for. The rule is what stands in the way of the node first of all, if something does.
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
    Reason.INVALID: (Reason.MEND_VALUE,),
    Reason.NOT_FOUND: (Reason.CREATE_PROFILE, Reason.ANNOTATE_NODE),
    Reason.AMBIGUOUS: (Reason.SET_PRIORITY, Reason.ANNOTATE_NODE),
    Reason.ROLE_NOT_FOUND: (Reason.CREATE_ROLE,),
    Reason.FORBIDDEN: (Reason.GRANT_RIGHT,),
    Reason.PINNED: (Reason.FOLLOW_PROFILE,),
    Reason.STALLED: (Reason.MEND_OPERATOR,),
}
_NOTICES = (Reason.PINNED,)
"""Said about a service, and in nobody's way."""


def decide(
    ref: ObjectRef, snapshot: NodeSnapshot, resolutions: Resolutions, plan_blocked: Sequence[Blocked]
) -> Decision | None:
    """None where the object has nothing to do with this node."""
    metadata = snapshot.node.metadata
    if (ref.namespace, ref.name) != (metadata.namespace, metadata.name):
        return None
    if ref.kind == names.NODE_KIND:
        return _of_node(ref, snapshot, resolutions, plan_blocked)
    made = (each for each in resolutions.values() if each.service.makes_object)
    resolution = next((each for each in made if _is_made(ref, each)), None)
    return None if resolution is None else _of_object(ref, resolution, plan_blocked)


def _is_made(ref: ObjectRef, resolution: Resolution) -> bool:
    """Whether the object is the service's; versions of a kind are the same objects."""
    service = resolution.service
    group = service.object_api_version.rpartition("/")[0]
    return (ref.api_version.rpartition("/")[0], ref.kind) == (group, service.object_kind)


def _of_node(ref: ObjectRef, snapshot: NodeSnapshot, resolutions: Resolutions, blocked: Sequence[Blocked]) -> Decision:
    rule, facts = _rule(snapshot, resolutions, blocked)
    services = (_candidate(each, blocked) for _name, each in sorted(resolutions.items()))
    return _decision(ref, rule, facts, (*services, *_unregistered(snapshot)))


def _of_object(ref: ObjectRef, resolution: Resolution, blocked: Sequence[Blocked]) -> Decision:
    waits = _waits(resolution, blocked)
    if waits is None:
        return _decision(ref, resolution.reason.value, resolution.facts, ())
    return _decision(ref, waits.reason, {**resolution.facts, **waits.facts}, (_candidate(resolution, blocked),))


def _decision(ref: ObjectRef, rule: str, facts: Object, candidates: tuple[Candidate, ...]) -> Decision:
    changes = tuple(each.value for each in _CHANGES.get(rule, ()))
    return Decision(object=ref, rule=rule, facts=facts, candidates=candidates, would_change=changes)


def _rule(snapshot: NodeSnapshot, resolutions: Resolutions, blocked: Sequence[Blocked]) -> tuple[str, Object]:
    """What stands in the way first of all, or else that nothing does."""
    hindrance = next((each for each in blocked if each.reason not in _NOTICES), None)
    if hindrance is not None:
        return hindrance.reason, hindrance.facts
    node = snapshot.node
    if is_role_missing(snapshot):
        return Reason.ROLE_NOT_FOUND.value, {"node": node.name, "role": node.wanted.role}
    unsettled = next((each for _name, each in sorted(resolutions.items()) if not each.is_settled), None)
    if unsettled is not None:
        return unsettled.reason.value, unsettled.facts
    keys = [each.service.annotation_key for _name, each in sorted(resolutions.items())]
    return Reason.RECONCILED.value, {"node": node.name, "role": node.wanted.role, "keys": keys}


def _candidate(resolution: Resolution, blocked: Sequence[Blocked]) -> Candidate:
    waits = _waits(resolution, blocked)
    facts = resolution.facts
    if waits is not None:
        facts = {**facts, "waits": {"reason": waits.reason, "facts": waits.facts}}
    return Candidate(
        name=resolution.service.name,
        is_taken=resolution.state is State.RESOLVED,
        reason=resolution.reason.value,
        facts=facts,
    )


def _waits(resolution: Resolution, blocked: Sequence[Blocked]) -> Blocked | None:
    """What keeps the choice from being deployed, where that is not the choice itself."""
    about = (each for each in blocked if each.facts.get("service") == resolution.service.name)
    return next((each for each in about if each.reason != resolution.reason), None)


def _unregistered(snapshot: NodeSnapshot) -> Iterator[Candidate]:
    """What looks like a choice and is none."""
    role = snapshot.role.metadata.annotations if snapshot.role is not None else {}
    for key, services in sorted(snapshot.claimed_twice.items()):
        if key in snapshot.node.metadata.annotations or key in role:
            facts: Object = {"key": key, "services": list(services)}
            yield Candidate(name=key, is_taken=False, reason=Reason.CLAIMED_TWICE.value, facts=facts)
    for key in unknown_keys(snapshot):
        yield Candidate(name=key, is_taken=False, reason=Reason.UNKNOWN_SERVICE.value, facts={"key": key})
