"""Fake view of nodes, roles, profiles and service objects, with the indexes of the real cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
from tests.builders.profiles import as_stored

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.collect.rollouts import add, aggregate, reporting
from nodeyard.capabilities.profiles.planning.registry import BUILT_IN
from nodeyard.capabilities.profiles.snapshot import RolloutCount
from nodeyard.client.resources import view_kind
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef
from nodeyard.watch.reservations import Reservations
from nodeyard.watch.view import Memos

_TYPES = {each.kind: each.view for each in (watched.NODES, watched.ROLES, watched.SERVICES)}
_PROFILE_INDEXES = {watched.SELECTING: watched.selecting}
INDEXES: Mapping[str, Mapping[str, Callable[[Any], Iterable[str]]]] = {
    names.NODE_KIND: {
        names.BY_ANNOTATION: watched.by_annotation,
        names.BY_ROLE: watched.by_role,
        watched.BY_ROLE_KEY: watched.by_role_key,
        watched.WITHOUT_ROLE: watched.without_role,
        watched.SELECTED: watched.selected,
        watched.PINNED: watched.pinned,
    },
    names.ROLE_KIND: {names.BY_ANNOTATION: watched.by_annotation},
    names.SERVICE_KIND: {},
    **{each.kind: {} for each in watched.CONFIGURATIONS},
    **{view_kind(each.profile_api_version, each.profile_kind): _PROFILE_INDEXES for each in BUILT_IN},
    **{
        view_kind(each.object_api_version, each.object_kind): {
            watched.UNAVAILABLE: watched.unavailable(each.profile_field)
        }
        for each in BUILT_IN
        if each.makes_object
    },
}
_AGGREGATES = {each.name: each for each in map(aggregate, (each for each in BUILT_IN if each.makes_object))}
_AGGREGATES |= {each.name: each for each in map(reporting, (each for each in BUILT_IN if each.makes_object))}
_AGGREGATES |= {each.name: each for each in (watched.NODE_NAMESPACES, watched.NODE_LABELS)}


def counted(objects: Iterable[Object]) -> RolloutCount:
    """Count objects one by one, without the aggregate."""
    return reduce(add, objects, RolloutCount())


class ProfilesView:
    """View of the given bodies. Kinds of declared services are not watched."""

    refused: frozenset[str] = frozenset()
    """Kinds that are forbidden in a namespace."""

    def versions(self, _group: str, _kind: str) -> Sequence[str]:
        """Report that the kinds of declared services are not served."""
        return ()

    def __init__(self, *bodies: Object) -> None:
        self.reservations = Reservations()
        self.memo = Memos().get
        self._kept: dict[str, dict[tuple[str, str], Any]] = {kind: {} for kind in INDEXES}
        self._refs = [
            ObjectRef(api_version=body["apiVersion"], kind=body["kind"], **_place(body["metadata"])) for body in bodies
        ]
        for body in bodies:
            type = _TYPES.get(body["kind"])
            kind = body["kind"] if type else view_kind(body["apiVersion"], body["kind"]).removesuffix(".core")
            metadata = body["metadata"]
            found = as_stored(body)
            key = (metadata.get("namespace", ""), metadata["name"])
            self._kept[kind][key] = msgspec.convert(found, type) if type else found

    def refs(self) -> list[ObjectRef]:
        """Return the references of all objects."""
        return self._refs

    def remove(self, kind: str, name: str, namespace: str) -> None:
        del self._kept[kind][namespace, name]

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        return self._kept[kind.partition("@")[0]].get((namespace, name))

    def all(self, kind: str) -> Sequence[Any]:
        return [each for _key, each in sorted(self._kept[kind].items())]

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]:
        of = INDEXES[kind][index]
        return [each for each in self.all(kind) if value in of(each)]

    def counted(self, kind: str, index: str, value: str) -> int:
        return len(self.indexed(kind, index, value))

    def aggregate(self, name: str, group: str) -> Any:
        found = _AGGREGATES[name]
        return reduce(found.add, (each for each in self.all(found.kind) if group in found.group(each)), found.empty())

    def reserved(self, budget: str) -> Mapping[str, str]:
        return self.reservations.reserved(budget)

    def waiting(self, budget: str) -> Sequence[str]:
        return self.reservations.waiting(budget)

    def is_synced(self, kind: str) -> bool:
        kind, _, namespace = kind.partition("@")
        return not (namespace and kind in self.refused) and (kind in self._kept or self._unknown(kind))

    def watch_error(self, kind: str) -> str:
        kind, _, namespace = kind.partition("@")
        return f"cannot list {kind} in namespace {namespace}: forbidden: no" if kind in self.refused else ""

    def _unknown(self, kind: str) -> bool:
        raise KeyError(kind)


def _place(metadata: Object) -> dict[str, str]:
    return {"namespace": metadata.get("namespace", ""), "name": metadata["name"]}
