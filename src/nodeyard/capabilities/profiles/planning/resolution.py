"""Resolve the profile of each service of a node: node over role over selector, per annotation key.

The highest layer that is present decides. An invalid value or a missing profile does not fall through to a lower layer,
because a typing error would then reconfigure the node. Such a choice is not settled, and the deployed configuration is
kept. An empty annotation is present too: it means no profile.

The annotations of a missing role are unknown. Only the annotations of the node itself are then settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    RoleSettingsUnknown,
)
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Profile, Service, memoize
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, Source, State, annotation_of
from nodeyard.kube.json import Object
from nodeyard.kube.names import subdomain_faults

_SETTLED = frozenset({State.RESOLVED, State.DISABLED, State.NONE})
_CHOSEN = {Source.NODE: ChosenByNode, Source.ROLE: ChosenByRole, Source.SELECTOR: ChosenBySelector}


@dataclass(frozen=True)
class Resolution:
    """Choice of a node for one service."""

    service: Service
    state: State
    source: Source | None
    """None if no layer is present."""
    value: str
    """Name of the chosen profile, even if it is invalid or not found."""
    profile: Profile | None
    """Set if and only if the state is Resolved."""
    shadowed: tuple[tuple[Source, str], ...]
    """Overridden choices of lower layers, highest first."""
    message: ServiceMessage
    """The choice, or its fault."""

    @property
    def is_settled(self) -> bool:
        """True if the desired profile is known; otherwise the deployed configuration is kept."""
        return self.state in _SETTLED


@dataclass(frozen=True)
class Layer:
    """Value of one layer."""

    source: Source
    value: str


@memoize
def resolve(snapshot: NodeSnapshot) -> Mapping[str, Resolution]:
    """Return the resolutions by service, in the order of the snapshot's services."""
    return {service.name: _resolve_service(snapshot, service) for service in snapshot.services}


def is_role_missing(snapshot: NodeSnapshot) -> bool:
    """Check if spec.role names a role that does not exist."""
    return snapshot.role is None and bool(snapshot.node.wanted.role)


@memoize
def unknown_keys(snapshot: NodeSnapshot) -> tuple[str, ...]:
    """Return annotation keys that end in -profile and that no service declares; another operator may use them."""
    known = {key for service in snapshot.services for key in (service.annotation_key, service.create_when)}
    present = {*snapshot.node.metadata.annotations, *(snapshot.role.metadata.annotations if snapshot.role else ())}
    unknown = present - known - set(snapshot.key_conflicts)
    return tuple(sorted(key for key in unknown if key.endswith(names.PROFILE_SUFFIX)))


def wants_object(snapshot: NodeSnapshot, resolution: Resolution) -> bool:
    """Check if the node should have the service object; if that is unknown, check if it has one."""
    service = resolution.service
    if not service.makes_object:
        return False
    exists = service.name in snapshot.objects
    if not service.create_when:
        return resolution.state is State.RESOLVED or (not resolution.is_settled and exists)
    if _lacks_annotation(snapshot, service.create_when) and is_role_missing(snapshot):
        return exists
    # Never create an object with a dangling profile name; an existing object keeps its last good one.
    return annotation_value(snapshot, service.create_when) is not None and (resolution.is_settled or exists)


def requesting_key(service: Service) -> str:
    """Return the annotation key that requests the service object."""
    return service.create_when or service.annotation_key


def cell(snapshot: NodeSnapshot) -> tuple[str, Source] | None:
    """Return the cell of the node and the layer that sets it."""
    return annotation_value(snapshot, names.CELL)


def annotation_value(snapshot: NodeSnapshot, key: str) -> tuple[str, Source] | None:
    """Return an annotation of the node, else of its role, with its layer; None if missing or empty."""
    layer = next(_annotation_layers(snapshot, key), None)
    return (layer.value, layer.source) if layer is not None and layer.value else None


# layers


def _lacks_annotation(snapshot: NodeSnapshot, key: str) -> bool:
    return annotation_of(snapshot.node, key) is None


def _annotation_layers(snapshot: NodeSnapshot, key: str) -> Iterator[Layer]:
    for source, obj in ((Source.NODE, snapshot.node), (Source.ROLE, snapshot.role)):
        value = annotation_of(obj, key)
        if value is not None:
            yield Layer(source, value)


