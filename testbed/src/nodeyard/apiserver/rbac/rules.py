"""Rules: whether they allow a request, and whether they cover other rules.

A role's rules are compiled to one table by verb, group and resource, so that a request needs at most twelve lookups,
however many rules the role has. `uncovered` returns the part of some rules that a user does not hold and so may not
grant.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import msgspec

from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Object

ALL = "*"


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = msgspec.field(default=(), name="apiGroups")
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def __str__(self) -> str:
        """Format the rule as the escalation error does."""
        parts = [
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.non_resource_urls),
            ("ResourceNames", self.resource_names),
            ("Verbs", self.verbs),
        ]
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in parts if values) + "}"


def read_rules(role: Object) -> tuple[Rule, ...]:
    return msgspec.convert(role.get("rules") or (), tuple[Rule, ...])


def quoted(values: Iterable[str]) -> str:
    """Format strings as Go's %q: `["get" "list"]`."""
    return "[" + " ".join(map(quote, values)) + "]"


class Permissions:
    """Compiled rules."""

    __slots__ = ("_resources", "_urls", "rules")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        # The allowed names by verb, group and resource; None for every name.
        self._resources: dict[tuple[str, str, str], frozenset[str] | None] = {}
        self._urls: list[tuple[frozenset[str], str]] = []
        for rule in rules:
            self._add(rule)

    def _add(self, rule: Rule) -> None:
        names = frozenset(rule.resource_names) or None
        for key in product(rule.verbs, rule.api_groups, rule.resources):
            known = self._resources.get(key, frozenset())
            self._resources[key] = None if names is None or known is None else known | names
        verbs = frozenset(rule.verbs)
        self._urls.extend((verbs, url) for url in rule.non_resource_urls)

    def allow(self, info: RequestInfo) -> bool:
        if not info.is_resource:
            return any((info.verb in verbs or ALL in verbs) and url_covers(url, info.path) for verbs, url in self._urls)
        table, name = self._resources, info.name
        resources: tuple[str, ...]
        if info.subresource:
            resources = (f"{info.resource}/{info.subresource}", f"*/{info.subresource}", ALL)
        else:
            resources = (info.resource, ALL)
        for verb in (info.verb, ALL):
            for group in (info.group, ALL):
                for resource in resources:
                    names = table.get((verb, group, resource), _NO_NAMES)
                    if names is None or name in names:
                        return True
        return False


_NO_NAMES: frozenset[str] = frozenset()


def url_covers(owned: str, path: str) -> bool:
    """True if a nonResourceURL, perhaps with a trailing star, matches this path."""
    return owned == path or (owned.endswith(ALL) and path.startswith(owned.rstrip(ALL)))


def uncovered(owned: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return the wanted rules that no owned rule covers: one verb, group, resource and name each."""
    holdings = list(owned)
    return [atom for rule in wanted for atom in _atoms(rule) if not any(_covers(own, atom) for own in holdings)]


def compact(atoms: Iterable[Rule]) -> list[Rule]:
    """Join rules that differ only in the verb, for a shorter error."""
    joined: dict[tuple[object, ...], list[str]] = {}
    rest: list[Rule] = []
    for atom in atoms:
        if atom.non_resource_urls:
            rest.append(atom)
        else:
            joined.setdefault((atom.api_groups, atom.resources, atom.resource_names), []).extend(atom.verbs)
    for (groups, resources, names), verbs in joined.items():
        fields = {"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names}
        rest.append(msgspec.convert(fields, Rule))
    return rest


def _atoms(rule: Rule) -> Iterable[Rule]:
    for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
        if not rule.resource_names:
            yield Rule((verb,), (group,), (resource,))
        for name in rule.resource_names:
            yield Rule((verb,), (group,), (resource,), (name,))
    for url, verb in product(rule.non_resource_urls, rule.verbs):
        yield Rule((verb,), non_resource_urls=(url,))


def _covers(own: Rule, atom: Rule) -> bool:
    if not (ALL in own.verbs or atom.verbs[0] in own.verbs):
        return False
    if atom.non_resource_urls:
        # An owned rule with resourceNames never covers a URL.
        return not own.resource_names and any(
            url_covers(url, atom.non_resource_urls[0]) for url in own.non_resource_urls
        )
    if own.resource_names and not (atom.resource_names and atom.resource_names[0] in own.resource_names):
        return False
    if not (ALL in own.api_groups or atom.api_groups[0] in own.api_groups):
        return False
    resource = atom.resources[0]
    _, slash, subresource = resource.partition("/")
    return ALL in own.resources or resource in own.resources or (bool(slash) and f"*/{subresource}" in own.resources)
