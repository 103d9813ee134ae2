"""The webhook configurations that a capability's declarations amount to, and how those on the server differ. Pure.

Every field is written out, so that a comparison with what the server has needs no knowledge of its defaults. A webhook
of ours can stand in nobody's way where that would hurt: not in the system's namespaces nor in our own, where the very
pods that answer have to start, and unless it asks for it not in the way of what the operator itself writes.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from typing import Final

from nodeyard.admission.reach import Reach
from nodeyard.client.resources import Resource, untyped
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import CAPABILITY, LEASE_NAMESPACE, NAMESPACE, NAMESPACE_NAME
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.webhooks import Intercepts, Webhook, configuration_name, suffix

GROUP: Final = "admissionregistration.k8s.io"
VALIDATING = untyped(GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False)
MUTATING = untyped(GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False)
RESOURCES: Final = (VALIDATING, MUTATING)
CLUSTER_ROLES = untyped("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
"""The owner of what is registered: whoever uninstalls the operator, or switches its webhooks off, deletes the role by
which it registers them, and they go with it."""

EXEMPT_NAMESPACES: Final = ("kube-system", LEASE_NAMESPACE, NAMESPACE)
LABELS: Final = {"app.kubernetes.io/name": "nodeyard"}

_NOT_OURS: Final = {
    "name": "not-by-nodeyard",
    "expression": f"!request.userInfo.username.startsWith('system:serviceaccount:{NAMESPACE}:')",
}


def configuration(
    resource: Resource[Object], capability: Capability, reach: Reach, bundle: bytes, owner: Object | None = None
) -> Object:
    """What shall stand on the server; without webhooks where the capability has none of this kind."""
    entries = [
        _entry(webhook, capability.name, reach, bundle)
        for webhook in capability.webhooks
        if webhook.mutates == (resource is MUTATING)
    ]
    metadata: Object = {"name": configuration_name(capability.name), "labels": {**LABELS, CAPABILITY: capability.name}}
    if owner is not None:
        metadata["ownerReferences"] = [_reference(owner)]
    return {"metadata": metadata, "webhooks": entries}


def _reference(owner: Object) -> Object:
    metadata = owner["metadata"]
    named = {"name": metadata["name"], "uid": metadata["uid"]}
    return {"apiVersion": CLUSTER_ROLES.api_version, "kind": CLUSTER_ROLES.kind, **named}


def _entry(webhook: Webhook, capability: str, reach: Reach, bundle: bytes) -> Object:
    conditions = [{"name": each.name, "expression": each.expression} for each in webhook.match_conditions]
    if not webhook.sees_own_writes:
        conditions = [_NOT_OURS, *conditions]
    entry: Object = {
        "name": webhook.full_name(capability),
        "clientConfig": reach.client_config(webhook.path(capability), bundle),
        "rules": [_rule(rule) for rule in webhook.rules],
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": webhook.match_policy,
        "namespaceSelector": _outside_system(webhook.namespace_selector),
        "objectSelector": webhook.object_selector,
        "matchConditions": conditions,
        "sideEffects": "None",
        "timeoutSeconds": webhook.timeout_seconds,
        "admissionReviewVersions": ["v1"],
    }
    return {**entry, "reinvocationPolicy": webhook.reinvocation} if webhook.mutates else entry


def _rule(rule: Intercepts) -> Object:
    return {
        "apiGroups": [rule.group],
        "apiVersions": list(rule.versions),
        "operations": list(rule.operations),
        "resources": list(rule.resources),
        "scope": rule.scope,
    }


def _outside_system(selector: Object) -> Object:
    exempt = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(EXEMPT_NAMESPACES)}
    return {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), exempt]}


# what is on the server


def drift(wanted: Object, there: Object | None) -> str:
    """Why the configuration has to be written, or nothing. What others added beside ours is theirs."""
    if there is None:
        return "missing" if wanted["webhooks"] else ""
    entries = {entry["name"]: entry for entry in there.get("webhooks") or ()}
    ending = suffix(wanted["metadata"]["labels"][CAPABILITY])
    names = {entry["name"] for entry in wanted["webhooks"]}
    if obsolete := sorted(name for name in entries if name.endswith(ending) and name not in names):
        return f"{obsolete[0]} is obsolete"
    for entry in wanted["webhooks"]:
        if fault := _entry_drift(entry, entries.get(entry["name"])):
            return fault
    return _metadata_drift(wanted["metadata"], there["metadata"])


def _metadata_drift(wanted: Object, there: Object) -> str:
    if not wanted["labels"].items() <= (there.get("labels") or {}).items():
        return "metadata.labels differ"
    owners = there.get("ownerReferences") or ()
    if any(owner not in owners for owner in wanted.get("ownerReferences", ())):
        return "metadata.ownerReferences differ"
    return ""


def _entry_drift(wanted: Object, there: Object | None) -> str:
    name = wanted["name"]
    if there is None:
        return f"{name} is missing"
    for field, value in wanted.items():
        if not _holds(field, value, there.get(field)):
            return f"{name}: {field} differs"
    return ""


def _holds(field: str, wanted: Json, there: Json) -> bool:
    if field == "matchConditions":
        return all(condition in (there or ()) for condition in wanted)
    if field == "clientConfig" and isinstance(there, Mapping):
        return all(there.get(member) == value for member, value in wanted.items())
    return bool((there or wanted.__class__()) == wanted) if isinstance(wanted, dict | list) else bool(there == wanted)


def bundles(there: Iterable[Object], capability: str) -> list[bytes]:
    """The CA bundles by which the API server judges us now, one for each webhook of the capability."""
    found = []
    for configuration in there:
        for entry in configuration.get("webhooks") or ():
            if entry["name"].endswith(suffix(capability)):
                found.append(_decoded((entry.get("clientConfig") or {}).get("caBundle") or ""))
    return found


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text)
    except (Base64Error, ValueError):
        return b""
