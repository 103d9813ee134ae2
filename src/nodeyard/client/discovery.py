"""Discovery: the resources that a server serves, and lookup by the names that kubectl accepts.

Aggregated discovery (Kubernetes 1.27 and later) takes two requests; otherwise one per group version. A name is a
plural, singular, kind or short name, optionally followed by the group (`machines.cluster.x-k8s.io`) or by version and
group (`deployments.v1.apps`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nodeyard.client.decoder import decode_as
from nodeyard.client.errors import ClientError, NotFound, TransportError, error_from_answer
from nodeyard.client.resources import Resource, untyped
from nodeyard.client.transport import Request, RequestSender
from nodeyard.kube.json import Object

MOST_VERSIONS = 2000
"""Group versions above which plain discovery, with a request for each, is refused."""

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


class UnknownResource(ClientError):
    """No resource of that name, or several; the text lists them."""


@dataclass(frozen=True, slots=True)
class Known:
    """One resource in one version, as discovery describes it."""

    resource: Resource[Object]
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()

    def answers_to(self, word: str) -> bool:
        kind = self.resource.kind.lower()
        return word in (self.resource.plural, self.singular, kind) or word in self.short_names


class Catalog:
    """All resources of a server, in its order: preferred versions first within a group."""

    def __init__(self, known: Iterable[Known]) -> None:
        self.known = tuple(known)
        self._by_kind = {(one.resource.api_version, one.resource.kind): one for one in reversed(self.known)}
        self._versions: dict[tuple[str, str], dict[str, Resource[Object]]] = {}
        for one in self.known:
            by_version = self._versions.setdefault((one.resource.group, one.resource.kind), {})
            by_version.setdefault(one.resource.version, one.resource)

    def by_kind(self, api_version: str, kind: str) -> Known | None:
        return self._by_kind.get((api_version, kind))

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        """Return the served versions of a kind, preferred first."""
        return tuple(self._versions.get((group, kind), ()))

    def preferred(self, group: str, kind: str) -> Resource[Object] | None:
        """Return the kind in its preferred version."""
        return next(iter(self._versions.get((group, kind), {}).values()), None)

    def matches(self, name: str) -> list[Known]:
        """Return every resource that the name may mean, one version per group."""
        word, _, rest = name.lower().partition(".")
        found = [one for one in self.known if one.answers_to(word) and _fits(one.resource, rest)]
        first: dict[tuple[str, str], Known] = {}
        for one in found:
            first.setdefault((one.resource.group, one.resource.plural), one)
        return list(first.values())

    def find(self, name: str) -> Known:
        """Return the resource of this name; as in kubectl, the core group wins over other groups."""
        found = self.matches(name)
        if not found:
            raise UnknownResource(f'the server has no resource "{name}"')
        if len(found) == 1:
            return found[0]
        core = [one for one in found if not one.resource.group]
        if len(core) == 1:
            return core[0]
        choices = ", ".join(str(one.resource) for one in found)
        raise UnknownResource(f'"{name}" is ambiguous: {choices}; give the full name')


def _fits(resource: Resource[Any], rest: str) -> bool:
    if not rest or rest == resource.group:
        return True
    version, _, group = rest.partition(".")
    return version == resource.version and group in ("", resource.group)


async def discover(transport: RequestSender) -> Catalog:
    """Read all resources of the server."""
    core, groups = await asyncio.gather(_get(transport, "/api"), _get(transport, "/apis"))
    if core.get("kind") == "APIGroupDiscoveryList" and groups.get("kind") == "APIGroupDiscoveryList":
        return Catalog([*_read_aggregated(core), *_read_aggregated(groups)])
    return Catalog(await _read_each_version(transport, core, groups))


async def discover_version(transport: RequestSender, group: str, version: str) -> Catalog:
    """Read the resources of one group version in a single request; empty if the server does not serve it."""
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return Catalog(await _read_version(transport, group, version, path))


async def _get(transport: RequestSender, path: str) -> Object:
    response = await transport.send(Request("GET", path, headers={"Accept": _AGGREGATED}))
    if response.status != 200:
        raise error_from_answer(response.status, response.headers, response.body)
    return decode_as(dict[str, Any], response.body)


def _read_aggregated(document: Object) -> Iterable[Known]:
    for group in document.get("items") or ():
        for version in group.get("versions") or ():
            for entry in version.get("resources") or ():
                kind = entry.get("responseKind")
                if not kind:
                    continue  # a parent that only has subresources
                yield Known(
                    untyped(
                        group["metadata"].get("name", ""),
                        version["version"],
                        entry["resource"],
                        kind["kind"],
                        namespaced=entry.get("scope") == "Namespaced",
                    ),
                    entry.get("singularResource", ""),
                    tuple(entry.get("shortNames") or ()),
                    tuple(entry.get("categories") or ()),
                    frozenset(entry.get("verbs") or ()),
                    frozenset(sub["subresource"] for sub in entry.get("subresources") or ()),
                )


async def _read_each_version(transport: RequestSender, core: Object, groups: Object) -> Sequence[Known]:
    paths = [("", version, f"/api/{version}") for version in core.get("versions") or ()]
    for group in groups.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions = [entry["version"] for entry in group["versions"]]
        versions.sort(key=lambda version: version != preferred)
        paths += [(group["name"], version, f"/apis/{group['name']}/{version}") for version in versions]
    if len(paths) > MOST_VERSIONS:
        raise TransportError(f"discovery lists more than {MOST_VERSIONS} group versions", may_have_run=True)
    answers = await asyncio.gather(*(_read_version(transport, *path) for path in paths))
    return [known for answer in answers for known in answer]


async def _read_version(transport: RequestSender, group: str, version: str, path: str) -> Sequence[Known]:
    try:
        document = await _get(transport, path)
    except NotFound:
        return []  # gone since the groups were listed
    entries = document.get("resources") or []
    subresources: dict[str, set[str]] = {}
    for entry in entries:
        parent, slash, subresource = entry["name"].partition("/")
        if slash:
            subresources.setdefault(parent, set()).add(subresource)
    return [
        Known(
            untyped(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"]),
            entry.get("singularName", ""),
            tuple(entry.get("shortNames") or ()),
            tuple(entry.get("categories") or ()),
            frozenset(entry.get("verbs") or ()),
            frozenset(subresources.get(entry["name"], ())),
        )
        for entry in entries
        if "/" not in entry["name"]
    ]
