"""Which profile a node has for each service: node over role over selector, key by key.

The highest layer that speaks decides alone, also when it says nothing good: an invalid value or a profile that does not
exist is not replaced by what a lower layer says, since that would reconfigure a node by a typing error. Such a choice
is not settled, and what is deployed stays as it is. An annotation that is empty speaks too: the node has no profile.

A role that does not exist may have said anything. So the node's own annotations count, and nothing else is settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Profile, Service, once
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, Source, State, annotation_of
from nodeyard.kube.json import Object
from nodeyard.kube.names import subdomain_faults

_SETTLED = frozenset({State.RESOLVED, State.DISABLED, State.NONE})
_CHOSEN = {Source.NODE: Reason.FROM_NODE, Source.ROLE: Reason.FROM_ROLE, Source.SELECTOR: Reason.FROM_SELECTOR}


@dataclass(frozen=True)
class Resolution:
    """How a node's choice for one service stands."""

    service: Service
    state: State
    source: Source | None
    """None where nobody spoke."""
    value: str
    """The profile's name as it was chosen, also where it is invalid or not found."""
    profile: Profile | None
    """There where the state is Resolved, and only there."""
    shadowed: tuple[tuple[Source, str], ...]
    """What lower layers say and what does not count therefore, highest first."""
    reason: Reason
    facts: Object

    @property
    def is_settled(self) -> bool:
        """Whether it is known what the node is to have; otherwise what is deployed stays as it is."""
        return self.state in _SETTLED


@dataclass(frozen=True)
class _Voice:
    """What one layer says."""

    source: Source
    value: str


@once
def resolve(snapshot: NodeSnapshot) -> Mapping[str, Resolution]:
    """By service, in the order of the snapshot's services."""
    return {service.name: _resolution(snapshot, service) for service in snapshot.services}


def is_role_missing(snapshot: NodeSnapshot) -> bool:
    """Whether the node names a role that does not exist."""
    return snapshot.role is None and bool(snapshot.node.wanted.role)


@once
def unknown_keys(snapshot: NodeSnapshot) -> tuple[str, ...]:
    """Annotations that look like a choice, of services that nobody has declared; another operator may know them."""
    known = {key for service in snapshot.services for key in (service.annotation_key, service.create_when)}
    present = {*snapshot.node.metadata.annotations, *(snapshot.role.metadata.annotations if snapshot.role else ())}
    unknown = present - known - set(snapshot.claimed_twice)
    return tuple(sorted(key for key in unknown if key.endswith(names.PROFILE_SUFFIX)))


def wants_object(snapshot: NodeSnapshot, resolution: Resolution) -> bool:
    """Whether the node is to have the service's object. Where that cannot be known: whether it has it."""
    service = resolution.service
    if not service.makes_object:
        return False
    exists = service.name in snapshot.objects
    if not service.create_when:
        return resolution.state is State.RESOLVED or (not resolution.is_settled and exists)
    if _is_silent(snapshot, service.create_when) and is_role_missing(snapshot):
        return exists
    # A new object is not made with a name that leads nowhere, and one that is there keeps its last good one.
    return said(snapshot, service.create_when) is not None and (resolution.is_settled or exists)


def asking_key(service: Service) -> str:
    """The annotation by which a node or its role ask for the service's object."""
    return service.create_when or service.annotation_key


def cell(snapshot: NodeSnapshot) -> tuple[str, Source] | None:
    """The cell of the node's compute service, and who says so."""
    return said(snapshot, names.CELL)


def said(snapshot: NodeSnapshot, key: str) -> tuple[str, Source] | None:
    """What the node says by an annotation, or else its role; None where that is nothing, or empty."""
    voice = next(_annotated(snapshot, key), None)
    return (voice.value, voice.source) if voice is not None and voice.value else None


# layers


def _is_silent(snapshot: NodeSnapshot, key: str) -> bool:
    return annotation_of(snapshot.node, key) is None


def _annotated(snapshot: NodeSnapshot, key: str) -> Iterator[_Voice]:
    for source, obj in ((Source.NODE, snapshot.node), (Source.ROLE, snapshot.role)):
        value = annotation_of(obj, key)
        if value is not None:
            yield _Voice(source, value)


