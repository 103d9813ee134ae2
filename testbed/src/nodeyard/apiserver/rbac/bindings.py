"""Bindings by subject.

A request looks up one user and its groups in at most one namespace, so its cost does not depend on the number of
bindings. Expressions call this from the worker thread, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nodeyard.apiserver.rbac.roles import RoleKey
from nodeyard.apiserver.store import Key
from nodeyard.apiserver.transport import User
from nodeyard.kube.json import Object


class Grant(NamedTuple):
    """A role that a binding grants to a subject."""

    binding: Key
    role: RoleKey
    source: str
    """The description of the binding in the reason of a decision."""


class _Subject(NamedTuple):
    namespace: str
    """The namespace of the binding; empty for a ClusterRoleBinding."""
    kind: str
    name: str


class Bindings:
    """All RoleBindings and ClusterRoleBindings."""

    def __init__(self) -> None:
        self._grants: dict[_Subject, dict[Key, Grant]] = {}
        self._subjects: dict[Key, list[_Subject]] = {}

    def put(self, key: Key, binding: Object) -> None:
        self.remove(key)
        reference = binding["roleRef"]
        role = RoleKey(key.namespace if reference["kind"] == "Role" else "", reference["name"])
        words = _describe_binding(key, reference)
        subjects = self._subjects[key] = []
        for declared in binding.get("subjects") or ():
            subject = _read_subject(key.namespace, declared)
            if subject is not None:
                subjects.append(subject)
                grant = Grant(key, role, f"{words} to {_describe_subject(key.namespace, declared)}")
                self._grants.setdefault(subject, {}).setdefault(key, grant)

    def remove(self, key: Key) -> None:
        for subject in self._subjects.pop(key, ()):
            grants = self._grants.get(subject)
            if grants is not None:
                grants.pop(key, None)
                if not grants:
                    del self._grants[subject]

    def held_by(self, user: User, namespace: str) -> Iterator[Grant]:
        """Yield the grants of a user: cluster-wide first, then those of the namespace."""
        for scope in ("", namespace) if namespace else ("",):
            yield from tuple(self._grants.get(_Subject(scope, "User", user.name), _NONE).values())
            for group in user.groups:
                yield from tuple(self._grants.get(_Subject(scope, "Group", group), _NONE).values())


_NONE: dict[Key, Grant] = {}


def _read_subject(namespace: str, declared: Object) -> _Subject | None:
    kind, name = declared["kind"], declared["name"]
    if kind in ("User", "Group"):
        return _Subject(namespace, kind, name)
    home = declared.get("namespace") or namespace
    if kind != "ServiceAccount" or not home:
        return None
    return _Subject(namespace, "User", f"system:serviceaccount:{home}:{name}")


def _describe_binding(key: Key, reference: Object) -> str:
    what = f'RoleBinding "{key.name}/{key.namespace}"' if key.namespace else f'ClusterRoleBinding "{key.name}"'
    return f'{what} of {reference["kind"]} "{reference["name"]}"'


def _describe_subject(namespace: str, declared: Object) -> str:
    name = declared["name"]
    if declared["kind"] == "ServiceAccount":
        name = f"{name}/{declared.get('namespace') or namespace}"
    return f'{declared["kind"]} "{name}"'
