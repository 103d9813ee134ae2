"""The rights that are generated for a capability beside those that its operator makes use of, over a story of a test.

    audit = audited(SPARES)                   before the operator starts
    ...                                       a template's life
    assert audit.beyond() == set()            what was asked for without a right
    assert audit.needless() == set()          what nobody asked for

Single reads are for answers that got lost: the audit loses one for each kind that the capability writes. A right is
also made use of where nobody sees it: to create, by an apply of what is not there; to `finalizers`, by an owner whose
deletion is blocked, on servers with the admission plugin OwnerReferencesPermissionEnforcement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple

import msgspec
from tests.builders.api_requests import Asked, ListeningTransport, Right

from nodeyard.client.transport import Transport
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.webhooks import configuration_name
from nodeyard.testing.wait import until

COUNTED = "patch events.events.k8s.io"
"""Rare: an Event that is told again is counted. The stories of spares and clustertree do so."""
RENEWED = f"update secrets in {NAMESPACE} named {WEBHOOK_CERTIFICATES}"
"""Rare: the certificates of webhooks are renewed after weeks (`test_admission_manager`)."""
_MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
_WRITES = {"create", "update", "patch", "delete"}
_CREATED, _FURTHER = 201, 300
GRANTED = "granted namespaces"
"""Placeholder for single namespaces, whichever, in which an administrator grants something."""


def unregistered(capability: Capability) -> set[str]:
    """Rare: who has no mutating webhooks writes their configuration only to take out what an earlier version put
    there."""
    return {f"patch {_MUTATING} named {configuration_name(capability.name)}"}


class Grant(NamedTuple):
    right: Right
    namespace: str
    """Namespaces in which alone it holds; empty: everywhere."""
    names: tuple[str, ...]
    """Names for which alone it holds; none: everything."""

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.right}{place}{' named ' if self.names else ''}{', '.join(self.names)}"

    def covers(self, asked: Asked) -> bool:
        """Return whether this right allows the request, by RBAC's rules."""
        group, resource, verb = asked.right
        parts = ("*", f"*/{resource.partition('/')[2]}", resource)
        return (
            (self.right.group, self.right.verb) == (group, verb)
            and self.right.resource in parts
            and (self.namespace in ("", asked.namespace) or (self.namespace == GRANTED and bool(asked.namespace)))
            and (not self.names or asked.name in self.names)
        )

    @property
    def breadth(self) -> tuple[bool, bool, bool]:
        return not self.names, not self.namespace, "*" in self.right.resource


class Audit:
    def __init__(self, capability: Capability, alike: Mapping[str, str] | None = None) -> None:
        """`alike`: resources that are treated as another one is, and not there in the test."""
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
        self._asked: list[Asked] = []

    def _granted(self, namespace: str, rules: Sequence[Object]) -> Iterator[Grant]:
        for rule in rules:
            for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"]):
                right = Right(group, self._alike.get(resource, resource), verb)
                yield Grant(right, namespace, tuple(rule.get("resourceNames", ())))

    # listening

    def listen(self, transport: Transport) -> ListeningTransport:
        return ListeningTransport(transport, self)

    def hear(self, asked: Asked, body: bytes) -> None:
        resource = self._alike.get(asked.right.resource, asked.right.resource)
        self._asked.append(asked._replace(right=asked.right._replace(resource=resource)))
        self._asked += self._blocking(asked, body)

    def loses(self, asked: Asked, status: int) -> bool:
        right = asked.right
        if right.verb == "patch" and status == _CREATED:
            self._asked.append(asked._replace(right=right._replace(verb="create")))
        kind = right.group, right.resource.partition("/")[0]
        is_done = right.verb in _WRITES and status < _FURTHER
        if not is_done or kind in self._lost or self._narrowest(asked) not in self._own:
            return False
        self._lost.add(kind)
        return True

    def _blocking(self, asked: Asked, body: bytes) -> Iterator[Asked]:
        """The owners whose deletion an object that is written blocks."""
        written = msgspec.json.decode(body) if asked.right.verb in _WRITES and body else None
        metadata = written.get("metadata") or {} if isinstance(written, dict) else {}
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("blockOwnerDeletion"):
                right = Right(*self._finalizers(owner), "update")
                yield Asked(right, asked.namespace, owner["name"])

    def _finalizers(self, owner: Object) -> tuple[str, str]:
        group = owner["apiVersion"].rpartition("/")[0]
        plural = self._plurals.get((group, owner["kind"]), f"{owner['kind'].lower()}s")
        return group, f"{plural}/finalizers"

    # judging

    def has(self, right: str) -> bool:
        """Return whether a right, as `needless` names it, was used."""
        return any(str(grant) == right for grant in self._used())

    def needless(self, rare: Iterable[str] = (), patience: float = 5.0) -> set[str]:
        """Return the rights that are granted and were never used, but for those listed as rare; and what is called rare
        and is not granted. Waits, because some requests may still be in flight."""
        with suppress(TimeoutError):
            until(lambda: not self._needless(rare), "everything was made use of", patience)
        return self._needless(rare)

    def _needless(self, rare: Iterable[str]) -> set[str]:
        used, granted = self._used(), set(map(str, self._declared))
        unused = {str(grant) for grant in self._declared if grant not in used}
        return unused - set(rare) | set(rare) - granted

    def beyond(self) -> set[str]:
        """Return the requests that no granted right allows."""
        return {str(each.right) for each in set(self._asked) if self._narrowest(each) is None}

    def loose(self, *fixed: str) -> set[str]:
        """Return rights on every object that were used only for objects whose names are the same in every cluster."""
        used = self._used().items()
        return {str(grant) for grant, names in used if not grant.names and names <= set(fixed)}

    def _used(self) -> Mapping[Grant, set[str]]:
        """With the names of what they were made use of for."""
        found: dict[Grant, set[str]] = {}
        for each in set(self._asked):
            if (grant := self._narrowest(each)) is not None:
                found.setdefault(grant, set()).add(each.name)
        return found

    def _narrowest(self, asked: Asked) -> Grant | None:
        """The grant that a request rests on: it needs no broader one."""
        return min((each for each in self._grants if each.covers(asked)), key=lambda each: each.breadth, default=None)