def _selecting(snapshot: NodeSnapshot, service: Service) -> Sequence[Profile]:
    """The profiles that select this node by its labels, highest priority first."""
    profiles = snapshot.profiles.get(service.name, {}).values()
    selecting = [profile for profile in profiles if selects(profile, snapshot.node)]
    return sorted(selecting, key=lambda profile: (-profile.priority, profile.name))


def selects(profile: Profile, node: OpenStackDataPlaneNode) -> bool:
    """Whether a profile would have the node, if nobody chose for it."""
    return profile.node_selector is not None and profile.node_selector.items() <= node.metadata.labels.items()


# the decision


def _resolution(snapshot: NodeSnapshot, service: Service) -> Resolution:
    annotated = list(_annotated(snapshot, service.annotation_key))
    selecting = _selecting(snapshot, service)
    voices = [*annotated, *(_Voice(Source.SELECTOR, profile.name) for profile in selecting)]
    if is_role_missing(snapshot) and _is_silent(snapshot, service.annotation_key):
        return _outcome(snapshot, service, State.NOT_FOUND, Reason.ROLE_NOT_FOUND, None, voices)
    if not voices:
        return _unspoken(snapshot, service)
    highest, shadowed = voices[0], voices[1:]
    if highest.source is not Source.SELECTOR:
        return _chosen(snapshot, service, highest, shadowed)
    tied = [profile.name for profile in selecting if profile.priority == selecting[0].priority]
    if len(tied) > 1:
        facts: Object = {"profiles": tied, "priority": selecting[0].priority}
        undecided = _Voice(Source.SELECTOR, "")
        below = voices[len(tied) :]
        return _outcome(snapshot, service, State.AMBIGUOUS, Reason.AMBIGUOUS, undecided, below, **facts)
    return _chosen(snapshot, service, highest, shadowed)


def _unspoken(snapshot: NodeSnapshot, service: Service) -> Resolution:
    trouble = snapshot.troubles.get(service.name)
    # A profile that cannot be seen may select this node: what it has already is not taken away for that.
    if trouble is not None and service.name in snapshot.objects:
        return _outcome(snapshot, service, State.NOT_FOUND, trouble.reason, None, (), error=trouble.message)
    return _outcome(snapshot, service, State.NONE, Reason.NONE, None, ())


def _chosen(snapshot: NodeSnapshot, service: Service, voice: _Voice, shadowed: Sequence[_Voice]) -> Resolution:
    """What the highest layer that speaks comes to."""
    state, reason, facts = _standing(snapshot, service, voice)
    return _outcome(snapshot, service, state, reason, voice, shadowed, **facts)


def _standing(snapshot: NodeSnapshot, service: Service, voice: _Voice) -> tuple[State, Reason, Object]:
    if not voice.value:
        is_node = voice.source is Source.NODE
        return (State.DISABLED, Reason.DISABLED, {}) if is_node else (State.NONE, Reason.NONE, {})
    if faults := subdomain_faults(voice.value):
        return State.INVALID, Reason.INVALID, {"error": faults[0]}
    if voice.value in snapshot.profiles.get(service.name, {}):
        return State.RESOLVED, _CHOSEN[voice.source], {}
    trouble = snapshot.troubles.get(service.name)
    if trouble is not None:
        return State.NOT_FOUND, trouble.reason, {"error": trouble.message}
    return State.NOT_FOUND, Reason.NOT_FOUND, {}


def _outcome(
    snapshot: NodeSnapshot,
    service: Service,
    state: State,
    reason: Reason,
    voice: _Voice | None,
    shadowed: Sequence[_Voice],
    **facts: object,
) -> Resolution:
    source, value = (None, "") if voice is None else (voice.source, voice.value)
    profile = snapshot.profiles[service.name][value] if state is State.RESOLVED else None
    below = tuple((each.source, each.value) for each in shadowed)
    about: Object = {
        "node": snapshot.node.name,
        "namespace": snapshot.node.metadata.namespace,
        "role": snapshot.node.wanted.role,
        "service": service.name,
        "key": service.annotation_key,
        "kind": service.profile_kind,
        "value": value,
        "profile": value,
        "source": "" if source is None else source.value,
        "shadowed": [f"{source.value}={name}" for source, name in below],
        **facts,
    }
    return Resolution(service, state, source, value, profile, below, reason, about)
