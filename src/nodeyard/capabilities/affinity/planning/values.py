"""Render the Secret `cozystack-values` of a tenant, the values that every chart in its namespace gets.

    _cluster      copied verbatim from the parent's
    _namespace    rendered: whose etcd, ingress, gateway, monitoring and SeaweedFS are used, the host, and the
                  effective classes

An enabled service is the tenant's own; any other is its parent's. The root has no parent: there every service is
`tenant-root`, enabled or not, except the gateway, which must be enabled.

The text is built line by line with every string in quotes: a class may be called `yes` or `1e3`, and YAML parsers
disagree on these. For the same reason the lines of `_cluster` are copied and not rendered again.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.kube.json import Json, Object
from nodeyard.kube.manifests import ManifestError, load
from nodeyard.kube.names import label_value_faults, subdomain_faults
from nodeyard.plan.model import ObjectRef

API_VERSION: Final = "v1"
KIND: Final = "Secret"
HOST: Final = "host"
GATEWAY: Final = "gateway"
SERVICES: Final = ("etcd", "ingress", GATEWAY, "monitoring", "seaweedfs")
KEYS: Final = (*SERVICES, HOST)
DEFAULT_KEY: Final = "defaultAffinityClass"
ALLOWED_KEY: Final = "allowedAffinityClasses"
ROOT_HOST: Final = "root-host"
"""Key in `_cluster`: the host of the root tenant."""
_ENABLED: Final = "Enabled"
_NO_CLUSTER: Final = f"{names.CLUSTER_VALUES}: {{}}\n"


class ValuesError(ValueError):
    """Values that cannot be read; the message quotes nothing of their content."""


@dataclass(frozen=True)
class Values:
    """The parsed Secret of one namespace."""

    cluster: str = _NO_CLUSTER
    """The lines of `_cluster`, with the key."""
    root_host: str = ""
    namespace: Mapping[str, str] = field(default_factory=dict)
    """The namespace that provides each service, and the host, by `KEYS`; empty if there is none."""


# reading


def read(secret: Object) -> Values:
    document, text = _parse_document(secret)
    cluster = document.get(names.CLUSTER_VALUES)
    root_host = cluster.get(ROOT_HOST) if isinstance(cluster, dict) else ""
    return Values(
        cluster=_cut_lines(text, cluster) if names.CLUSTER_VALUES in document else _NO_CLUSTER,
        root_host=root_host if isinstance(root_host, str) else "",
        namespace=_read_namespace(document.get(names.NAMESPACE_VALUES)),
    )


def _parse_document(secret: Object) -> tuple[dict[str, Any], str]:
    encoded = (secret.get("data") or {}).get(names.VALUES_KEY)
    if encoded is None:
        raise ValuesError("there is no such key")
    try:
        text = base64.b64decode(encoded, validate=True).decode()
        document = load(text)
    except ManifestError as error:
        # The parser's message quotes the content, which is secret.
        mark = getattr(error.__cause__, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise ValuesError(f"it is not YAML{where}") from None
    except ValueError:
        raise ValuesError("it is not base64 of a text") from None
    if document is None:
        return {}, text
    if not isinstance(document, dict):
        raise ValuesError("it is not a mapping")
    return document, text


def _read_namespace(found: Json) -> Mapping[str, str]:
    if found is not None and not isinstance(found, dict):
        raise ValuesError(f"{names.NAMESPACE_VALUES} is not a mapping")
    values = {key: (found or {}).get(key) or "" for key in KEYS}
    for key, value in values.items():
        if not isinstance(value, str) or label_value_faults(value):
            raise ValuesError(f"{names.NAMESPACE_VALUES}.{key} cannot be the value of a label")
    return values


def _cut_lines(text: str, cluster: Json) -> str:
    """Return the lines of `_cluster` verbatim; as JSON, which is valid YAML, if they cannot be cut out."""
    key = f"{names.CLUSTER_VALUES}:"
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.startswith(key)), None)
    if start is not None:
        ends = (number for number, line in enumerate(lines) if number > start and _begins_key(line))
        cut = "\n".join(lines[start : next(ends, len(lines))]).rstrip("\n") + "\n"
        if _parses_to(cut, cluster):
            return cut
    try:
        return f"{key} {msgspec.json.encode(cluster, order='deterministic').decode()}\n"
    except (TypeError, ValueError, RecursionError):
        raise ValuesError(f"{names.CLUSTER_VALUES} is no plain data") from None


def _begins_key(line: str) -> bool:
    return bool(line.strip()) and line[0] not in " \t#-"


def _parses_to(lines: str, cluster: Json) -> bool:
    """Return whether the lines parse to the same value on their own, before a `_namespace`."""
    try:
        found = load(f"{lines}{names.NAMESPACE_VALUES}: {{}}\n")
    except ManifestError:
        return False
    return bool(found == {names.CLUSTER_VALUES: cluster, names.NAMESPACE_VALUES: {}})


# rendering


def root_values(tenant: Tenant | None, live: Object | None, platform: Object | None) -> Values:
    """Return the values of `tenant-root`: unchanged without a Tenant; else `_cluster` comes from the platform."""
    if tenant is None and live is not None:
        return read(live)
    source = platform if platform is not None else live
    given = Values() if source is None else read(source)
    enabled = {} if tenant is None else _enabled(tenant)
    own = {key: "" if key == GATEWAY and not enabled.get(key) else names.TENANT_ROOT for key in SERVICES}
    host = (tenant.spec.host if tenant is not None else "") or given.root_host
    return Values(given.cluster, given.root_host, {**own, HOST: host})


def child_values(tenant: Tenant, parent: Values) -> Values:
    """Return the values of a tenant below the root."""
    enabled = _enabled(tenant)
    own = {key: tenant.own_namespace if enabled[key] else parent.namespace[key] for key in SERVICES}
    above = parent.namespace[HOST]
    host = tenant.spec.host or (f"{tenant.name}.{above}" if above else "")
    return Values(parent.cluster, parent.root_host, {**own, HOST: host})


def _enabled(tenant: Tenant) -> Mapping[str, bool]:
    return {key: getattr(tenant.spec, key) for key in SERVICES}


def host_faults(host: str) -> list[str]:
    """Return the first fault of a host, which must be a DNS subdomain and a label value."""
    return [*subdomain_faults(host), *label_value_faults(host)][:1] if host else []


def render(values: Values, policy: EffectivePolicy) -> str:
    lines = [f"  {key}: {_quote(values.namespace[key])}" for key in KEYS]
    if default := policy.usable_default:
        lines.append(f"  {DEFAULT_KEY}: {_quote(default)}")
    if policy.allowed is not None:
        lines.append(f"  {ALLOWED_KEY}:" if policy.allowed else f"  {ALLOWED_KEY}: []")
        lines += [f"    - {_quote(each)}" for each in policy.allowed]
    return f"{values.cluster}{names.NAMESPACE_VALUES}:\n" + "\n".join(lines) + "\n"


def _quote(value: str) -> str:
    return msgspec.json.encode(value).decode()


def secret_of(namespace: str, text: str) -> Object:
    """Return the Secret without a type: the API server defaults it to Opaque, and the type is immutable."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": names.VALUES_SECRET, "namespace": namespace, "labels": {names.FLUX_WATCH: _ENABLED}},
        "data": {names.VALUES_KEY: base64.b64encode(text.encode()).decode()},
    }


def secret_ref(namespace: str, live: Object | None) -> ObjectRef:
    uid = "" if live is None else live["metadata"].get("uid", "")
    return ObjectRef(api_version=API_VERSION, kind=KIND, namespace=namespace, name=names.VALUES_SECRET, uid=uid)
