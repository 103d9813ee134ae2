"""The parameter objects of policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from nodeyard.apiserver.admission.policies.definitions import Binding, ParamKind
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.store import Key, Store, Stored
from nodeyard.apiserver.worker_thread import LARGE
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import from_object

_REMEMBERED_OBJECTS = 1_000


class Kinds(Protocol):
    """Parts of the registry that parameters use."""

    def by_kind(self, group: str, kind: str) -> Resource | None: ...


class ParamObject(NamedTuple):
    object: Object | None
    is_large: bool


class ConfigurationError(Exception):
    """The policy or its binding is misconfigured."""


class Params:
    """Finds parameter objects, and decodes each version once."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._kinds = kinds
        self._decoded: dict[tuple[GroupResource, Key], tuple[Stored, Object]] = {}

    def resource(self, kind: ParamKind) -> Resource:
        resource = self._kinds.by_kind(kind.group, kind.kind)
        if resource is None:
            raise ConfigurationError(f"failed to find resource referenced by paramKind: '{kind}'")
        return resource

    def collect(self, kind: ParamKind | None, binding: Binding, namespace: str) -> list[ParamObject]:
        """Return the parameters of each evaluation; one without parameters has no object."""
        reference = binding.param_ref
        if kind is None or reference is None:
            return [ParamObject(None, is_large=False)]
        resource = self.resource(kind)
        where = _namespace(resource, reference, namespace)
        found = [
            ParamObject(self._decode(resource, kind, stored), len(stored.raw) > LARGE)
            for stored in self._find(resource, reference, where)
        ]
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    def _find(self, resource: Resource, reference: Object, namespace: str) -> Iterator[Stored]:
        name = reference.get("name")
        if name:
            stored = self._store.get(resource.key, namespace, name)
            if stored is not None:
                yield stored
            return
        selector = from_object(reference.get("selector") or {})
        for stored in self._store.list(resource.key, namespace):
            if selector.matches(stored.labels):
                yield stored

    def _decode(self, resource: Resource, kind: ParamKind, stored: Stored) -> Object:
        key = (resource.key, stored.key)
        known = self._decoded.get(key)
        if known is None or known[0] is not stored:
            if len(self._decoded) >= _REMEMBERED_OBJECTS:
                self._decoded.clear()
            known = self._decoded[key] = (stored, stored.object())
        return {**known[1], "apiVersion": kind.api_version, "kind": kind.kind}


def _namespace(resource: Resource, reference: Object, namespace: str) -> str:
    given = reference.get("namespace") or ""
    if not resource.namespaced:
        if given:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not given and not namespace:
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return given or namespace
