"""The services whose profiles nodes choose: those that are built in, and those that ProfileServices declare.

A declaration that cannot be understood, or that would take something from another service, does not count: it has a
fault, which its own status shows, and the services beside it work on. What is built in cannot be taken over.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration.objects import CONFIG_MAP, SECRET
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.capabilities.profiles.types import ConfigFormat, KindReference, ProfileService
from nodeyard.kube.names import LABEL_VALUE_MAX, qualified_name_faults

BUILT_IN: Final[tuple[Service, ...]] = (
    Service(
        name=names.NEUTRON,
        annotation_key=names.NETWORK_PROFILE,
        profile_api_version=names.NEUTRON_API_VERSION,
        profile_kind=names.NETWORK_PROFILE_KIND,
        object_api_version=names.NEUTRON_API_VERSION,
        object_kind=names.AGENT_KIND,
        node_field="dataplaneNodeName",
        profile_field="networkProfileName",
        config_field=names.CUSTOM_CONFIG,
    ),
    Service(
        name=names.NOVA,
        annotation_key=names.COMPUTE_PROFILE,
        profile_api_version=names.NOVA_API_VERSION,
        profile_kind=names.COMPUTE_PROFILE_KIND,
        object_api_version=names.NOVA_API_VERSION,
        object_kind=names.COMPUTE_KIND,
        node_field="dataplaneNodeName",
        profile_field="computeProfileName",
        config_field="customComputeServiceConfig",
        create_when=names.CELL,
    ),
    Service(
        name=names.TELEMETRY,
        annotation_key=names.TELEMETRY_PROFILE,
        profile_api_version=names.TELEMETRY_API_VERSION,
        profile_kind=names.TELEMETRY_PROFILE_KIND,
        config_field=names.CUSTOM_CONFIG,
    ),
)
"""By name."""
NEUTRON, NOVA, TELEMETRY = BUILT_IN

_KIND_RE: Final = re.compile("[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")
_VERSION_RE: Final = re.compile("([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+")
_FIELD_RE: Final = re.compile(r"[A-Za-z_][-A-Za-z0-9_]*")
_GroupKind: TypeAlias = tuple[str, str]
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Registry:
    services: tuple[Service, ...] = BUILT_IN
    """Those that count, by name."""
    claimed_twice: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Annotation keys that several declared services claim, with those services: none of them counts."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Declared services that do not count, by name: why, and what to do."""


def declared(each: ProfileService) -> Service:
    """The service that a ProfileService speaks of, whether or not it may count."""
    spec = each.spec
    made = spec.object or KindReference()
    return Service(
        name=each.metadata.name,
        annotation_key=spec.annotation_key,
        profile_api_version=spec.profile.api_version,
        profile_kind=spec.profile.kind,
        object_api_version=made.api_version,
        object_kind=made.kind,
        node_field=spec.node_field,
        profile_field=spec.profile_field,
        config_field=spec.config_field,
        config_format=_format(spec.config_format),
        create_when=spec.create_when_annotation,
        max_unavailable=spec.max_unavailable,
        deadline_seconds=spec.progress_deadline_seconds,
        is_built_in=False,
    )


def _format(given: str) -> ConfigFormat:
    """A format that nobody knows is not judged."""
    return ConfigFormat.INI if given in ("", ConfigFormat.INI) else ConfigFormat.TEXT


def registry(declarations: Sequence[ProfileService]) -> Registry:
    """All services there are. Equal declarations give an equal registry, in whatever order they come."""
    ordered = sorted(declarations, key=lambda each: each.metadata.name)
    faults = {each.metadata.name: fault for each in ordered if (fault := _fault(each))}
    sound = [declared(each) for each in ordered if each.metadata.name not in faults]
    claims = _shared(sound, lambda service: service.annotation_key)
    makers = _shared([each for each in sound if each.makes_object], _made)
    for key, claimants in claims.items():
        for name in claimants:
            faults[name] = _claimed_twice(name, key, claimants)
    for kind, rivals in makers.items():
        for name in rivals:
            faults.setdefault(name, _made_twice(name, kind, rivals))
    for name, fault in list(_versions_apart([each for each in sound if each.name not in faults])):
        faults.setdefault(name, fault)
    counted = [*BUILT_IN, *(each for each in sound if each.name not in faults)]
    return Registry(tuple(sorted(counted, key=lambda service: service.name)), claims, faults)


