"""Registry of services: the built-in ones, and those that ProfileServices declare.

An invalid declaration, or one that conflicts with another, is not used: its status shows the fault, and the other
services keep working. Built-in services cannot be overridden.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.configuration.objects import CONFIG_MAP, SECRET
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
"""Sorted by name."""
NEUTRON, NOVA, TELEMETRY = BUILT_IN

_KIND_RE: Final = re.compile("[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")
_VERSION_RE: Final = re.compile("([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+")
_FIELD_RE: Final = re.compile(r"[A-Za-z_][-A-Za-z0-9_]*")
_GroupKind: TypeAlias = tuple[str, str]
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Registry:
    services: tuple[Service, ...] = BUILT_IN
    """Services in use, sorted by name."""
    key_conflicts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Annotation keys that several ProfileServices declare, with the services; none of them is used."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Fault and remedy of ProfileServices that are not used, by name."""


def service_from(each: ProfileService) -> Service:
    """Convert a ProfileService, valid or not."""
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
        # An unknown format is not validated.
        config_format=ConfigFormat.INI if spec.config_format in ("", ConfigFormat.INI) else ConfigFormat.TEXT,
        create_when=spec.create_when_annotation,
        max_unavailable=spec.max_unavailable,
        deadline_seconds=spec.progress_deadline_seconds,
        progress=spec.progress,
        is_built_in=False,
    )


def build_registry(declarations: Sequence[ProfileService]) -> Registry:
    """Build the registry. The result does not depend on the order of the declarations."""
    ordered = sorted(declarations, key=lambda each: each.metadata.name)
    faults = {each.metadata.name: fault for each in ordered if (fault := _fault(each))}
    sound = [service_from(each) for each in ordered if each.metadata.name not in faults]
    claims = _duplicates(sound, lambda service: service.annotation_key)
    makers = _duplicates([each for each in sound if each.makes_object], _object_kind)
    for key, claimants in claims.items():
        for name in claimants:
            faults[name] = _key_conflict(name, key, claimants)
    for kind, rivals in makers.items():
        for name in rivals:
            faults.setdefault(name, _object_conflict(name, kind, rivals))
    for name, fault in list(_version_conflicts([each for each in sound if each.name not in faults])):
        faults.setdefault(name, fault)
    counted = [*BUILT_IN, *(each for each in sound if each.name not in faults)]
    return Registry(tuple(sorted(counted, key=lambda service: service.name)), claims, faults)


# faults of one declaration


def _fault(each: ProfileService) -> str:
    """Return the faults of one declaration, including conflicts with built-in services; empty if valid."""
    service = service_from(each)
    found = (*_name_faults(service), *_missing_faults(each), *_syntax_faults(service), *_reserved_faults(service))
    return _about(service.name, "; ".join(found)) if found else ""


def _about(name: str, fault: str) -> str:
    return f"{names.SERVICE_KIND} {name}: {fault}"


def _name_faults(service: Service) -> Iterator[str]:
    if any(service.name == known.name for known in BUILT_IN):
        yield f"metadata.name {service.name!r} is the name of a built-in service: choose another name"
    if len(service.name) > LABEL_VALUE_MAX:
        yield (
            f"metadata.name {service.name!r} is longer than {LABEL_VALUE_MAX} characters and cannot be the value of "
            f"label {names.SERVICE_LABEL}: choose a shorter name"
        )


def _missing_faults(each: ProfileService) -> Iterator[str]:
    service = service_from(each)
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
                yield f"spec.{path} {value!r} needs spec.object: set spec.object, or remove spec.{path}"
    else:
        kind = {"object.apiVersion": service.object_api_version, "object.kind": service.object_kind}
        wanted = {**wanted, **kind, **of_object}
    for path, value in wanted.items():
        if not value:
            yield f"spec.{path} is required"


def _syntax_faults(service: Service) -> Iterator[str]:
    """Return syntax faults. Annotation keys may have upper-case letters in their prefix, as on the API server."""
    for path, key in (("annotationKey", service.annotation_key), ("createWhenAnnotation", service.create_when)):
        for fault in qualified_name_faults(key.lower()) if key else ():
            yield f"spec.{path} {key!r} is not a valid annotation key: {fault}"
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
            yield f"spec.{path} {value!r} is invalid: set it to {what}"
    if service.node_field and service.node_field == service.profile_field:
        yield f"spec.profileField {service.profile_field!r} is also spec.nodeField: use one field for each name"


