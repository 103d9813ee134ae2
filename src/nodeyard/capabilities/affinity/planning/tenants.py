"""Plan all Tenants together, parents first: the Namespace of each, and in it the Secret with the values for charts.

    refuse     nothing is written for a tenant that is paused, has an invalid name, no parent, or the Namespace of
               another, nor while the source of its values cannot be read; what exists stays as it is
    classes    a class that the parent does not allow is refused by itself; the others take effect
    delete     once no tenant or application is left in the Namespace: first the Namespace, then the Tenant. If volumes
               or workloads are left, the deletion needs an approval

The values of a child are rendered from the planned values of its parent, so one plan updates the whole tree.

An annotation with the Tenant's uid marks the Namespaces that the operator created. A Namespace without it, or with
another uid, is never touched. `tenant-root` belongs to the platform and is adopted as it is. Labels name the tenant and
all ancestors, for network policies, and the tenants whose services are used. The Namespace has an owner reference to
the parent's, so the garbage collector deletes it with the parent's.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.objects import FinalizerAdded, FinalizerRemoved, ObjectMessage, Paused
from nodeyard.capabilities.affinity.messages.tenants import (
    BadHost,
    BadParentValues,
    BadTenantName,
    ContentsUnknown,
    NamespaceApplied,
    NamespaceConflict,
    NamespaceDeleted,
    NamespaceTerminating,
    ParentMissing,
    ParentNamespaceForeign,
    ParentNamespaceMissing,
    TenantInUse,
    TenantServedElsewhere,
    ValuesApplied,
)
from nodeyard.capabilities.affinity.planning import values
from nodeyard.capabilities.affinity.planning.inheritance import (
    EffectivePolicy,
    effective_policies,
    is_top,
    lineage,
    name_faults,
)
from nodeyard.capabilities.affinity.planning.values import KEYS, Values, ValuesError
from nodeyard.capabilities.affinity.snapshot import TenantsSnapshot
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace
from nodeyard.plan import finalizers
from nodeyard.plan.apply_preview import merge_fields
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.diff import diff
from nodeyard.plan.managed_fields import preview_apply
from nodeyard.plan.model import Disruption, ObjectRef, Verb, Write


def plan_tenants(builder: PlanBuilder, snapshot: TenantsSnapshot) -> None:
    tree = _Tree(builder, snapshot)
    # A parent's namespace is a prefix of its children's, except for the root.
    for tenant in sorted(snapshot.tenants, key=lambda each: (not is_top(each), each.own_namespace, each.name)):
        tree.plan(tenant)


class _Tree:
    """One pass over the tenants, with the values planned so far."""

    def __init__(self, builder: PlanBuilder, snapshot: TenantsSnapshot) -> None:
        self._builder = builder
        self._snapshot = snapshot
        self._policies = effective_policies(snapshot.tenants, snapshot.classes)
        self._values: dict[str, Values] = {}
        """Planned values by namespace."""
        self._children: dict[str, list[str]] = {}
        for each in snapshot.tenants:
            if not is_top(each):
                self._children.setdefault(each.namespace, []).append(each.name)

    def plan(self, tenant: Tenant) -> None:
        ref = tenant.ref
        if self._snapshot.is_served_elsewhere:
            self._block(TenantServedElsewhere(object=ref))
        elif tenant.is_paused:
            self._block(Paused(object=ref))
        elif tenant.is_deleting:
            self._plan_deletion(tenant)
        elif errors := name_faults(tenant.namespace, tenant.name):
            self._block(BadTenantName(object=ref, errors=errors))
        else:
            self._plan_live(tenant, self._policies[tenant.own_namespace])

    def _block(self, message: ObjectMessage) -> None:
        self._builder.block(message.object, message)

    # live tenants

    def _plan_live(self, tenant: Tenant, policy: EffectivePolicy) -> None:
        for fault in policy.faults:
            self._block(fault)
        if any(isinstance(fault, ParentMissing) for fault in policy.faults):
            return
        parent, live = (self._snapshot.namespaces.get(each) for each in (tenant.namespace, tenant.own_namespace))
        if parent is None:
            self._block(ParentNamespaceMissing(object=tenant.ref, missing=tenant.namespace))
            return
        if self._is_refused(tenant, parent, live):
            return
        found = self._values_for(tenant)
        if found is not None:
            self._values[tenant.own_namespace] = found
            self._write(tenant, policy, parent, live, found)

    def _is_refused(self, tenant: Tenant, parent: Namespace, live: Namespace | None) -> bool:
        """Block the tenant if its own or its parent's Namespace belongs to another object or is terminating."""
        ref, above = tenant.ref, self._policies[tenant.namespace].tenant
        if above is not None and not belongs_to(parent, above):
            self._block(ParentNamespaceForeign(object=ref, missing=tenant.namespace))
        elif is_terminating(parent):
            self._block(NamespaceTerminating(object=ref, terminating=tenant.namespace))
        elif live is not None and not belongs_to(live, tenant):
            self._block(NamespaceConflict(object=ref, of=owner_uid(live)))
        elif live is not None and is_terminating(live):
            self._block(NamespaceTerminating(object=ref, terminating=tenant.own_namespace))
        else:
            return False
        return True

    def _values_for(self, tenant: Tenant) -> Values | None:
        """Return the values of the tenant; block it and return None if they cannot be computed."""
        try:
            found = (
                self._root_values(tenant)
                if is_top(tenant)
                else values.child_values(tenant, self._values_in(tenant.namespace))
            )
        except ValuesError as error:
            self._block(BadParentValues(object=tenant.ref, of=self._source(tenant), error=str(error)))
            return None
        host = found.namespace[values.HOST]
        if errors := values.host_faults(host):
            is_own = host == tenant.spec.host
            self._block(BadHost(object=tenant.ref, host=host, errors=errors, is_own=is_own))
            return None
        return found

    def _values_in(self, namespace: str) -> Values:
        known = self._values.get(namespace)
        if known is not None:
            return known
        secret = self._snapshot.values.get(namespace)
        if namespace == names.TENANT_ROOT:
            found = self._root_values(None)
        elif secret is None:
            raise ValuesError("there is no such Secret")
        else:
            found = values.read(secret)
        self._values[namespace] = found
        return found

    def _root_values(self, tenant: Tenant | None) -> Values:
        given = self._snapshot.values
        return values.root_values(tenant, given.get(names.TENANT_ROOT), given.get(names.PLATFORM_NAMESPACE))

    def _source(self, tenant: Tenant) -> str:
        """Return the namespace of the Secret that the tenant's values are rendered from."""
        has_platform = names.PLATFORM_NAMESPACE in self._snapshot.values
        return names.PLATFORM_NAMESPACE if is_top(tenant) and has_platform else tenant.namespace

    def _write(
        self, tenant: Tenant, policy: EffectivePolicy, parent: Namespace, live: Namespace | None, found: Values
    ) -> None:
        message = FinalizerAdded(object=tenant.ref, finalizer=names.TENANT_FINALIZER)
        finalizer_added = finalizers.add(self._builder, tenant.ref, tenant.metadata, names.TENANT_FINALIZER, message)
        made = self._apply_namespace(tenant, live, namespace_of(tenant, found, parent), finalizer_added)
        self._apply_values(tenant, values.render(found, policy), made or finalizer_added)

    def _apply_namespace(self, tenant: Tenant, live: Namespace | None, body: Object, first: str) -> str:
        before = None if live is None else as_object(live)
        after = body if before is None else merge_fields(before, body)
        if after is before:
            return ""
        return self._builder.act(
            Verb.APPLY,
            namespace_ref(tenant.own_namespace, live),
            NamespaceApplied(object=tenant.ref),
            # The cache may be stale: do not take over a Namespace that somebody else has just created.
            Write(body=body, is_first=live is None),
            diff=diff(before, after),
            after=(first,),
        )

    def _apply_values(self, tenant: Tenant, text: str, first: str) -> None:
        found = self._snapshot.values.get(tenant.own_namespace)
        # List items have no kind, and the diff conceals data only for the kind Secret.
        live = None if found is None else {**found, "apiVersion": values.API_VERSION, "kind": values.KIND}
        body = values.secret_of(tenant.own_namespace, text)
        after = body if live is None else preview_apply(live, body, names.MANAGER)
        if after is live:
            return
        self._builder.act(
            Verb.APPLY,
            values.secret_ref(tenant.own_namespace, live),
            ValuesApplied(object=tenant.ref),
            Write(body=body),
            diff=diff(live, after),
            after=(first,),
        )

    # deletion

    def _plan_deletion(self, tenant: Tenant) -> None:
        if names.TENANT_FINALIZER not in tenant.metadata.finalizers:
            return
        ref, own = tenant.ref, tenant.own_namespace
        live = self._snapshot.namespaces.get(own)
        children, applications = sorted(self._children.get(own, ())), self._snapshot.applications.get(own, 0)
        if live is None or not belongs_to(live, tenant):
            self._remove_finalizer(tenant)
        elif children or applications:
            self._block(TenantInUse(object=ref, children=children, applications=applications))
        elif self._snapshot.watch_error:
            self._block(ContentsUnknown(object=ref, error=self._snapshot.watch_error))
        elif is_top(tenant):
            # The Namespace belongs to the platform and contains the Tenant itself.
            self._remove_finalizer(tenant)
        elif is_terminating(live):
            self._block(NamespaceTerminating(object=ref, terminating=own))
        else:
            left = self._snapshot.left.get(own, {})
            self._builder.act(
                Verb.DELETE,
                namespace_ref(own, live),
                NamespaceDeleted(object=ref, left=left),
                # Optimistic locking: a Namespace that somebody took over meanwhile is not deleted.
                Write(resource_version=live.metadata.resource_version),
                disruption=Disruption.DELETES,
                approval_group=_deletion_group(live, left),
                # The contents cannot be restored, and the user who deleted the Tenant may not know of them.
                always_asks=bool(left),
            )

    def _remove_finalizer(self, tenant: Tenant) -> None:
        message = FinalizerRemoved(object=tenant.ref, finalizer=names.TENANT_FINALIZER)
        finalizers.remove(self._builder, tenant.ref, tenant.metadata, names.TENANT_FINALIZER, message)


def _deletion_group(namespace: Namespace, left: Mapping[str, int]) -> str:
    """Return the approval group of a deletion. It names the contents: what is created after they were read needs
    another approval."""
    counts = ",".join(f"{kind}={number}" for kind, number in sorted(left.items()))
    return f"namespace/{namespace.metadata.uid}/{counts}"


# the Namespace


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
