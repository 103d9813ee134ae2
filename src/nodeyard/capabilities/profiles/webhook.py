"""Which requests are looked at before they are stored. Nothing waits, and nothing gets locked.

Denied is what could never work: a choice that is no name, a compute that would move to another cell, configuration that
no service can read, a declaration that takes from another. Denied is also the deletion of a profile that nodes have. An
update that leaves such a thing as it was passes with a warning. The plan says the same where the webhook is off.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.reviews.nodes import review_node, review_role
from nodeyard.capabilities.profiles.reviews.profiles import review_profile
from nodeyard.capabilities.profiles.reviews.services import review_service
from nodeyard.runtime.webhooks import Intercepts, Operation, Webhook

_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")

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
    ),
    Webhook(
        name="services",
        rules=(Intercepts(names.SERVICE_GROUP, (names.SERVICE_PLURAL,), scope="Cluster"),),
        review=review_service,
    ),
)