def _selecting(snapshot: NodeSnapshot, service: Service) -> Sequence[Profile]:
    """Return the profiles that select this node, highest priority first."""
    profiles = snapshot.profiles.get(service.name, {}).values()
    selecting = [profile for profile in profiles if selects(profile, snapshot.node)]
    return sorted(selecting, key=lambda profile: (-profile.priority, profile.name))


def selects(profile: Profile, node: OpenStackDataPlaneNode) -> bool:
    """Check if the nodeSelector of a profile matches the node."""
    return profile.node_selector is not None and profile.node_selector.items() <= node.metadata.labels.items()


# the decision


def _resolve_service(snapshot: NodeSnapshot, service: Service) -> Resolution:
    annotated = list(_annotation_layers(snapshot, service.annotation_key))
    selecting = _selecting(snapshot, service)
    layers = [*annotated, *(Layer(Source.SELECTOR, profile.name) for profile in selecting)]
    if is_role_missing(snapshot) and _lacks_annotation(snapshot, service.annotation_key):
        node = snapshot.node
        unknown = RoleSettingsUnknown(service=service.name, node=node.name, role=node.wanted.role)
        return _build_resolution(snapshot, service, State.NOT_FOUND, unknown, None, layers)
    if not layers:
        return _resolve_without_layer(snapshot, service)
    highest, shadowed = layers[0], layers[1:]
    if highest.source is not Source.SELECTOR:
        return _resolve_layer(snapshot, service, highest, shadowed)
    tied = [profile.name for profile in selecting if profile.priority == selecting[0].priority]
    if len(tied) > 1:
        undecided, below = Layer(Source.SELECTOR, ""), layers[len(tied) :]
        facts: Object = {"profiles": tuple(tied), "priority": selecting[0].priority}
        return _build_resolution(snapshot, service, State.AMBIGUOUS, ProfileAmbiguous, undecided, below, **facts)
    return _resolve_layer(snapshot, service, highest, shadowed)


def _resolve_without_layer(snapshot: NodeSnapshot, service: Service) -> Resolution:
    kind_fault = snapshot.kind_faults.get(service.name)
    # A profile that cannot be read may select this node, so a deployed object is kept.
    if kind_fault is not None and service.name in snapshot.objects:
        return _build_resolution(snapshot, service, State.NOT_FOUND, kind_fault, None, ())
    return _build_resolution(snapshot, service, State.NONE, NoProfile, None, ())


def _resolve_layer(snapshot: NodeSnapshot, service: Service, layer: Layer, shadowed: Sequence[Layer]) -> Resolution:
    """Resolve the highest layer that is present."""
    facts: Object = {}
    state: State
    message: type[ChoiceMessage] | ServiceMessage
    if not layer.value:
        state, message = (State.DISABLED, Disabled) if layer.source is Source.NODE else (State.NONE, NoProfile)
    elif faults := subdomain_faults(layer.value):
        state, message, facts = State.INVALID, ProfileInvalid, {"error": faults[0]}
    elif layer.value in snapshot.profiles.get(service.name, {}):
        state, message = State.RESOLVED, _CHOSEN[layer.source]
    elif (kind_fault := snapshot.kind_faults.get(service.name)) is not None:
        state, message = State.NOT_FOUND, kind_fault
    else:
        state, message, facts = State.NOT_FOUND, ProfileNotFound, {"namespace": snapshot.node.metadata.namespace}
    return _build_resolution(snapshot, service, state, message, layer, shadowed, **facts)


def _build_resolution(
    snapshot: NodeSnapshot,
    service: Service,
    state: State,
    message: type[ChoiceMessage] | ServiceMessage,
    layer: Layer | None,
    shadowed: Sequence[Layer],
    **facts: Any,
) -> Resolution:
    """`facts` are those of this type of message, in addition to those that all choices have."""
    source, value = (None, "") if layer is None else (layer.source, layer.value)
    below = tuple((each.source, each.value) for each in shadowed)
    if not isinstance(message, ServiceMessage):
        if issubclass(message, Chosen):
            facts["shadowed"] = tuple((each.value, name) for each, name in below)
        message = message(
            service=service.name,
            kind=service.profile_kind,
            profile=value,
            key=service.annotation_key,
            node=snapshot.node.name,
            role=snapshot.node.wanted.role,
            source="" if source is None else source.value,
            **facts,
        )
    return Resolution(
        service=service,
        state=state,
        source=source,
        value=value,
        profile=snapshot.profiles[service.name][value] if state is State.RESOLVED else None,
        shadowed=below,
        message=message,
    )
