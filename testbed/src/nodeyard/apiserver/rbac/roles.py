"""Roles with compiled rules, and aggregated ClusterRoles.

An aggregated ClusterRole has the rules of all ClusterRoles that its selectors match, which may be aggregated too
(`admin` includes `edit`, which includes `view`). The union is computed on first use and dropped when any ClusterRole
changes. A lock guards it, because expressions call this from the worker thread, too.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import msgspec

from nodeyard.apiserver.rbac.rules import Permissions, Rule, read_rules
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import LabelSelector, from_object


class RoleKey(NamedTuple):
    """The key of a role; a ClusterRole has no namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        kind = "role" if self.namespace else "clusterrole"
        return f'{kind}.rbac.authorization.k8s.io "{self.name}"'


class _Role:
    __slots__ = ("labels", "permissions", "rules", "selectors")

    def __init__(self, obj: Object) -> None:
        self.labels: dict[str, str] = obj["metadata"].get("labels") or {}
        self.rules = read_rules(obj)
        self.selectors = read_selectors(obj)
        self.permissions: Permissions | None = None


def read_selectors(role: Object) -> list[LabelSelector]:
    """Return the different selectors of an aggregated role."""
    rule = role.get("aggregationRule") or {}
    given = {msgspec.json.encode(selector): selector for selector in rule.get("clusterRoleSelectors") or ()}
    return [from_object(selector) for selector in given.values()]


class Roles:
    """All Roles and ClusterRoles."""

    def __init__(self) -> None:
        self._roles: dict[RoleKey, _Role] = {}
        self._aggregated: dict[RoleKey, _Role] = {}
        self._lock = Lock()

    def put(self, key: RoleKey, obj: Object) -> None:
        role = _Role(obj)
        with self._lock:
            self._forget(key)
            self._roles[key] = role
            if role.selectors:
                self._aggregated[key] = role

    def remove(self, key: RoleKey) -> None:
        with self._lock:
            self._forget(key)
            self._roles.pop(key, None)

    def permissions(self, key: RoleKey) -> Permissions | None:
        """Return the permissions of a role; None if there is no such role."""
        with self._lock:
            role = self._roles.get(key)
            if role is None:
                return None
            if role.permissions is None:
                role.permissions = Permissions(self.rules(key))
            return role.permissions

    def rules(self, key: RoleKey) -> tuple[Rule, ...]:
        return tuple(self._gather(key, frozenset()))

    def aggregated(self) -> list[RoleKey]:
        """The aggregated ClusterRoles."""
        return sorted(self._aggregated)

    def _forget(self, key: RoleKey) -> None:
        self._aggregated.pop(key, None)
        if not key.namespace:
            for role in self._aggregated.values():
                role.permissions = None

    def _gather(self, key: RoleKey, above: frozenset[RoleKey]) -> dict[Rule, None]:
        """Return the distinct rules in order. Cycles of aggregation are cut."""
        role = self._roles[key]
        if not role.selectors:
            return dict.fromkeys(role.rules)
        above |= {key}
        gathered: dict[Rule, None] = {}
        others = sorted(other for other in self._roles if not other.namespace and other not in above)
        for selector in role.selectors:
            for other in others:
                if selector.matches(self._roles[other].labels):
                    gathered |= self._gather(other, above)
        return gathered
