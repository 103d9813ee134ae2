"""Privilege escalation checks of roles and bindings.

A user who writes a role must hold all its rules or the right to `escalate`; one who writes a binding must hold the
rules of its role or the right to `bind`. The check runs last among mutating plugins, so it sees the object to be stored
and refuses before validation, as on the real server.
"""

from __future__ import annotations

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.authorization import Authorizer
from nodeyard.apiserver.errors import ApiError, forbidden, not_found
from nodeyard.apiserver.rbac.names import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, ROLE_BINDINGS, ROLES
from nodeyard.apiserver.rbac.roles import RoleKey
from nodeyard.apiserver.rbac.rules import Rule, compact, not_held_whole, quoted, read_rules, uncovered
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.users import MASTERS
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Object

_EVERYTHING = (
    Rule(verbs=("*",), api_groups=("*",), resources=("*",)),
    Rule(verbs=("*",), non_resource_urls=("*",)),
)
_COLLECTED = ("ownerReferences", "finalizers", "managedFields")
_FEW = 1000
"""Comparisons of one right with one rule that take about a millisecond."""
_MOST = 500_000
"""Comparisons above which a write is refused: they would take seconds, and their result megabytes."""


class EscalationGuard:
    """The admission plugin."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def mutate(self, attributes: Attributes) -> None:
        if attributes.resource.group != GROUP or attributes.object is None or MASTERS in attributes.user.groups:
            return
        if attributes.old is not None and _changes_only_collection(attributes.object, attributes.old):
            return
        key = attributes.resource.key
        if key in (ROLES, CLUSTER_ROLES):
            await self._check_role(attributes, attributes.object)
        elif key in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            await self._check_binding(attributes, attributes.object)

    async def validate(self, attributes: Attributes) -> None:
        return

    async def _check_role(self, attributes: Attributes, role: Object) -> None:
        user, plural = attributes.user, attributes.resource.plural
        # A create has no name in its path, so rules with resourceNames do not apply.
        name = attributes.name if attributes.operation == "UPDATE" else ""
        if self._may(user, "escalate", plural, name, attributes.namespace):
            return
        await self._confirm(attributes, read_rules(role))
        aggregates = [obj for obj in (role, attributes.old) if obj and _aggregates(obj)]
        if aggregates and await self._missing(attributes, _EVERYTHING):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(GROUP, plural, attributes.name, why)

    async def _check_binding(self, attributes: Attributes, binding: Object) -> None:
        reference, namespace = binding.get("roleRef") or {}, attributes.namespace
        kind, name = reference.get("kind", ""), reference.get("name", "")
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind, "")
        if plural and self._may(attributes.user, "bind", plural, name, namespace):
            return
        role = RoleKey(namespace if kind == "Role" else "", name)
        permissions = self._authorizer.rbac.roles.permissions(role)
        if permissions is None:
            raise not_found(GROUP, attributes.resource.plural, name)
        await self._confirm(attributes, permissions.rules)

    def _may(self, user: User, verb: str, plural: str, name: str, namespace: str) -> bool:
        info = RequestInfo("", verb, True, group=GROUP, version="*", namespace=namespace, resource=plural, name=name)
        return self._authorizer.authorize(user, info).is_allowed

    async def _missing(self, attributes: Attributes, wanted: tuple[Rule, ...]) -> list[Rule]:
        owned, _ = self._authorizer.rbac.rules_for(attributes.user, attributes.namespace)
        run, comparisons = attributes.work.run, len(owned) * len(wanted)
        if comparisons <= _MOST:
            rest = await run(comparisons > _FEW, lambda: not_held_whole(owned, wanted))
            comparisons = sum(rule.combinations for rule in rest) * (len(owned) or 1)
        if comparisons > _MOST:
            why = "the rules are too many to compare with the user's: use fewer, or ask for the right to escalate"
            raise attributes.forbidden(why)
        return await run(comparisons > _FEW, lambda: uncovered(owned, rest))

    async def _confirm(self, attributes: Attributes, wanted: tuple[Rule, ...]) -> None:
        missing = await self._missing(attributes, wanted)
        if missing:
            _, faults = self._authorizer.rbac.rules_for(attributes.user, attributes.namespace)
            raise await attributes.work.run(len(missing) > _FEW, lambda: _refusal(attributes, missing, faults))


def _refusal(attributes: Attributes, missing: list[Rule], faults: list[str]) -> ApiError:
    user = attributes.user
    why = (
        f"user {quote(user.name)} (groups={quoted(user.groups)}) is attempting to grant RBAC permissions not currently "
        "held:\n" + "\n".join(sorted({str(rule) for rule in compact(missing)}))
    )
    if faults:
        why += f"; resolution errors: [{faults[0] if len(faults) == 1 else '[' + ', '.join(faults) + ']'}]"
    return forbidden(GROUP, attributes.resource.plural, attributes.name, why)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _changes_only_collection(new: Object, old: Object) -> bool:
    """True if the update changes only fields that the garbage collector changes."""
    return _without_collected(new) == _without_collected(old)


def _without_collected(obj: Object) -> Object:
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in _COLLECTED}
    return {**obj, "metadata": metadata}
