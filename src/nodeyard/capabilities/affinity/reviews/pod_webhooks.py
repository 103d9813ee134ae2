"""Declare the webhooks for pod creation, and check that they are registered.

Separate from the reviews, so that status can compare the live registration with this declaration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nodeyard.admission.configurations import entry_drift
from nodeyard.capabilities.affinity import names
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE_NAME
from nodeyard.runtime.webhooks import MatchCondition, Webhook, WebhookRule, allowed

TIMEOUT_SECONDS: Final = 3

NOT_EXEMPT: Final[Object] = {
    "matchExpressions": [
        {"key": names.SYSTEM_NAMESPACE, "operator": "NotIn", "values": [names.TRUE]},
        {"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(names.EXEMPT_NAMESPACES)},
    ]
}
_IS_TENANT: Final = f"request.namespace.startsWith('{names.TENANT_PREFIX}')"
TENANTS: Final = MatchCondition("of-a-tenant", _IS_TENANT)
OTHERS: Final = MatchCondition("of-no-tenant", f"!{_IS_TENANT}")


def created_pods(webhook: Webhook) -> tuple[Webhook, Webhook]:
    """Return the webhook twice: for tenants with failurePolicy Fail, for other pods with Ignore."""
    webhook = replace(
        webhook,
        rules=(WebhookRule("", ("pods",), operations=("CREATE",), scope="Namespaced"),),
        namespace_selector=NOT_EXEMPT,
        timeout_seconds=TIMEOUT_SECONDS,
        sees_own_writes=True,
    )
    name = f"{webhook.name}-tenants"
    return (
        replace(webhook, name=name, failure_policy="Fail", match_conditions=(TENANTS,)),
        replace(webhook, failure_policy="Ignore", match_conditions=(OTHERS,)),
    )


_FOR_TENANTS: Final = created_pods(Webhook(names.PLACEMENT, rules=(), review=lambda _review, _view: allowed()))[0]


def is_webhook_registered(registration: Object | None) -> bool:
    """Return whether the placement webhook for tenants is registered and nobody has narrowed it."""
    name = _FOR_TENANTS.full_name(names.CAPABILITY)
    entries = [] if registration is None else registration.get("webhooks") or ()
    entry = next((each for each in entries if each.get("name") == name), None)
    return entry is not None and not entry_drift(_FOR_TENANTS, names.CAPABILITY, entry)
