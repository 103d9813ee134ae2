"""What an operator asks the API server for, in the words of its rights: verb, group, resource and name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from nodeyard.client.transport import Response, Stream, Transport
from nodeyard.kube.json import Object

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAME = "metadata.name="


class Right(NamedTuple):
    group: str
    resource: str
    """With its subresource: `pods/eviction`."""
    verb: str


class Asked(NamedTuple):
    right: Right
    namespace: str
    name: str
    """Of one object; also where a list or a watch selects it by its name."""


def asked(method: str, path: str, query: Mapping[str, str]) -> Asked | None:
    """None for what is no resource: discovery, versions, health."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    if parts[0] not in ("api", "apis") or not rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource, name, part = (*rest, "", "")[:3]
    verb = _VERBS.get(method, "get")
    if verb == "get" and not name:
        verb = "watch" if query.get("watch") else "list"
        name = query.get("fieldSelector", "").removeprefix(_NAME)
    return Asked(Right(group, f"{resource}/{part}" if part else resource, verb), namespace, name)


class ListeningTransport:
    """Passes everything on, and notes it."""

    def __init__(self, inner: Transport, noted: list[Asked]) -> None:
        self._inner = inner
        self._noted = noted

    def _note(self, method: str, path: str, given: Mapping[str, Any]) -> None:
        found = asked(method, path, given.get("query") or {})
        if found is not None:
            self._noted.append(found)

    async def request(self, method: str, path: str, **given: Any) -> Response:
        self._note(method, path, given)
        return await self._inner.request(method, path, **given)

    def stream(self, path: str, **given: Any) -> AbstractAsyncContextManager[Stream]:
        self._note("GET", path, given)
        return self._inner.stream(path, **given)

    async def close(self) -> None:
        await self._inner.close()


def granted(rules: Sequence[Object]) -> Iterator[tuple[Right, tuple[str, ...]]]:
    """Each right that rules give, with the names it is bound to."""
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(group, resource, verb), tuple(rule.get("resourceNames", ()))
