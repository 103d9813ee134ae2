"""The policies and bindings that match a write, found by endpoint and cached until one changes."""

from __future__ import annotations

from typing import NamedTuple

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.policies.definitions import Binding, Coverage, Policy, read_binding
from nodeyard.apiserver.admission.rules import ADMISSION_GROUP, Endpoint, endpoint
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event, Store, Stored

POLICIES = GroupResource(ADMISSION_GROUP, "validatingadmissionpolicies")
BINDINGS = GroupResource(ADMISSION_GROUP, "validatingadmissionpolicybindings")

_REMEMBERED_ENDPOINTS = 10_000


class BoundPolicy(NamedTuple):
    """A policy and its bindings whose rules match an endpoint."""

    policy: Policy
    coverage: Coverage
    bindings: tuple[tuple[Binding, Coverage | None], ...]


class PolicyIndex:
    """All policies and bindings of a store, updated by its events."""

    def __init__(self, store: Store) -> None:
        self._policies: dict[str, Policy] = {}
        self._bindings: dict[str, Binding] = {}
        self._found: dict[Endpoint, tuple[BoundPolicy, ...]] = {}
        for resource in (POLICIES, BINDINGS):
            for stored in store.list(resource):
                self._put(resource, stored)
        self.close = store.listen(self._on_event)

    def concerning(self, attributes: Attributes) -> tuple[BoundPolicy, ...]:
        """Return the policies that match, by name. A policy without a binding matches nothing."""
        if not self._bindings:
            return ()
        where = endpoint(attributes)
        found = self._found.get(where)
        if found is None:
            if len(self._found) >= _REMEMBERED_ENDPOINTS:
                self._found.clear()
            found = self._found[where] = tuple(self._search(where))
        return found

    def _search(self, where: Endpoint) -> list[BoundPolicy]:
        found = []
        for name, policy in sorted(self._policies.items()):
            coverage = policy.constraint.cover(where)
            bindings = self._bound(name, where) if coverage else ()
            if coverage and bindings:
                found.append(BoundPolicy(policy, coverage, bindings))
        return found

    def _bound(self, policy: str, where: Endpoint) -> tuple[tuple[Binding, Coverage | None], ...]:
        bound: list[tuple[Binding, Coverage | None]] = []
        for _, binding in sorted(self._bindings.items()):
            if binding.policy != policy:
                continue
            coverage = binding.constraint.cover(where) if binding.constraint else None
            if coverage or binding.constraint is None:
                bound.append((binding, coverage))
        return tuple(bound)

    def _on_event(self, resource: GroupResource, event: Event) -> None:
        if resource not in (POLICIES, BINDINGS):
            return
        self._found.clear()
        if event.type == "DELETED":
            name = event.stored.key.name
            (self._policies if resource == POLICIES else self._bindings).pop(name, None)
        else:
            self._put(resource, event.stored)

    def _put(self, resource: GroupResource, stored: Stored) -> None:
        name, spec = stored.key.name, stored.object().get("spec") or {}
        if resource == POLICIES:
            self._policies[name] = Policy(name, spec)
        else:
            self._bindings[name] = read_binding(name, spec)
