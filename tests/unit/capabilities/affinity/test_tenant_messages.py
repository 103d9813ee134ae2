"""Texts about tenants name the object, the fault and the remedy."""

import pytest
from tests.builders.tenants import tenant

from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.messages.tenants import MESSAGES
from nodeyard.capabilities.affinity.planning.naming import tenant_facts
from nodeyard.capabilities.affinity.reasons import Reason

FACTS = tenant_facts(tenant("acme/web"))


@pytest.mark.parametrize("reason", MESSAGES, ids=str)
def test_every_text_names_the_tenant_whatever_the_facts(reason):
    assert "web" in text(reason, FACTS)


@pytest.mark.parametrize(
    ("reason", "facts", "said"),
    [
        (
            Reason.NOT_IN_PARENT,
            {"classes": ["gpu"], "parent": "tenant-acme", "allowed": []},
            "spec.allowedAffinityClasses of Tenant tenant-acme/web has gpu, but its parent tenant-acme allows no "
            "class. Remove it, or allow it in the parent first",
        ),
        (
            Reason.DEFAULT_NOT_ALLOWED,
            {"default": "gpu", "allowed": [], "source": "tenant-acme-web"},
            "The default class gpu of Tenant tenant-acme/web is not allowed: no class is. Set "
            'spec.defaultAffinityClass to "" for none; until then applications that name no class are rejected',
        ),
        (
            Reason.PARENT_MISSING,
            {"missing": "tenant-acme", "why": "foreign"},
            "Tenant tenant-acme/web has no parent: namespace tenant-acme was not created for the Tenant of its name",
        ),
        (
            Reason.NAME_CONFLICT,
            {"of": "u-9", "uid": "u-1"},
            "Namespace tenant-acme-web already exists and belongs to the Tenant with uid u-9, so Tenant "
            "tenant-acme/web does not use it. Delete it, choose another name, or hand it over: kubectl annotate "
            "--overwrite namespace tenant-acme-web nodeyard.dev/tenant=u-1",
        ),
        (
            Reason.TENANT_IN_USE,
            {"children": [f"t{number}" for number in range(12)], "applications": 1},
            "Tenant tenant-acme/web is in use by 12 tenants (t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more) and 1 "
            "application in tenant-acme-web: delete them first",
        ),
        (
            Reason.BAD_VALUES,
            {"of": "tenant-acme", "error": "it is not a mapping"},
            "Secret tenant-acme-web/cozystack-values is not updated: values.yaml of its source, Secret "
            "tenant-acme/cozystack-values, cannot be read: it is not a mapping",
        ),
    ],
)
def test_it_reads_as_it_should(reason, facts, said):
    assert text(reason, {**FACTS, **facts}) == said


def test_a_shared_reason_renders_for_the_object_in_its_facts():
    tenants = text(Reason.CLASS_MISSING, {**FACTS, "classes": ["dc9"]})
    applications = text(Reason.CLASS_MISSING, {"kind": "Redis", "namespace": "n", "name": "cache", "class": "dc9"})
    assert tenants.startswith("Tenant tenant-acme/web names AffinityClass dc9")
    assert applications.startswith('AffinityClass "dc9" not found')
