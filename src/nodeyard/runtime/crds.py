"""`--install-crds`: installs missing CRDs, and no others.

An existing CRD is used as it is and never replaced, since others may rely on it. Fields of ours that it lacks would be
pruned silently, so a warning names them. If an APIService with a Service routes the group version to another server, a
CRD would have no effect and would be in the way later: none is created.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final, TypeVar

from nodeyard.client.api import Client
from nodeyard.client.errors import AlreadyExists, ClientError, Forbidden, NotFound, Unauthorized
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.kube.json import Object
from nodeyard.process.backoff import Backoff
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability

ESTABLISH_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.1
_BACKOFF: Final = Backoff(first=0.5, most=15.0)

T = TypeVar("T")

_log = get_logger("crds")


@dataclass(frozen=True)
class Installed:
    created: tuple[str, ...]
    missing: dict[str, tuple[str, ...]]
    """Fields of ours that an existing CRD lacks, by name of the CRD."""
    aggregated: dict[str, str] = field(default_factory=dict)
    """The APIService that serves the group of a CRD that was not created, by name of the CRD."""


async def install(client: Client, capabilities: Iterable[Capability], clock: Clock) -> Installed:
    created: list[str] = []
    missing: dict[str, tuple[str, ...]] = {}
    aggregated: dict[str, str] = {}
    for definition in (each for capability in capabilities for each in capability.definitions()):
        name: str = definition["metadata"]["name"]
        present = await _retry(partial(_find, client, name), name, clock)
        if present is None and (service := await _retry(partial(_find_api_service, client, definition), name, clock)):
            aggregated[name] = service
            _log.info("CRD not created", crd=name, reason=f"APIService {service} serves its group")
            continue
        if present is None:
            present = await _retry(partial(_create, client, definition), name, clock)
        if present is None:
            created.append(name)
            await _wait_until_established(client, name, clock)
        elif fields := tuple(missing_fields(definition, present)):
            missing[name] = fields
            _log.warning("CRD lacks fields", crd=name, fields=list(fields),
                         reason="an existing CRD is not replaced: apply the CRD of this version")  # fmt: skip
    return Installed(tuple(created), missing, aggregated)


async def _retry(request: Callable[[], Awaitable[T]], name: str, clock: Clock) -> T:
    """Retry while the server is unreachable, in trouble or rejects our credentials; other errors are final."""
    failures, random = 0, Random()
    while True:
        try:
            return await request()
        except ClientError as error:
            if not error.is_transient and not isinstance(error, Unauthorized):
                raise
            failures += 1
            OUTAGES.log(_log, "CRD installation failed", name, error, crd=name)
        await clock.sleep(_BACKOFF.seconds(failures, random))


async def _find(client: Client, name: str) -> Object | None:
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except NotFound:
        return None


async def _find_api_service(client: Client, definition: Object) -> str:
    """Return the APIService that routes a version of the kind to another server; empty if there is none."""
    spec = definition["spec"]
    for version in spec["versions"]:
        name = f"{version['name']}.{spec['group']}"
        try:
            found = await client.get(API_SERVICES, name)
        except NotFound:
            continue
        except Forbidden as error:
            _log.warning("APIService not readable", group=spec["group"], reason=str(error))
            return ""
        if (found.get("spec") or {}).get("service") is not None:
            return name
    return ""


async def _create(client: Client, definition: Object) -> Object | None:
    """Create the CRD; return the existing one if another client created it first, else None."""
    name = definition["metadata"]["name"]
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    except AlreadyExists:
        return await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    _log.info("CRD created", crd=name)
    return None


async def _wait_until_established(client: Client, name: str, clock: Clock) -> None:
    deadline = clock.monotonic() + ESTABLISH_SECONDS
    get = partial(client.get, CUSTOM_RESOURCE_DEFINITIONS, name)
    while not _is_established(await _retry(get, name, clock)):
        if clock.monotonic() >= deadline:
            raise TimeoutError(f"CRD {name} is not established after {ESTABLISH_SECONDS:g} s: see its conditions")
        await clock.sleep(_PAUSE_SECONDS)


def _is_established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def missing_fields(ours: Object, theirs: Object) -> Iterator[str]:
    """Yield the paths of fields that our CRD has and theirs lacks; missing versions first."""
    served = {version["name"]: version for version in theirs["spec"]["versions"]}
    for version in ours["spec"]["versions"]:
        name = version["name"]
        if name not in served:
            yield f"{name} (the whole version)"
        else:
            yield from _missing_properties(_schema(version), _schema(served[name]), "")


def _schema(version: Object) -> Object:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _missing_properties(ours: Object, theirs: Object, path: str) -> Iterator[str]:
    if theirs.get("x-kubernetes-preserve-unknown-fields"):
        return
    present = theirs.get("properties") or {}
    for name, schema in (ours.get("properties") or {}).items():
        where = f"{path}.{name}"
        if name not in present:
            yield where
        else:
            yield from _missing_properties(schema, present[name], where)
    for part, mark in (("items", "[]"), ("additionalProperties", "{}")):
        inner, other = ours.get(part), theirs.get(part)
        if isinstance(inner, dict) and isinstance(other, dict):
            yield from _missing_properties(inner, other, path + mark)
