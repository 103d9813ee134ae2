"""Explain the profiles of a node and its service objects, for `nodeyard why osdpnode/...`.

Every service is a candidate, selected if a profile resolves, with the layer that chose, the layers that it overrides,
and what it waits for. The rule is the first message that blocks the node, if any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.base import ServiceMessage
from nodeyard.capabilities.profiles.messages.choices import (
    ChoiceMessage,
    Chosen,
    ChosenByNode,
    ChosenByRole,
    ChosenBySelector,
    Disabled,
    NoProfile,
    ProfileAmbiguous,
    ProfileInvalid,
    ProfileNotFound,
    RoleNotFound,
    RoleSettingsUnknown,
)
from nodeyard.capabilities.profiles.messages.faults import Forbidden, KeyConflict, UnknownService
from nodeyard.capabilities.profiles.messages.remedies import (
    AnnotateNode,
    AnnotateRole,
    CheckOperator,
    CreateProfile,
    CreateRole,
    FixAnnotation,
    FollowProfile,
    GrantPermission,
    SetPriority,
)
from nodeyard.capabilities.profiles.messages.states import Pinned, Reconciled, Stalled
from nodeyard.capabilities.profiles.planning.resolution import Resolution, is_role_missing, unknown_keys
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.capabilities.profiles.types import State
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Candidate, Decision, ObjectRef

Resolutions = Mapping[str, Resolution]


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
    return None if resolution is None else _decide_object(ref, snapshot, resolution, plan_blocked)


def _is_made(ref: ObjectRef, resolution: Resolution) -> bool:
    """Check if the object is of the service's kind, in any version."""
    service = resolution.service
    group = service.object_api_version.rpartition("/")[0]
    return (ref.api_version.rpartition("/")[0], ref.kind) == (group, service.object_kind)


def _decide_node(
    ref: ObjectRef, snapshot: NodeSnapshot, resolutions: Resolutions, blocked: Sequence[Blocked]
) -> Decision:
    message = _rule(snapshot, resolutions, blocked)
    services = (_candidate(each, blocked) for _name, each in sorted(resolutions.items()))
    keys = [each.service.annotation_key for _name, each in sorted(resolutions.items())]
    remedies = _remedies(message, keys, snapshot.node.wanted.role)
    return Decision.of(ref, message, (*services, *_unused_annotations(snapshot)), remedies)


def _decide_object(
    ref: ObjectRef, snapshot: NodeSnapshot, resolution: Resolution, blocked: Sequence[Blocked]
) -> Decision:
    blocker, key, role = _blocker(resolution, blocked), resolution.service.annotation_key, snapshot.node.wanted.role
    if blocker is None:
        return Decision.of(ref, resolution.message, (), _remedies(resolution.message, [key], role))
    return Decision.of(ref, blocker, [_candidate(resolution, blocked)], _remedies(blocker, [key], role))


def _rule(snapshot: NodeSnapshot, resolutions: Resolutions, blocked: Sequence[Blocked]) -> Message:
    """Return the first message that blocks the node, or that it is reconciled."""
    messages: list[Message] = [each.facts for each in blocked]
    blocker = next((each for each in messages if not isinstance(each, Pinned)), None)
    if blocker is not None:
        return blocker
    node = snapshot.node
    if is_role_missing(snapshot):
        return RoleNotFound(node=node.name, role=node.wanted.role)
    unsettled = next((each for _name, each in sorted(resolutions.items()) if not each.is_settled), None)
    if unsettled is not None:
        return unsettled.message
    return messages[0] if messages else Reconciled(node=node.name)


def _remedies(message: Message, keys: Sequence[str], role: str) -> tuple[Message, ...]:
    """Return what would change a decision; `keys` are the annotation keys that it depends on."""
    keys = [message.key] if isinstance(message, ChoiceMessage) else keys
    on_node, on_role = AnnotateNode(keys=tuple(keys)), AnnotateRole(keys=tuple(keys), role=role)
    match message:
        case ChosenByNode() | Disabled():
            return (on_node,)
        case ChosenByRole() | ChosenBySelector() | NoProfile() | Reconciled():
            return (on_node, on_role) if role else (on_node,)
        case ProfileInvalid():
            return (FixAnnotation(key=message.key),)
        case ProfileNotFound():
            create = CreateProfile(kind=message.kind, profile=message.profile, namespace=message.namespace)
            return (create, on_node)
        case ProfileAmbiguous():
            return (SetPriority(profiles=message.profiles), on_node)
        case RoleNotFound() | RoleSettingsUnknown():
            return (CreateRole(role=message.role),)
        case Forbidden():
            return (GrantPermission(),)
        case Pinned():
            return (FollowProfile(),)
        case Stalled():
            return (CheckOperator(object=message.object),)
    return ()


def _candidate(resolution: Resolution, blocked: Sequence[Blocked]) -> Candidate:
    message, blocker = resolution.message, _blocker(resolution, blocked)
    if blocker is not None and isinstance(message, Chosen):
        message = msgspec.structs.replace(message, waits=blocker.text())
    return Candidate.of(resolution.service.name, message, is_taken=resolution.state is State.RESOLVED)


def _blocker(resolution: Resolution, blocked: Sequence[Blocked]) -> ServiceMessage | None:
    """Return the message that blocks the deployment of a choice, other than the choice itself."""
    messages = (each.facts for each in blocked if isinstance(each.facts, ServiceMessage))
    about = (each for each in messages if each.service == resolution.service.name)
    return next((each for each in about if each.reason != resolution.message.reason), None)


def _unused_annotations(snapshot: NodeSnapshot) -> Iterator[Candidate]:
    """Return candidates for annotations that no service uses."""
    role = snapshot.role.metadata.annotations if snapshot.role is not None else {}
    for key, services in sorted(snapshot.key_conflicts.items()):
        if key in snapshot.node.metadata.annotations or key in role:
            yield Candidate.of(key, KeyConflict(key=key, services=tuple(services)))
    for key in unknown_keys(snapshot):
        yield Candidate.of(key, UnknownService(key=key))
