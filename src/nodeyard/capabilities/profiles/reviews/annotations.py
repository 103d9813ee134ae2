"""Review annotations of nodes and roles: an invalid name is a fault, a missing profile is a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.registry import Registry
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, Source
from nodeyard.kube.json import Object
from nodeyard.kube.names import subdomain_faults
from nodeyard.runtime.capability import View

Choosing = OpenStackDataPlaneNode | OpenStackDataPlaneRole


def annotations_of(obj: Choosing | None) -> Mapping[str, str]:
    return {} if obj is None else obj.metadata.annotations


def choice_faults(new: Choosing, old: Choosing | None, services: Registry) -> tuple[list[str], list[str]]:
    """Return the faults that this change adds, and those that it does not change."""
    fresh: list[str] = []
    standing: list[str] = []
    before, after = annotations_of(old), annotations_of(new)
    for key, message in _faults(new, services):
        (standing if before.get(key) == after[key] else fresh).append(message)
    return fresh, standing


def _faults(new: Choosing, services: Registry) -> Iterator[tuple[str, str]]:
    """Return annotation keys and the faults of their values."""
    given = annotations_of(new)
    for service in services.services:
        if faults := _name_faults(given.get(service.annotation_key)):
            yield service.annotation_key, text(Reason.INVALID, _facts(new, service, error=faults[0]))
    if faults := _name_faults(given.get(names.CELL)):
        yield (
            names.CELL,
            text(Reason.CELL_INVALID, {**_layer_facts(new), "cell": given[names.CELL], "error": faults[0]}),
        )


def _name_faults(value: str | None) -> list[str]:
    """Return the faults of a name; an empty value is valid and means no profile."""
    return subdomain_faults(value) if value else []


def choice_warnings(new: Choosing, old: Choosing | None, services: Registry, view: View) -> Iterator[str]:
    """Return warnings about changed annotations: not used by any service, or naming a missing profile."""
    changed = dict(annotations_of(new).items() - annotations_of(old).items())
    known = {service.annotation_key: service for service in services.services}
    asking = {service.create_when for service in services.services}
    for key, value in sorted(changed.items()):
        if key in known:
            yield from _missing_profile(new, known[key], value, view)
        elif key in services.key_conflicts:
            yield text(Reason.KEY_CONFLICT, {"key": key, "services": services.key_conflicts[key]})
        elif key.endswith(names.PROFILE_SUFFIX) and key not in asking:
            yield text(Reason.UNKNOWN_SERVICE, {"key": key})


def _missing_profile(new: Choosing, service: Service, value: str, view: View) -> Iterator[str]:
    kind = watched.kind_name(service.profile_api_version, service.profile_kind)
    if not value or subdomain_faults(value) or not watched.is_synced(view, kind):
        return
    if view.get(kind, value, new.metadata.namespace) is None:
        yield text(Reason.NOT_FOUND, _facts(new, service, namespace=new.metadata.namespace))


def _facts(obj: Choosing, service: Service, **more: object) -> Object:
    value = annotations_of(obj).get(service.annotation_key, "")
    return {
        **_layer_facts(obj),
        "service": service.name,
        "key": service.annotation_key,
        "kind": service.profile_kind,
        "value": value,
        "profile": value,
        **more,
    }


def _layer_facts(obj: Choosing) -> Object:
    is_node = isinstance(obj, OpenStackDataPlaneNode)
    source = Source.NODE if is_node else Source.ROLE
    return {"source": source.value, "node" if is_node else "role": obj.metadata.name}
