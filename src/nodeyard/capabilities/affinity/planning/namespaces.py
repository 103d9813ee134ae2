"""The Namespace of a tenant: whose it is, what it has to look like, and when it is left alone.

By an annotation with the Tenant's uid we know those that we made; one that has none, or another's, is never touched.
`tenant-root` is the platform's, and adopted as it is. Labels name the tenant and all above it, for network policies,
and whose services are used. The Namespace is owned by the parent's, so it cannot outlive it.
"""

from __future__ import annotations

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.naming import is_top, lineage
from nodeyard.capabilities.affinity.planning.values import KEYS, Values
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace
from nodeyard.plan.model import ObjectRef

API_VERSION = "v1"
KIND = "Namespace"


def is_held(namespace: Namespace, tenant: Tenant) -> bool:
    """Whether the Namespace is this tenant's."""
    return is_top(tenant) or holder(namespace) == tenant.metadata.uid


def holder(namespace: Namespace) -> str:
    """The uid of the Tenant that it was made for; empty where it was not made for one."""
    return namespace.metadata.annotations.get(names.TENANT, "")


def is_going(namespace: Namespace) -> bool:
    return namespace.metadata.deletion_timestamp is not None


def namespace_ref(name: str, live: Namespace | None) -> ObjectRef:
    return ObjectRef(api_version=API_VERSION, kind=KIND, name=name, uid="" if live is None else live.metadata.uid)


def namespace_of(tenant: Tenant, values: Values, parent: Namespace) -> Object:
    """As it is applied."""
    own = tenant.own_namespace
    labels = {f"{names.ANCESTOR_PREFIX}{each}": "" for each in lineage(own)}
    labels |= {f"{names.NAMESPACE_PREFIX}{key}": values.namespace[key] for key in KEYS}
    metadata: Object = {"name": own, "labels": labels, "annotations": {names.TENANT: tenant.metadata.uid}}
    if not is_top(tenant):
        metadata["ownerReferences"] = [_owner(parent)]
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}


def _owner(parent: Namespace) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": parent.metadata.name,
        "uid": parent.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def as_object(namespace: Namespace) -> Object:
    """What is known of a Namespace, in the form in which it is applied."""
    metadata = namespace.metadata
    owners = [
        {name: value for name, value in msgspec.to_builtins(each).items() if value is not None}
        for each in metadata.owner_references
    ]
    known: Object = {
        "name": metadata.name,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
        "ownerReferences": owners,
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": known}
