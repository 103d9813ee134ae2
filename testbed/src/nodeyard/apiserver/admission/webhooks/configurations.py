"""Webhook configurations, found by endpoint.

A write that no webhook matches costs one lookup: the webhooks that match an endpoint are cached until a configuration
changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.conditions import Compile, Conditions
from nodeyard.apiserver.admission.rules import Endpoint, Rules, endpoint
from nodeyard.apiserver.admission.selectors import ObjectScope
from nodeyard.apiserver.admission.webhooks import endpoints
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event, Store, Stored
from nodeyard.kube.json import Object

MUTATING = GroupResource("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING = GroupResource("admissionregistration.k8s.io", "validatingwebhookconfigurations")

_REMEMBERED_ENDPOINTS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Webhook:
    """One entry of a configuration."""

    configuration: str
    name: str
    endpoint: endpoints.Endpoint
    rules: Rules
    scope: ObjectScope
    conditions: Conditions
    is_ignoring_failure: bool
    is_reinvoked: bool
    is_safe_to_try: bool
    """True if it may be called in a dry run."""
    timeout: int
    review_versions: tuple[str, ...]


def read_webhook(configuration: str, entry: Object, compile_: Compile) -> Webhook:
    return Webhook(
        configuration=configuration,
        name=entry["name"],
        endpoint=endpoints.read_endpoint(entry.get("clientConfig") or {}),
        rules=Rules(entry.get("rules") or (), is_equivalent=entry.get("matchPolicy", "Equivalent") == "Equivalent"),
        scope=ObjectScope(entry),
        conditions=Conditions(entry.get("matchConditions") or (), compile_),
        is_ignoring_failure=entry.get("failurePolicy", "Fail") == "Ignore",
        is_reinvoked=entry.get("reinvocationPolicy") == "IfNeeded",
        is_safe_to_try=entry.get("sideEffects") in ("None", "NoneOnDryRun"),
        timeout=entry.get("timeoutSeconds") or 10,
        review_versions=tuple(entry.get("admissionReviewVersions") or ()),
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A webhook whose rules match an endpoint, and the version of the objects that it gets."""

    webhook: Webhook
    version: str
    position: int
    """The index among all webhooks of its kind."""


class Configurations:
    """All webhooks of one kind in a store, updated by its events: by configuration name, then as listed."""

    def __init__(self, store: Store, resource: GroupResource, compile_: Compile) -> None:
        self._resource = resource
        self._compile = compile_
        self._configurations: dict[str, list[Webhook]] = {}
        self._found: dict[Endpoint, tuple[Candidate, ...]] = {}
        for stored in store.list(resource):
            self._put(stored)
        self.close = store.listen(self._on_event)

    def candidates(self, attributes: Attributes) -> tuple[Candidate, ...]:
        if not self._configurations:
            return ()
        where = endpoint(attributes)
        found = self._found.get(where)
        if found is None:
            if len(self._found) >= _REMEMBERED_ENDPOINTS:
                self._found.clear()
            found = self._found[where] = tuple(self._search(where))
        return found

    def _search(self, where: Endpoint) -> list[Candidate]:
        listed = [webhook for _, webhooks in sorted(self._configurations.items()) for webhook in webhooks]
        candidates = []
        for position, webhook in enumerate(listed):
            matches = webhook.rules.find(where)
            if matches:
                candidates.append(Candidate(webhook, matches[0].version, position))
        return candidates

    def _on_event(self, resource: GroupResource, event: Event) -> None:
        if resource != self._resource:
            return
        self._found.clear()
        if event.type == "DELETED":
            self._configurations.pop(event.stored.key.name, None)
        else:
            self._put(event.stored)

    def _put(self, stored: Stored) -> None:
        name = stored.key.name
        entries = stored.object().get("webhooks") or ()
        self._configurations[name] = [read_webhook(name, entry, self._compile) for entry in entries]
