"""Rules: whether they allow a request, and whether they cover other rules.

A role's rules are compiled to one table by verb, group and resource, so that a request needs at most twelve lookups,
however many rules the role has. A rule with very many combinations of the three is kept as it is. `uncovered` returns
the part of some rules that a user does not hold and so may not grant.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import msgspec

from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Object

ALL = "*"
_MANY = 1000
"""Combinations of verb, group and resource above which a rule is not in the table: 4 KB of text can have 10 million."""


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = msgspec.field(default=(), name="apiGroups")
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    @property
    def combinations(self) -> int:
        """The number of rules with one verb, group, resource and name, or URL, that this one stands for."""
        resources = len(self.api_groups) * len(self.resources) * (len(self.resource_names) or 1)
        return len(self.verbs) * (resources + len(self.non_resource_urls))

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

    __slots__ = ("_resources", "_urls", "_wide", "rules")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        # The allowed names by verb, group and resource; None for every name.
        self._resources: dict[tuple[str, str, str], frozenset[str] | None] = {}
        self._urls: list[tuple[frozenset[str], str]] = []
        self._wide: list[_Sets] = []
        for rule in rules:
            self._add(rule)

    def _add(self, rule: Rule) -> None:
        names = frozenset(rule.resource_names) or None
        if len(rule.verbs) * len(rule.api_groups) * len(rule.resources) > _MANY:
            self._wide.append(_Sets.of(rule))
            return
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
        return any(wide.allow(info, resources) for wide in self._wide)


_NO_NAMES: frozenset[str] = frozenset()


def url_covers(owned: str, path: str) -> bool:
    """True if a nonResourceURL, perhaps with a trailing star, matches this path."""
    return owned == path or (owned.endswith(ALL) and path.startswith(owned.rstrip(ALL)))


def uncovered(owned: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return the wanted rules that no owned rule covers: one verb, group, resource and name each."""
    holdings = [_Sets.of(rule) for rule in owned]
    return [atom for rule in wanted for atom in _atoms(rule) if not any(own.covers(atom) for own in holdings)]


def not_held_whole(owned: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return the wanted rules that no single owned rule covers; several together may."""
    holdings = [_Sets.of(rule) for rule in owned]
    return [rule for rule in wanted if not any(own.covers(rule) for own in holdings)]


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


class _Sets(NamedTuple):
    """A rule as sets."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    urls: tuple[str, ...]

    @classmethod
    def of(cls, rule: Rule) -> _Sets:
        return cls(
            frozenset(rule.verbs),
            frozenset(rule.api_groups),
            frozenset(rule.resources),
            frozenset(rule.resource_names),
            rule.non_resource_urls,
        )

    def allow(self, info: RequestInfo, resources: Iterable[str]) -> bool:
        return (
            _has(self.verbs, (info.verb,))
            and _has(self.groups, (info.group,))
            and not self.resources.isdisjoint(resources)
            and (not self.names or info.name in self.names)
        )

    def covers(self, rule: Rule) -> bool:
        """Return True if this rule grants all that the other one grants."""
        if not _has(self.verbs, rule.verbs):
            return False
        if rule.non_resource_urls:
            # An owned rule with resourceNames never covers a URL.
            is_url_covered = (any(url_covers(own, url) for own in self.urls) for url in rule.non_resource_urls)
            return not rule.resources and not self.names and all(is_url_covered)
        if self.names and not (rule.resource_names and self.names.issuperset(rule.resource_names)):
            return False
        return _has(self.groups, rule.api_groups) and all(map(self._covers_resource, rule.resources))

    def _covers_resource(self, resource: str) -> bool:
        _, slash, subresource = resource.partition("/")
        return _has(self.resources, (resource,)) or (bool(slash) and f"*/{subresource}" in self.resources)


def _has(held: frozenset[str], wanted: Iterable[str]) -> bool:
    return ALL in held or held.issuperset(wanted)
