"""Texts about tenants name the object, the fault and the remedy."""

import pytest
from tests.builders.tenants import tenant

from nodeyard.capabilities.affinity.messages.tenants import (
    BadParentValues,
    DefaultNotAllowed,
    NamespaceConflict,
    NamespaceHeld,
    NotAllowedByParent,
    ParentNamespaceForeign,
    TenantInUse,
)

WEB = tenant("acme/web").ref


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            NotAllowedByParent(object=WEB, classes=("gpu",), parent="tenant-acme", allowed=()),
            "spec.allowedAffinityClasses of Tenant tenant-acme/web has gpu, but its parent tenant-acme allows no "
            "class. Remove it, or allow it in the parent first",
        ),
        (
            DefaultNotAllowed(object=WEB, default="gpu", allowed=(), source="tenant-acme-web"),
            "The default class gpu of Tenant tenant-acme/web is not allowed: no class is. Set "
            'spec.defaultAffinityClass to "" for none; until then applications that name no class are rejected',
        ),
        (
            ParentNamespaceForeign(object=WEB, missing="tenant-acme"),
            "Tenant tenant-acme/web has no parent: namespace tenant-acme was not created for the Tenant of its name",
        ),
        (
            NamespaceConflict(object=WEB, of="u-9"),
            "Namespace tenant-acme-web already exists and belongs to the Tenant with uid u-9, so Tenant "
            "tenant-acme/web does not use it. Delete it, choose another name, or hand it over: kubectl annotate "
            "--overwrite namespace tenant-acme-web nodeyard.dev/tenant=uid-acme/web",
        ),
        (
            TenantInUse(object=WEB, children=[f"t{number}" for number in range(12)], applications=1),
            "Tenant tenant-acme/web is in use by 12 tenants (t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more) and 1 "
            "application in tenant-acme-web: delete them first",
        ),
        (
            BadParentValues(object=WEB, of="tenant-acme", error="it is not a mapping"),
            "Secret tenant-acme-web/cozystack-values is not updated: values.yaml of its source, Secret "
            "tenant-acme/cozystack-values, cannot be read: it is not a mapping",
        ),
        (
            NamespaceHeld(object=WEB, left={"PersistentVolumeClaim": 1}, id="3f2a"),
            "Deletion of Tenant tenant-acme/web waits for approval: it deletes Namespace tenant-acme-web with "
            "1 PersistentVolumeClaim and everything else in it (Secrets and other kinds are not counted). To proceed, "
            "delete what is counted, or run `nodeyard approve 3f2a`",
        ),
    ],
    ids=lambda each: "" if isinstance(each, str) else each.reason,
)
def test_it_reads_as_it_should(message, said):
    assert message.text() == said