def _reserved_faults(service: Service) -> Iterator[str]:
    """Return faults of keys and kinds that belong to built-in services."""
    for known in BUILT_IN:
        if service.annotation_key and service.annotation_key in (known.annotation_key, known.create_when):
            yield (
                f"spec.annotationKey {service.annotation_key!r} belongs to the built-in service {known.name}: "
                "choose another key"
            )
    profile = _group_kind(service.profile_api_version, service.profile_kind)
    if profile in _NOT_PROFILES:
        yield (
            f"spec.profile.kind {service.profile_kind!r} of {service.profile_api_version} belongs to "
            f"{_NOT_PROFILES[profile]}: choose a kind of your own"
        )
    if not service.makes_object:
        return
    made = _object_kind(service)
    if made in _RESERVED:
        yield (
            f"spec.object.kind {service.object_kind!r} of {service.object_api_version} belongs to "
            f"{_RESERVED[made]}: choose a kind of your own"
        )
    elif made == profile:
        yield f"spec.object.kind {service.object_kind!r} is also spec.profile.kind: choose another kind for the object"


def _object_kind(service: Service) -> _GroupKind:
    """Return group and kind of the service object; versions of a kind are the same objects."""
    return _group_kind(service.object_api_version, service.object_kind)


def _group_kind(api_version: str, kind: str) -> _GroupKind:
    return api_version.rpartition("/")[0], kind


_NOT_PROFILES: Final[Mapping[_GroupKind, str]] = {
    (names.DATAPLANE_GROUP, names.ROLE_KIND): "the data plane",
    (names.DATAPLANE_GROUP, names.NODE_KIND): "the data plane",
    (names.SERVICE_GROUP, names.SERVICE_KIND): "Nodeyard",
    ("", CONFIG_MAP): "the configuration that Nodeyard renders",
    ("", SECRET): "the configuration that Nodeyard renders",
    **{_object_kind(each): f"the built-in service {each.name}" for each in BUILT_IN if each.makes_object},
}
"""Kinds that cannot be profiles: inputs of the plan, and objects that it creates."""
_RESERVED: Final[Mapping[_GroupKind, str]] = {
    **_NOT_PROFILES,
    **{
        _group_kind(each.profile_api_version, each.profile_kind): f"the built-in service {each.name}"
        for each in BUILT_IN
    },
}
"""Kinds that cannot be service objects of a ProfileService: the above, and profiles of built-in services."""


# conflicts between declarations


def _duplicates(services: Sequence[Service], of: Callable[[Service], K]) -> dict[K, tuple[str, ...]]:
    """Return values that more than one service has, with the services."""
    found: defaultdict[K, list[str]] = defaultdict(list)
    for service in services:
        found[of(service)].append(service.name)
    return {each: tuple(owners) for each, owners in found.items() if len(owners) > 1}


def _key_conflict(name: str, key: str, claimants: Sequence[str]) -> str:
    others = ", ".join(each for each in claimants if each != name)
    fault = f"spec.annotationKey {key!r} is also declared by {others}, so none of them is used"
    return _about(name, f"{fault}: give each service its own key")


def _object_conflict(name: str, kind: _GroupKind, rivals: Sequence[str]) -> str:
    group, what = kind
    others = ", ".join(each for each in rivals if each != name)
    fault = (
        f"spec.object.kind {what!r} of {group or 'the core group'} is also the object of {others}, so none of them is "
        "used"
    )
    return _about(name, f"{fault}: they would write the same object of a node; give each service its own kind")


def _version_conflicts(services: Sequence[Service]) -> Iterator[tuple[str, str]]:
    """Return faults of a kind that is the profile of one service and the object of another, in different versions.

    A kind is watched in one version only.
    """
    makers = {_object_kind(each): each for each in services if each.makes_object}
    for chooser in services:
        maker = makers.get(_group_kind(chooser.profile_api_version, chooser.profile_kind))
        if maker is None or maker.object_api_version == chooser.profile_api_version:
            continue
        chosen = f"{chooser.profile_api_version!r}: {chooser.profile_kind} is the object of {maker.name} in "
        made = f"{maker.object_api_version!r}: {maker.object_kind} is the profile of {chooser.name} in "
        remedy = ", so neither is used: set the same version in both"
        yield chooser.name, _about(chooser.name, f"spec.profile.apiVersion {chosen}{maker.object_api_version}{remedy}")
        yield maker.name, _about(maker.name, f"spec.object.apiVersion {made}{chooser.profile_api_version}{remedy}")
