"""Builds the webhook configurations of a capability, and compares them with those on the server. Pure.

Every field is set, so the comparison needs no knowledge of server defaults. Our webhooks never match the system's
namespaces or our own, where the pods that answer them must be able to start. They match the operator's own writes only
if the webhook declares `sees_own_writes`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from nodeyard.admission.certificates import authorities_in
from nodeyard.admission.client_config import Reach
from nodeyard.client.resources import Resource, untyped
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import CAPABILITY, LEASE_NAMESPACE, NAMESPACE, NAMESPACE_NAME
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.webhooks import Webhook, WebhookRule, configuration_name, suffix

GROUP: Final = "admissionregistration.k8s.io"
VALIDATING = untyped(GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False)
MUTATING = untyped(GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False)
RESOURCES: Final = (VALIDATING, MUTATING)
CLUSTER_ROLES = untyped("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
"""The owner of the configurations. Uninstalling the operator, or disabling its webhooks, deletes the ClusterRole that
lets it write them, and garbage collection removes them with it."""

EXEMPT_NAMESPACES: Final = ("kube-system", LEASE_NAMESPACE, NAMESPACE)
LABELS: Final = {"app.kubernetes.io/name": "nodeyard"}

_TOKEN_PART: Final = 4
_NOT_OURS: Final = {
    "name": "not-by-nodeyard",
    "expression": f"!request.userInfo.username.startsWith('system:serviceaccount:{NAMESPACE}:')",
}


def configuration(
    resource: Resource[Object],
    capability: Capability,
    reach: Reach,
    bundle: bytes,
    owner: Object | None = None,
    *,
    token: str = "",
) -> Object:
    """Build the webhook configuration of one kind; it has no webhooks if the capability declares none of that kind.

    `token` is the last segment of each path.
    """
    ending = f"/{token}" if token else ""
    entries = [
        _entry(webhook, capability.name, reach, bundle, ending)
        for webhook in capability.admission.webhooks
        if webhook.mutates == (resource is MUTATING)
    ]
    metadata: Object = {"name": configuration_name(capability.name), "labels": {**LABELS, CAPABILITY: capability.name}}
    if owner is not None:
        metadata["ownerReferences"] = [_owner_reference(owner)]
    return {"metadata": metadata, "webhooks": entries}


def _owner_reference(owner: Object) -> Object:
    metadata = owner["metadata"]
    named = {"name": metadata["name"], "uid": metadata["uid"]}
    return {"apiVersion": CLUSTER_ROLES.api_version, "kind": CLUSTER_ROLES.kind, **named}


def _entry(webhook: Webhook, capability: str, reach: Reach, bundle: bytes, ending: str) -> Object:
    matching, path = _without_client_config(webhook, capability), webhook.path(capability) + ending
    return {"name": matching["name"], "clientConfig": reach.client_config(path, bundle), **matching}


def _without_client_config(webhook: Webhook, capability: str) -> Object:
    """Build a webhook entry without its clientConfig."""
    conditions = [{"name": each.name, "expression": each.expression} for each in webhook.match_conditions]
    if not webhook.sees_own_writes:
        conditions = [_NOT_OURS, *conditions]
    entry: Object = {
        "name": webhook.full_name(capability),
        "rules": [_rule(rule) for rule in webhook.rules],
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": webhook.match_policy,
        "namespaceSelector": _exclude_system(webhook.namespace_selector),
        "objectSelector": webhook.object_selector,
        "matchConditions": conditions,
        "sideEffects": "None",
        "timeoutSeconds": webhook.timeout_seconds,
        "admissionReviewVersions": ["v1"],
    }
    return {**entry, "reinvocationPolicy": webhook.reinvocation} if webhook.mutates else entry


def _rule(rule: WebhookRule) -> Object:
    return {
        "apiGroups": [rule.group],
        "apiVersions": list(rule.versions),
        "operations": list(rule.operations),
        "resources": list(rule.resources),
        "scope": rule.scope,
    }


def _exclude_system(selector: Object) -> Object:
    exempt = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(EXEMPT_NAMESPACES)}
    return {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), exempt]}


# configurations on the server


def drift(wanted: Object, there: Object | None) -> str:
    """Return why the configuration must be written, or an empty text. Webhooks that others added are ignored."""
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


def entry_drift(webhook: Webhook, capability: str, there: Object) -> str:
    """Return how an entry on the server differs from the declared webhook, or an empty text."""
    return _entry_drift(_without_client_config(webhook, capability), there)


def _entry_drift(wanted: Object, there: Object | None) -> str:
    name = wanted["name"]
    if there is None:
        return f"{name} is missing"
    for field, value in wanted.items():
        if not _is_same(field, value, there.get(field)):
            return f"{name}: {field} differs"
    return ""


def _is_same(field: str, wanted: Json, there: Json) -> bool:
    """Compare a field exactly: an added condition, selector or rule would change which requests match."""
    if field == "clientConfig" and isinstance(there, Mapping):
        return all(there.get(member) == value for member, value in wanted.items())
    return bool((there or wanted.__class__()) == wanted) if isinstance(wanted, dict | list) else bool(there == wanted)


def bundles(there: Iterable[Object], capability: str) -> list[bytes]:
    """Return the caBundles on the server, one per webhook of the capability."""
    return [_decode(each.get("caBundle") or "") for each in _client_configs(there, capability)]


def with_bundle(there: Object, capability: str, bundle: bytes) -> list[Object] | None:
    """Replace the caBundle of the capability's webhooks that trust one of its CAs. Return all webhooks, or None if
    nothing changes."""
    authorities = authorities_in(bundle)
    entries = []
    for entry in there.get("webhooks") or ():
        config = entry.get("clientConfig") or {}
        trusted = authorities_in(_decode(config.get("caBundle") or ""))
        is_ours = entry["name"].endswith(suffix(capability)) and not trusted.isdisjoint(authorities)
        if is_ours and trusted != authorities:
            entry = {**entry, "clientConfig": {**config, "caBundle": b64encode(bundle).decode()}}
        entries.append(entry)
    return entries if entries != (there.get("webhooks") or []) else None


def paths(there: Iterable[Object], capability: str) -> list[str]:
    """Return the paths that the API server calls now, one per webhook of the capability."""
    found = _client_configs(there, capability)
    return [(each.get("service") or {}).get("path") or urlsplit(each.get("url") or "").path for each in found]


def token_in(path: str) -> str:
    """Return the token of `/validate/pools/clusters/TOKEN`, or an empty text."""
    parts = path.split("/")
    return parts[_TOKEN_PART] if len(parts) == _TOKEN_PART + 1 else ""


def _client_configs(there: Iterable[Object], capability: str) -> Iterable[Object]:
    for configuration in there:
        for entry in configuration.get("webhooks") or ():
            if entry["name"].endswith(suffix(capability)):
                yield entry.get("clientConfig") or {}


def _decode(text: str) -> bytes:
    try:
        return b64decode(text)
    except (Base64Error, ValueError):
        return b""
