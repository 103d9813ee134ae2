"""Audit of rights: compares the generated RBAC rules of a capability with the requests of its operator.

    audit = audited(SPARES)                   before the operator starts
    ...                                       a template's life
    assert audit.forbidden() == set()            requests without a right
    assert audit.unused() == set()          rights without a request

The operator reads single objects only after a lost answer, so the audit loses one answer for each kind that the
capability writes. Two uses of rights are not requests: an apply of a missing object needs `create`, and a reference to
an owner whose deletion it blocks needs `finalizers` (admission plugin OwnerReferencesPermissionEnforcement).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.builders.api_requests import RecordingTransport, ResourceRequest, Right

from nodeyard.client.transport import Transport
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.webhooks import configuration_name
from nodeyard.testing.wait import until

COUNTED = "patch events.events.k8s.io"
"""Rare: a repeated Event is counted by a patch. The tests of spares and clustertree cause it."""
RENEWED = f"update secrets in {NAMESPACE} named {WEBHOOK_CERTIFICATES}"
"""Rare: webhook certificates are renewed after weeks (`test_admission_manager`)."""
_MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
_WRITES = {"create", "update", "patch", "delete"}
_CREATED, _FURTHER = 201, 300
GRANTED = "granted namespaces"
"""Placeholder for the namespaces in which an administrator grants something."""


def unregistered(capability: Capability) -> set[str]:
    """Rare: a capability without mutating webhooks writes their configuration only to remove those of an earlier
    version."""
    return {f"patch {_MUTATING} named {configuration_name(capability.name)}"}


class Grant(NamedTuple):
    right: Right
    namespace: str
    """The namespace of the grant; empty for all."""
    names: tuple[str, ...]
    """The resourceNames of the grant; empty for all."""

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.right}{place}{' named ' if self.names else ''}{', '.join(self.names)}"

    def covers(self, request: ResourceRequest) -> bool:
        """Return whether this right allows the request, by RBAC's rules."""
        group, resource, verb = request.right
        parts = ("*", f"*/{resource.partition('/')[2]}", resource)
        return (
            (self.right.group, self.right.verb) == (group, verb)
            and self.right.resource in parts
            and (self.namespace in ("", request.namespace) or (self.namespace == GRANTED and bool(request.namespace)))
            and (not self.names or request.name in self.names)
        )

    @property
    def breadth(self) -> tuple[bool, bool, bool]:
        return not self.names, not self.namespace, "*" in self.right.resource


