"""The RBAC index: roles and bindings of a store, updated by its events."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.apiserver.rbac.bindings import Bindings, Grant
from nodeyard.apiserver.rbac.names import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, ROLE_BINDINGS, ROLES
from nodeyard.apiserver.rbac.roles import RoleKey, Roles
from nodeyard.apiserver.rbac.rules import Rule
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event, Store, Stored
from nodeyard.apiserver.transport import User

_ROLE_KINDS = (ROLES, CLUSTER_ROLES)
_BINDING_KINDS = (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)


class RbacIndex:
    """All roles and bindings of a store."""

    def __init__(self, store: Store) -> None:
        self.roles = Roles()
        self.bindings = Bindings()
        for resource in (*_ROLE_KINDS, *_BINDING_KINDS):
            for stored in store.list(resource):
                self._put(resource, stored)
        self.close = store.listen(self._on_event)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        return self.bindings.held_by(user, namespace)

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """Return all rules of a user in a namespace, and the errors of unresolved roles."""
        rules: list[Rule] = []
        faults: list[str] = []
        for _, role in dict.fromkeys((grant.binding, grant.role) for grant in self.grants(user, namespace)):
            permissions = self.roles.permissions(role)
            if permissions is None:
                faults.append(f"{role} not found")
            else:
                rules.extend(permissions.rules)
        return rules, faults

    def _on_event(self, resource: GroupResource, event: Event) -> None:
        if resource.group != GROUP:
            return
        if event.type == "DELETED":
            self._remove(resource, event.stored)
        else:
            self._put(resource, event.stored)

    def _put(self, resource: GroupResource, stored: Stored) -> None:
        if resource in _ROLE_KINDS:
            self.roles.put(RoleKey(*stored.key), stored.object())
        else:
            self.bindings.put(stored.key, stored.object())

    def _remove(self, resource: GroupResource, stored: Stored) -> None:
        if resource in _ROLE_KINDS:
            self.roles.remove(RoleKey(*stored.key))
        else:
            self.bindings.remove(stored.key)
