"""Build the Namespace of a tenant, and decide to which tenant a Namespace belongs.

An annotation with the Tenant's uid marks the Namespaces that the operator created. A Namespace without it, or with
another uid, is never touched. `tenant-root` belongs to the platform and is adopted as it is. Labels name the tenant and
all ancestors, for network policies, and the tenants whose services are used. The Namespace has an owner reference to
the parent's, so the garbage collector deletes it with the parent's.
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


def belongs_to(namespace: Namespace, tenant: Tenant) -> bool:
    """Return whether the Namespace belongs to this tenant."""
    return is_top(tenant) or owner_uid(namespace) == tenant.metadata.uid


def owner_uid(namespace: Namespace) -> str:
    """Return the uid of the Tenant that the Namespace was created for; empty if it was not."""
    return namespace.metadata.annotations.get(names.TENANT, "")


def is_terminating(namespace: Namespace) -> bool:
    return namespace.metadata.deletion_timestamp is not None


def namespace_ref(name: str, live: Namespace | None) -> ObjectRef:
    return ObjectRef(api_version=API_VERSION, kind=KIND, name=name, uid="" if live is None else live.metadata.uid)


def namespace_of(tenant: Tenant, values: Values, parent: Namespace) -> Object:
    """Return the body of the server-side apply."""
    own = tenant.own_namespace
    labels = {f"{names.ANCESTOR_PREFIX}{each}": "" for each in lineage(own)}
    labels |= {f"{names.NAMESPACE_PREFIX}{key}": values.namespace[key] for key in KEYS}
    metadata: Object = {"name": own, "labels": labels, "annotations": {names.TENANT: tenant.metadata.uid}}
    if not is_top(tenant):
        metadata["ownerReferences"] = [_owner_reference(parent)]
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}


def _owner_reference(parent: Namespace) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": parent.metadata.name,
        "uid": parent.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def as_object(namespace: Namespace) -> Object:
    """Return the cached fields of a Namespace in the form of an apply."""
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
