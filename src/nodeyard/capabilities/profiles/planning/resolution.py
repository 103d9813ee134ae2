"""Resolve the profile of each service of a node: node over role over selector, per annotation key.

The highest layer that is present decides. An invalid value or a missing profile does not fall through to a lower layer,
because a typing error would then reconfigure the node. Such a choice is not settled, and the deployed configuration is
kept. An empty annotation is present too: it means no profile.

The annotations of a missing role are unknown. Only the annotations of the node itself are then settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Profile, Service, memoize
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, Source, State, annotation_of
from nodeyard.kube.json import Object
from nodeyard.kube.names import subdomain_faults

_SETTLED = frozenset({State.RESOLVED, State.DISABLED, State.NONE})
_CHOSEN = {Source.NODE: Reason.FROM_NODE, Source.ROLE: Reason.FROM_ROLE, Source.SELECTOR: Reason.FROM_SELECTOR}


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
    reason: Reason
    facts: Object

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
        return _build_resolution(snapshot, service, State.NOT_FOUND, Reason.ROLE_NOT_FOUND, None, layers)
    if not layers:
        return _resolve_without_layer(snapshot, service)
    highest, shadowed = layers[0], layers[1:]
    if highest.source is not Source.SELECTOR:
        return _resolve_layer(snapshot, service, highest, shadowed)
    tied = [profile.name for profile in selecting if profile.priority == selecting[0].priority]
    if len(tied) > 1:
        facts: Object = {"profiles": tied, "priority": selecting[0].priority}
        undecided = Layer(Source.SELECTOR, "")
        below = layers[len(tied) :]
        return _build_resolution(snapshot, service, State.AMBIGUOUS, Reason.AMBIGUOUS, undecided, below, **facts)
    return _resolve_layer(snapshot, service, highest, shadowed)


def _resolve_without_layer(snapshot: NodeSnapshot, service: Service) -> Resolution:
    kind_error = snapshot.kind_errors.get(service.name)
    # A profile that cannot be read may select this node, so a deployed object is kept.
    if kind_error is not None and service.name in snapshot.objects:
        return _build_resolution(
            snapshot, service, State.NOT_FOUND, kind_error.reason, None, (), error=kind_error.message
        )
    return _build_resolution(snapshot, service, State.NONE, Reason.NONE, None, ())


def _resolve_layer(snapshot: NodeSnapshot, service: Service, layer: Layer, shadowed: Sequence[Layer]) -> Resolution:
    """Resolve the highest layer that is present."""
    state, reason, facts = _state(snapshot, service, layer)
    return _build_resolution(snapshot, service, state, reason, layer, shadowed, **facts)


def _state(snapshot: NodeSnapshot, service: Service, layer: Layer) -> tuple[State, Reason, Object]:
    if not layer.value:
        is_node = layer.source is Source.NODE
        return (State.DISABLED, Reason.DISABLED, {}) if is_node else (State.NONE, Reason.NONE, {})
    if faults := subdomain_faults(layer.value):
        return State.INVALID, Reason.INVALID, {"error": faults[0]}
    if layer.value in snapshot.profiles.get(service.name, {}):
        return State.RESOLVED, _CHOSEN[layer.source], {}
    kind_error = snapshot.kind_errors.get(service.name)
    if kind_error is not None:
        return State.NOT_FOUND, kind_error.reason, {"error": kind_error.message}
    return State.NOT_FOUND, Reason.NOT_FOUND, {}


def _build_resolution(
    snapshot: NodeSnapshot,
    service: Service,
    state: State,
    reason: Reason,
    layer: Layer | None,
    shadowed: Sequence[Layer],
    **facts: object,
) -> Resolution:
    source, value = (None, "") if layer is None else (layer.source, layer.value)
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