class Audit:
    def __init__(self, capability: Capability, alike: Mapping[str, str] | None = None) -> None:
        """`alike` maps resources that the test does not have to equivalent ones."""
        self._alike = alike or {}
        chosen = [(GRANTED if rule.grant else rule.namespace, rbac.render(rule)) for rule in capability.rbac]
        self._own = {grant for namespace, rule in chosen for grant in self._granted(namespace, [rule])}
        local = {NAMESPACE: rbac.local_rules(capability), **rbac.rules_elsewhere(capability)}
        narrow = [grant for namespace, rules in local.items() for grant in self._granted(namespace, rules)]
        for rules in rbac.grants(capability).values():
            narrow += self._granted(GRANTED, rules)
        self._declared = [*self._granted("", rbac.rules(capability)), *narrow]
        self._grants = [*self._granted("", rbac.rules(capability, installs_crds=True)), *narrow]
        resources = [watch.resource for watch in capability.watches] + [kind.resource for kind in capability.kinds]
        self._plurals = {(each.group, each.kind): each.plural for each in resources}
        self._lost: set[tuple[str, str]] = set()
        self._requests: list[ResourceRequest] = []

    def _granted(self, namespace: str, rules: Sequence[Object]) -> Iterator[Grant]:
        for rule in rules:
            for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"]):
                right = Right(group, self._alike.get(resource, resource), verb)
                yield Grant(right, namespace, tuple(rule.get("resourceNames", ())))

    # recording

    def listen(self, transport: Transport) -> RecordingTransport:
        return RecordingTransport(transport, self)

    def record(self, request: ResourceRequest, body: bytes) -> None:
        resource = self._alike.get(request.right.resource, request.right.resource)
        self._requests.append(request._replace(right=request.right._replace(resource=resource)))
        self._requests += self._blocking(request, body)

    def drops_answer(self, request: ResourceRequest, status: int) -> bool:
        right = request.right
        if right.verb == "patch" and status == _CREATED:
            self._requests.append(request._replace(right=right._replace(verb="create")))
        kind = right.group, right.resource.partition("/")[0]
        is_done = right.verb in _WRITES and status < _FURTHER
        if not is_done or kind in self._lost or self._narrowest(request) not in self._own:
            return False
        self._lost.add(kind)
        return True

    def _blocking(self, request: ResourceRequest, body: bytes) -> Iterator[ResourceRequest]:
        """Yield the owners whose deletion a written object blocks."""
        written = msgspec.json.decode(body) if request.right.verb in _WRITES and body else None
        metadata = written.get("metadata") or {} if isinstance(written, dict) else {}
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("blockOwnerDeletion"):
                right = Right(*self._finalizers(owner), "update")
                yield ResourceRequest(right, request.namespace, owner["name"])

    def _finalizers(self, owner: Object) -> tuple[str, str]:
        group = owner["apiVersion"].rpartition("/")[0]
        plural = self._plurals.get((group, owner["kind"]), f"{owner['kind'].lower()}s")
        return group, f"{plural}/finalizers"

    # results

    def has(self, right: str) -> bool:
        """Return whether a right, as `unused` names it, was used."""
        return any(str(grant) == right for grant in self._used())

    def unused(self, rare: Iterable[str] = (), patience: float = 5.0) -> set[str]:
        """Return granted rights that were never used and are not rare, and rare ones that are not granted.

        Waits, because requests may still be in flight.
        """
        with suppress(TimeoutError):
            until(lambda: not self._unused(rare), "every right was used", patience)
        return self._unused(rare)

    def _unused(self, rare: Iterable[str]) -> set[str]:
        used, granted = self._used(), set(map(str, self._declared))
        unused = {str(grant) for grant in self._declared if grant not in used}
        return unused - set(rare) | set(rare) - granted

    def forbidden(self) -> set[str]:
        """Return the requests that no granted right allows."""
        return {str(each.right) for each in set(self._requests) if self._narrowest(each) is None}

    def too_broad(self, *fixed: str) -> set[str]:
        """Return rights on every object that were used only for objects whose names are the same in every cluster."""
        used = self._used().items()
        return {str(grant) for grant, names in used if not grant.names and names <= set(fixed)}

    def _used(self) -> Mapping[Grant, set[str]]:
        """Return the used grants with the names of the objects in the requests."""
        found: dict[Grant, set[str]] = {}
        for each in set(self._requests):
            if (grant := self._narrowest(each)) is not None:
                found.setdefault(grant, set()).add(each.name)
        return found

    def _narrowest(self, request: ResourceRequest) -> Grant | None:
        """Return the narrowest grant that allows the request."""
        return min((each for each in self._grants if each.covers(request)), key=lambda each: each.breadth, default=None)


# people


@contextmanager
def people(api: Any, capabilities: Sequence[Capability]) -> Iterator[Callable[[str, str], Path]]:
    """Install the roles for people. The yielded function binds a role to a user: `bind("nodeyard-reader", "jane")`;
    it returns their kubeconfig."""
    made = [*rbac.command_roles(), *(each for every in capabilities for each in rbac.people(every))]
    for each in made:
        api.rest.replace_or_create(each)

    def bind(role: str, user: str) -> Path:
        group = "rbac.authorization.k8s.io"
        bound = {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": user},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        }
        api.rest.replace_or_create(bound)
        made.append(bound)
        kubeconfig: Path = api.user(user)
        return kubeconfig

    try:
        yield bind
    finally:
        for each in reversed(made):
            api.rest.call("DELETE", f"{api.rest.collection(each)}/{each['metadata']['name']}")
