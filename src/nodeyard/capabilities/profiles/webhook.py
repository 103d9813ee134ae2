"""Admission webhooks of profiles. A review reads only the request and the cache.

Denied: a choice that is not a name, a compute that would change its cell, configuration that does not parse, a
declaration that conflicts with another, and the deletion of a profile in use. An update that does not change an
existing fault passes with a warning. The plan reports the same faults if the webhook is off.

Profiles of declared services are reviewed as soon as the API server serves their kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.planning.registry import build_registry
from nodeyard.capabilities.profiles.reviews.nodes import review_node, review_role
from nodeyard.capabilities.profiles.reviews.profiles import review_profile
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.capabilities.profiles.types import ProfileService
from nodeyard.capabilities.profiles.watched import load_registry
from nodeyard.client.resources import view_kind
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import (
    AdmissionRequest,
    AdmissionResponse,
    Operation,
    Webhook,
    WebhookRule,
    allowed,
    decode,
    ratchet,
)

_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")


def _declared(view: View) -> Iterator[WebhookRule]:
    """Return the rules of profiles of declared services whose kind is served."""
    for group, plural in sorted(
        {found for each in load_registry(view).services if (found := _profiles_of(each, view))}
    ):
        yield WebhookRule(group, (plural,), operations=_ALL, scope="Namespaced")


def _profiles_of(service: Service, view: View) -> tuple[str, str] | None:
    """Return group and plural; None for built-in kinds, which have static rules, and for kinds of Kubernetes itself."""
    group = service.profile_api_version.rpartition("/")[0]
    kind = view_kind(service.profile_api_version, service.profile_kind)
    if service.is_built_in or not _is_custom(group) or not watched.is_synced(view, kind):
        return None
    plural = view.plural(kind)
    return (group, plural) if plural else None


def _is_custom(group: str) -> bool:
    return "." in group and not group.endswith((".k8s.io", ".kubernetes.io"))


def review_service(review: AdmissionRequest, view: View) -> AdmissionResponse:
    """Deny a ProfileService that is invalid or conflicts with another."""
    new, old = (decode(each, ProfileService) for each in (review.object, review.old_object))
    if new is None or new.metadata.deletion_timestamp is not None:
        return allowed()
    others = [each for each in view.all(names.SERVICE_KIND) if each.metadata.name != new.metadata.name]
    fault = build_registry([*others, new]).faults.get(new.metadata.name, "")
    if not fault:
        return allowed()
    before = build_registry([*others, old]).faults.get(old.metadata.name, "") if old is not None else ""
    return ratchet([], [fault]) if fault == before else ratchet([fault], [])


WEBHOOKS: Final[tuple[Webhook, ...]] = (
    Webhook(
        name="nodes",
        rules=(WebhookRule(names.DATAPLANE_GROUP, (names.NODE_PLURAL,), scope="Namespaced"),),
        review=review_node,
    ),
    Webhook(
        name="roles",
        rules=(WebhookRule(names.DATAPLANE_GROUP, (names.ROLE_PLURAL,), operations=_ALL, scope="Namespaced"),),
        review=review_role,
    ),
    Webhook(
        name="profiles",
        rules=tuple(
            WebhookRule(group, (plural,), operations=_ALL, scope="Namespaced")
            for group, plural in (
                (names.NOVA_GROUP, names.COMPUTE_PROFILE_PLURAL),
                (names.NEUTRON_GROUP, names.NETWORK_PROFILE_PLURAL),
                (names.TELEMETRY_GROUP, names.TELEMETRY_PROFILE_PLURAL),
            )
        ),
        review=review_profile,
        further=_declared,
    ),
    Webhook(
        name="services",
        rules=(WebhookRule(names.SERVICE_GROUP, (names.SERVICE_PLURAL,), scope="Cluster"),),
        review=review_service,
    ),
)
