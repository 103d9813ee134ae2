"""`--install-crds`: the definitions that are missing, and no others.

A definition that is there already, ours or another's, is used as it is and never replaced: others rely on it. Fields of
ours that it lacks would be dropped by the server without a word, so they are named in a warning. Where another server
has the version of the group (an APIService with a Service says so) a definition would be of no effect, and in its way
when it goes: none is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.errors import AlreadyExists, Forbidden, NotFound
from nodeyard.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability

ESTABLISH_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.1

_log = get_logger("crds")


@dataclass(frozen=True)
class Installed:
    created: tuple[str, ...]
    lacking: dict[str, tuple[str, ...]]
    """By name of a definition that was there: the fields of ours that it does not have."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """By name of a definition that was not made: the APIService by which another server has its group."""


async def install(client: Client, capabilities: Iterable[Capability], clock: Clock) -> Installed:
    created: list[str] = []
    lacking: dict[str, tuple[str, ...]] = {}
    elsewhere: dict[str, str] = {}
    for definition in (each for capability in capabilities for each in capability.definitions()):
        name: str = definition["metadata"]["name"]
        present = await _find(client, name)
        if present is None and (service := await _served_by(client, definition)):
            elsewhere[name] = service
            _log.info("making no definition", definition=name, reason=f"APIService {service} serves its group")
            continue
        if present is None:
            present = await _create(client, definition)
        if present is None:
            created.append(name)
            await _established(client, name, clock)
        elif fields := tuple(missing_fields(definition, present)):
            lacking[name] = fields
            _log.warning("using a definition that lacks fields", definition=name, fields=list(fields),
                         reason="it was installed by others and is left as it is")  # fmt: skip
    return Installed(tuple(created), lacking, elsewhere)


async def _find(client: Client, name: str) -> Object | None:
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except NotFound:
        return None


async def _served_by(client: Client, definition: Object) -> str:
    """The APIService that sends a version of the kind to another server; empty where there is none."""
    spec = definition["spec"]
    for version in spec["versions"]:
        name = f"{version['name']}.{spec['group']}"
        try:
            found = await client.get(API_SERVICES, name)
        except NotFound:
            continue
        except Forbidden as error:
            _log.warning("not knowing whether another server has the group", group=spec["group"], reason=str(error))
            return ""
        if (found.get("spec") or {}).get("service") is not None:
            return name
    return ""


async def _create(client: Client, definition: Object) -> Object | None:
    """The definition that is there; None where it was missing and is ours now."""
    name = definition["metadata"]["name"]
    _log.info("creating definition", definition=name)
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    except AlreadyExists:
        return await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    return None


async def _established(client: Client, name: str, clock: Clock) -> None:
    deadline = clock.monotonic() + ESTABLISH_SECONDS
    while not _is_established(await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)):
        if clock.monotonic() >= deadline:
            raise TimeoutError(f"{name}: the server does not serve it after {ESTABLISH_SECONDS:g} s")
        await clock.sleep(_PAUSE_SECONDS)


def _is_established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def missing_fields(ours: Object, theirs: Object) -> Iterator[str]:
    """Paths of fields that our definition has and theirs does not; whole versions first."""
    served = {version["name"]: version for version in theirs["spec"]["versions"]}
    for version in ours["spec"]["versions"]:
        name = version["name"]
        if name not in served:
            yield f"{name} (the whole version)"
        else:
            yield from _missing(_schema(version), _schema(served[name]), "")


def _schema(version: Object) -> Object:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _missing(ours: Object, theirs: Object, path: str) -> Iterator[str]:
    if theirs.get("x-kubernetes-preserve-unknown-fields"):
        return
    present = theirs.get("properties") or {}
    for name, schema in (ours.get("properties") or {}).items():
        where = f"{path}.{name}"
        if name not in present:
            yield where
        else:
            yield from _missing(schema, present[name], where)
    for part, mark in (("items", "[]"), ("additionalProperties", "{}")):
        inner, other = ours.get(part), theirs.get(part)
        if isinstance(inner, dict) and isinstance(other, dict):
            yield from _missing(inner, other, path + mark)