# what is wrong with one


def _fault(each: ProfileService) -> str:
    """All that is wrong with a declaration by itself, and beside what is built in; empty where nothing is."""
    service = declared(each)
    found = (*_name_faults(service), *_missing(each), *_syntax_faults(service), *_taken(service))
    return _about(service.name, "; ".join(found)) if found else ""


def _about(name: str, fault: str) -> str:
    return f"{names.SERVICE_KIND} {name}: {fault}"


def _name_faults(service: Service) -> Iterator[str]:
    if any(service.name == known.name for known in BUILT_IN):
        yield f"metadata.name {service.name!r} is that of a built-in service: declare it under another name"
    if len(service.name) > LABEL_VALUE_MAX:
        yield (
            f"metadata.name {service.name!r} is longer than {LABEL_VALUE_MAX} characters and cannot be a label of what "
            "is made for it: declare it under a shorter name"
        )


def _missing(each: ProfileService) -> Iterator[str]:
    service = declared(each)
    wanted = {
        "annotationKey": service.annotation_key,
        "profile.apiVersion": service.profile_api_version,
        "profile.kind": service.profile_kind,
    }
    of_object = {"nodeField": service.node_field, "profileField": service.profile_field}
    if each.spec.object is None:
        idle = [*of_object.items(), ("createWhenAnnotation", service.create_when)]
        for path, value in idle:
            if value:
                yield f"spec.{path} {value!r} is about an object, and spec.object is missing: set it, or remove this"
    else:
        kind = {"object.apiVersion": service.object_api_version, "object.kind": service.object_kind}
        wanted = {**wanted, **kind, **of_object}
    for path, value in wanted.items():
        if not value:
            yield f"spec.{path} is missing: set it"


def _syntax_faults(service: Service) -> Iterator[str]:
    """Of what is there; annotation keys may have upper case letters in their prefix, as on the API server."""
    for path, key in (("annotationKey", service.annotation_key), ("createWhenAnnotation", service.create_when)):
        for fault in qualified_name_faults(key.lower()) if key else ():
            yield f"spec.{path} {key!r} is not the key of an annotation: {fault}"
    for path, value, pattern, what in (
        (
            "profile.apiVersion",
            service.profile_api_version,
            _VERSION_RE,
            "group/version, such as nova.openstack.org/v1",
        ),
        ("profile.kind", service.profile_kind, _KIND_RE, "a kind, such as ComputeProfile"),
        ("object.apiVersion", service.object_api_version, _VERSION_RE, "group/version, such as nova.openstack.org/v1"),
        ("object.kind", service.object_kind, _KIND_RE, "a kind, such as NovaExternalCompute"),
        (
            "nodeField",
            service.node_field,
            _FIELD_RE,
            "a field of the object's spec, such as dataplaneNodeName",
        ),
        (
            "profileField",
            service.profile_field,
            _FIELD_RE,
            "a field of the object's spec, such as profileName",
        ),
        (
            "configField",
            service.config_field,
            _FIELD_RE,
            "a field of a profile's spec, such as customServiceConfig",
        ),
    ):
        if value and not pattern.fullmatch(value):
            yield f"spec.{path} {value!r} is not right: write {what}"
    if service.node_field and service.node_field == service.profile_field:
        yield f"spec.profileField {service.profile_field!r} is spec.nodeField too: the object needs one field for each"


