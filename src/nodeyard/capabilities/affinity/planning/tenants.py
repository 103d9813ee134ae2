"""All Tenants, planned together, parents first: each is given its Namespace, and in it the values that charts read.

    nothing is written    for a tenant that is paused, is called wrongly, has no parent or another's Namespace; nor
                          while what its values are made from cannot be read. It keeps what it has
    classes               that a tenant may not name are refused one by one; what is left is in effect
    a tenant goes         when nothing in its Namespace is in use: first the Namespace that we made, then the Tenant

A child's values are made from what its parent's are about to be, so that a change reaches the whole tree at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning import finalizers, values
from nodeyard.capabilities.affinity.planning.inheritance import standings
from nodeyard.capabilities.affinity.planning.namespaces import (
    as_object,
    holder,
    is_going,
    is_held,
    namespace_of,
    namespace_ref,
)
from nodeyard.capabilities.affinity.planning.naming import is_top, name_faults, tenant_facts, tenant_ref
from nodeyard.capabilities.affinity.planning.values import Values, ValuesError
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import Standing, TenantsSnapshot
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace
from nodeyard.plan.applied import applied
from nodeyard.plan.diff import diff
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Verb, Write
from nodeyard.plan.owned import outcome


def plan_tenants(draft: Draft, snapshot: TenantsSnapshot) -> None:
    tree = _Tree(draft, snapshot)
    # A parent's namespace begins its children's; the top is called otherwise.
    for tenant in sorted(snapshot.tenants, key=lambda each: (not is_top(each), each.own_namespace, each.name)):
        tree.plan(tenant)


class _Tree:
    """One pass over the tenants, with what is decided so far."""

    def __init__(self, draft: Draft, snapshot: TenantsSnapshot) -> None:
        self._draft = draft
        self._snapshot = snapshot
        self._standings = standings(snapshot.tenants, snapshot.classes)
        self._values: dict[str, Values] = {}
        """By namespace: as this plan leaves them."""
        self._children: dict[str, list[str]] = {}
        for each in snapshot.tenants:
            if not is_top(each):
                self._children.setdefault(each.namespace, []).append(each.name)

    def plan(self, tenant: Tenant) -> None:
        if self._snapshot.is_served_elsewhere:
            self._block(tenant, Reason.SERVED_ELSEWHERE)
        elif tenant.is_paused:
            self._block(tenant, Reason.PAUSED)
        elif tenant.is_deleting:
            self._withdraw(tenant)
        elif errors := name_faults(tenant.namespace, tenant.name):
            self._block(tenant, Reason.BAD_NAME, errors=errors)
        else:
            self._serve(tenant, self._standings[tenant.own_namespace])

    def _block(self, tenant: Tenant, reason: Reason, **facts: object) -> None:
        self._draft.block(tenant_ref(tenant), reason, tenant_facts(tenant, **facts))

    # while it is there

    def _serve(self, tenant: Tenant, standing: Standing) -> None:
        for fault in standing.faults:
            self._draft.block(tenant_ref(tenant), fault.reason, fault.facts)
        if any(fault.reason is Reason.PARENT_MISSING for fault in standing.faults):
            return
        parent, live = (self._snapshot.namespaces.get(each) for each in (tenant.namespace, tenant.own_namespace))
        if parent is None:
            self._block(tenant, Reason.PARENT_MISSING, missing=tenant.namespace, why="gone")
            return
        if self._is_refused(tenant, parent, live):
            return
        found = self._values_for(tenant)
        if found is not None:
            self._values[tenant.own_namespace] = found
            self._write(tenant, standing, parent, live, found)

    def _is_refused(self, tenant: Tenant, parent: Namespace, live: Namespace | None) -> bool:
        """Whether the Namespaces around it are not what they should be."""
        above = self._standings[tenant.namespace].tenant
        if above is not None and not is_held(parent, above):
            self._block(tenant, Reason.PARENT_MISSING, missing=tenant.namespace, why="foreign")
        elif is_going(parent):
            self._block(tenant, Reason.NAMESPACE_GOING, going=tenant.namespace)
        elif live is not None and not is_held(live, tenant):
            self._block(tenant, Reason.NAME_CONFLICT, of=holder(live), uid=tenant.metadata.uid)
        elif live is not None and is_going(live):
            self._block(tenant, Reason.NAMESPACE_GOING, going=tenant.own_namespace)
        else:
            return False
        return True

    def _values_for(self, tenant: Tenant) -> Values | None:
        """What its Secret shall say; None, and said why, where that cannot be told."""
        try:
            found = self._top(tenant) if is_top(tenant) else values.below(tenant, self._values_in(tenant.namespace))
        except ValuesError as error:
            self._block(tenant, Reason.BAD_VALUES, of=self._source(tenant), error=str(error))
            return None
        host = found.namespace[values.HOST]
        if errors := values.host_faults(host):
            is_own = host == tenant.spec.host
            self._block(tenant, Reason.BAD_HOST, host=host, errors=errors, is_own=is_own)
            return None
        return found

    def _values_in(self, namespace: str) -> Values:
        known = self._values.get(namespace)
        if known is not None:
            return known
        secret = self._snapshot.values.get(namespace)
        if namespace == names.TENANT_ROOT:
            found = self._top(None)
        elif secret is None:
            raise ValuesError("there is no such Secret")
        else:
            found = values.read(secret)
        self._values[namespace] = found
        return found

    def _top(self, tenant: Tenant | None) -> Values:
        given = self._snapshot.values
        return values.top(tenant, given.get(names.TENANT_ROOT), given.get(names.PLATFORM_NAMESPACE))

    def _source(self, tenant: Tenant) -> str:
        """The namespace whose Secret its own is made from."""
        has_platform = names.PLATFORM_NAMESPACE in self._snapshot.values
        return names.PLATFORM_NAMESPACE if is_top(tenant) and has_platform else tenant.namespace

    def _write(
        self, tenant: Tenant, standing: Standing, parent: Namespace, live: Namespace | None, found: Values
    ) -> None:
        facts = tenant_facts(tenant)
        guarded = finalizers.add(self._draft, tenant_ref(tenant), tenant.metadata, names.TENANT_FINALIZER, facts)
        made = self._apply_namespace(tenant, live, namespace_of(tenant, found, parent), guarded)
        self._apply_values(tenant, values.render(found, standing), made or guarded)

    def _apply_namespace(self, tenant: Tenant, live: Namespace | None, body: Object, first: str) -> str:
        before = None if live is None else as_object(live)
        after = body if before is None else applied(before, body)
        if after is before:
            return ""
        return self._draft.act(
            Verb.APPLY,
            namespace_ref(tenant.own_namespace, live),
            Reason.NAMESPACE_APPLIED,
            tenant_facts(tenant),
            # One that somebody else has made a moment ago, which we have not heard of, is not taken from them.
            Write(body=body, is_first=live is None),
            diff=diff(before, after),
            after=(first,),
        )

    def _apply_values(self, tenant: Tenant, text: str, first: str) -> None:
        found = self._snapshot.values.get(tenant.own_namespace)
        # Items of a list do not say what they are, and what is no Secret would be shown in the clear.
        live = None if found is None else {**found, "apiVersion": values.API_VERSION, "kind": values.KIND}
        body = values.secret_of(tenant.own_namespace, text)
        after = body if live is None else outcome(live, body, names.MANAGER)
        if after is live:
            return
        self._draft.act(
            Verb.APPLY,
            values.secret_ref(tenant.own_namespace, live),
            Reason.VALUES_APPLIED,
            tenant_facts(tenant),
            Write(body=body),
            diff=diff(live, after),
            after=(first,),
        )

    # when it goes

    def _withdraw(self, tenant: Tenant) -> None:
        if names.TENANT_FINALIZER not in tenant.metadata.finalizers:
            return
        own, facts = tenant.own_namespace, tenant_facts(tenant)
        live = self._snapshot.namespaces.get(own)
        if live is None or not is_held(live, tenant):
            finalizers.remove(self._draft, tenant_ref(tenant), tenant.metadata, names.TENANT_FINALIZER, facts)
        elif is_used := self._users(own):
            children, applications = is_used
            self._block(tenant, Reason.TENANT_IN_USE, children=list(children), applications=applications)
        elif self._snapshot.trouble:
            self._block(tenant, Reason.UNWATCHED, error=self._snapshot.trouble)
        elif is_top(tenant):
            # Its Namespace is not of our making, and it lives in it.
            finalizers.remove(self._draft, tenant_ref(tenant), tenant.metadata, names.TENANT_FINALIZER, facts)
        elif is_going(live):
            self._block(tenant, Reason.NAMESPACE_GOING, going=own)
        else:
            self._draft.act(
                Verb.DELETE,
                namespace_ref(own, live),
                Reason.NAMESPACE_DELETED,
                facts,
                # Bound to what was looked at: whoever has taken it over meanwhile keeps it.
                Write(resource_version=live.metadata.resource_version),
            )

    def _users(self, namespace: str) -> tuple[Sequence[str], int] | None:
        """The tenants in it, and how many applications; None where there are neither."""
        children = sorted(self._children.get(namespace, ()))
        applications = self._snapshot.applications.get(namespace, 0)
        return (children, applications) if children or applications else None
