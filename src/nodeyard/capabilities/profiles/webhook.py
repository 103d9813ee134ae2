"""Which requests are looked at before they are stored. Nothing waits, and nothing gets locked.

Denied is what could never work: a choice that is no name, a compute that would move to another cell, configuration that
no service can read, a declaration that takes from another. Denied is also the deletion of a profile that nodes have. An
update that leaves such a thing as it was passes with a warning. The plan says the same where the webhook is off.

Profiles of declared services are looked at like the others, from the moment the server has their kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.collecting import known
from nodeyard.capabilities.profiles.reviews.nodes import review_node, review_role
from nodeyard.capabilities.profiles.reviews.profiles import review_profile
from nodeyard.capabilities.profiles.reviews.services import review_service
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import Intercepts, Operation, Webhook

_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")


def _declared(view: View) -> Iterator[Intercepts]:
    """The profiles of declared services, as soon as the server has their kind."""
    for group, plural in sorted({found for each in known(view).services if (found := _profiles_of(each, view))}):
        yield Intercepts(group, (plural,), operations=_ALL, scope="Namespaced")


def _profiles_of(service: Service, view: View) -> tuple[str, str] | None:
    """None of what is built in, which is known beforehand, and of what others depend on: nobody declares that away."""
    group = service.profile_api_version.rpartition("/")[0]
    kind = watched.viewed(service.profile_api_version, service.profile_kind)
    if service.is_built_in or not _is_custom(group) or not watched.is_seen(view, kind):
        return None
    plural = view.plural(kind)
    return (group, plural) if plural else None


def _is_custom(group: str) -> bool:
    return "." in group and not group.endswith((".k8s.io", ".kubernetes.io"))


WEBHOOKS: Final[tuple[Webhook, ...]] = (
    Webhook(
        name="nodes",
        rules=(Intercepts(names.DATAPLANE_GROUP, (names.NODE_PLURAL,), scope="Namespaced"),),
        review=review_node,
    ),
    Webhook(
        name="roles",
        rules=(Intercepts(names.DATAPLANE_GROUP, (names.ROLE_PLURAL,), operations=_ALL, scope="Namespaced"),),
        review=review_role,
    ),
    Webhook(
        name="profiles",
        rules=tuple(
            Intercepts(group, (plural,), operations=_ALL, scope="Namespaced")
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
        rules=(Intercepts(names.SERVICE_GROUP, (names.SERVICE_PLURAL,), scope="Cluster"),),
        review=review_service,
    ),
)