def _taken(service: Service) -> Iterator[str]:
    """What is built in is not given away."""
    for known in BUILT_IN:
        if service.annotation_key and service.annotation_key in (known.annotation_key, known.create_when):
            yield (
                f"spec.annotationKey {service.annotation_key!r} belongs to the built-in service {known.name}: "
                "choose another key"
            )
    profile = _group_kind(service.profile_api_version, service.profile_kind)
    if profile in _MADE_OR_PLANNED_FROM:
        yield (
            f"spec.profile.kind {service.profile_kind!r} of {service.profile_api_version} belongs to "
            f"{_MADE_OR_PLANNED_FROM[profile]}: choose a kind of your own"
        )
    if not service.makes_object:
        return
    made = _made(service)
    if made in _RESERVED:
        yield (
            f"spec.object.kind {service.object_kind!r} of {service.object_api_version} belongs to "
            f"{_RESERVED[made]}: choose a kind of your own"
        )
    elif made == profile:
        yield f"spec.object.kind {service.object_kind!r} is spec.profile.kind too: choose a kind for the object"


def _made(service: Service) -> _GroupKind:
    """What it makes, whatever the version: two versions are the same objects."""
    return _group_kind(service.object_api_version, service.object_kind)


def _group_kind(api_version: str, kind: str) -> _GroupKind:
    return api_version.rpartition("/")[0], kind


_MADE_OR_PLANNED_FROM: Final[Mapping[_GroupKind, str]] = {
    (names.DATAPLANE_GROUP, names.ROLE_KIND): "the data plane",
    (names.DATAPLANE_GROUP, names.NODE_KIND): "the data plane",
    (names.SERVICE_GROUP, names.SERVICE_KIND): "Nodeyard",
    ("", CONFIG_MAP): "the configuration that Nodeyard renders",
    ("", SECRET): "the configuration that Nodeyard renders",
    **{_made(each): f"the built-in service {each.name}" for each in BUILT_IN if each.makes_object},
}
"""Kinds that are no profiles: what nodes are planned from, and what is made for them."""
_RESERVED: Final[Mapping[_GroupKind, str]] = {
    **_MADE_OR_PLANNED_FROM,
    **{
        _group_kind(each.profile_api_version, each.profile_kind): f"the built-in service {each.name}"
        for each in BUILT_IN
    },
}
"""Kinds that no declared service makes: those, and the profiles of the built-in services."""


# what is wrong with several together


def _shared(services: Sequence[Service], of: Callable[[Service], K]) -> dict[K, tuple[str, ...]]:
    """What more than one of them has, and who."""
    found: defaultdict[K, list[str]] = defaultdict(list)
    for service in services:
        found[of(service)].append(service.name)
    return {each: tuple(owners) for each, owners in found.items() if len(owners) > 1}


def _claimed_twice(name: str, key: str, claimants: Sequence[str]) -> str:
    others = ", ".join(each for each in claimants if each != name)
    fault = f"spec.annotationKey {key!r} is claimed by {others} too, and none of them counts"
    return _about(name, f"{fault}: give each service a key of its own")


def _made_twice(name: str, kind: _GroupKind, rivals: Sequence[str]) -> str:
    group, what = kind
    others = ", ".join(each for each in rivals if each != name)
    fault = f"spec.object.kind {what!r} of {group or 'the core group'} is made by {others} too, and none of them counts"
    return _about(name, f"{fault}: they would write the same object of a node, so give each service a kind of its own")


def _versions_apart(services: Sequence[Service]) -> Iterator[tuple[str, str]]:
    """A kind that is one's profile and another's object, each in a version of its own: it is watched in one alone."""
    makers = {_made(each): each for each in services if each.makes_object}
    for chooser in services:
        maker = makers.get(_group_kind(chooser.profile_api_version, chooser.profile_kind))
        if maker is None or maker.object_api_version == chooser.profile_api_version:
            continue
        chosen = f"{chooser.profile_api_version!r}: {chooser.profile_kind} is the object of {maker.name} in "
        made = f"{maker.object_api_version!r}: {maker.object_kind} is the profile of {chooser.name} in "
        remedy = ", and neither counts: name the kind in one version"
        yield chooser.name, _about(chooser.name, f"spec.profile.apiVersion {chosen}{maker.object_api_version}{remedy}")
        yield maker.name, _about(maker.name, f"spec.object.apiVersion {made}{chooser.profile_api_version}{remedy}")
