"""What the annotations of a node or role choose: names that are none are faults, names that lead nowhere a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.services import Registry
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode, OpenStackDataPlaneRole, Source
from nodeyard.kube.json import Object
from nodeyard.kube.names import subdomain_faults
from nodeyard.runtime.capability import View

Choosing = OpenStackDataPlaneNode | OpenStackDataPlaneRole


def annotations_of(obj: Choosing | None) -> Mapping[str, str]:
    return {} if obj is None else obj.metadata.annotations


def choice_faults(new: Choosing, old: Choosing | None, services: Registry) -> tuple[list[str], list[str]]:
    """What this change brings, and what was wrong before it."""
    fresh: list[str] = []
    standing: list[str] = []
    before, after = annotations_of(old), annotations_of(new)
    for key, said in _wrong(new, services):
        (standing if before.get(key) == after[key] else fresh).append(said)
    return fresh, standing


def _wrong(new: Choosing, services: Registry) -> Iterator[tuple[str, str]]:
    """Keys, and what is wrong with their values."""
    given = annotations_of(new)
    for service in services.services:
        if faults := _name_faults(given.get(service.annotation_key)):
            yield service.annotation_key, text(Reason.INVALID, _facts(new, service, error=faults[0]))
    if faults := _name_faults(given.get(names.CELL)):
        yield names.CELL, text(Reason.CELL_INVALID, {**_speaker(new), "cell": given[names.CELL], "error": faults[0]})


def _name_faults(value: str | None) -> list[str]:
    """Of an empty one none: it says that there is to be nothing."""
    return subdomain_faults(value) if value else []


def choice_warnings(new: Choosing, old: Choosing | None, services: Registry, view: View) -> Iterator[str]:
    """About what has changed: who reads an annotation, and whether the profile it names is there."""
    changed = dict(annotations_of(new).items() - annotations_of(old).items())
    known = {service.annotation_key: service for service in services.services}
    asking = {service.create_when for service in services.services}
    for key, value in sorted(changed.items()):
        if key in known:
            yield from _missing(new, known[key], value, view)
        elif key in services.claimed_twice:
            yield text(Reason.CLAIMED_TWICE, {"key": key, "services": services.claimed_twice[key]})
        elif key.endswith(names.PROFILE_SUFFIX) and key not in asking:
            yield text(Reason.UNKNOWN_SERVICE, {"key": key})


def _missing(new: Choosing, service: Service, value: str, view: View) -> Iterator[str]:
    kind = watched.viewed(service.profile_api_version, service.profile_kind)
    if not value or subdomain_faults(value) or not watched.is_seen(view, kind):
        return
    if view.get(kind, value, new.metadata.namespace) is None:
        yield text(Reason.NOT_FOUND, _facts(new, service, namespace=new.metadata.namespace))


def _facts(obj: Choosing, service: Service, **more: object) -> Object:
    value = annotations_of(obj).get(service.annotation_key, "")
    return {
        **_speaker(obj),
        "service": service.name,
        "key": service.annotation_key,
        "kind": service.profile_kind,
        "value": value,
        "profile": value,
        **more,
    }


def _speaker(obj: Choosing) -> Object:
    is_node = isinstance(obj, OpenStackDataPlaneNode)
    source = Source.NODE if is_node else Source.ROLE
    return {"source": source.value, "node" if is_node else "role": obj.metadata.name}
