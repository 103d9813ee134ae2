"""What is said about tenants names the object, what is wrong, and what to do."""

import pytest
from tests.builders.tenants import tenant

from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.planning.naming import tenant_facts
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.sentences.tenants import SENTENCES

FACTS = tenant_facts(tenant("acme/web"))


@pytest.mark.parametrize("reason", SENTENCES, ids=str)
def test_every_sentence_is_told_of_a_tenant_whatever_is_known_of_it(reason):
    assert "web" in text(reason, FACTS)


@pytest.mark.parametrize(
    ("reason", "facts", "said"),
    [
        (
            Reason.NOT_IN_PARENT,
            {"classes": ["gpu"], "parent": "tenant-acme", "allowed": []},
            "spec.allowedAffinityClasses of Tenant tenant-acme/web has gpu, but its parent tenant-acme allows no "
            "class. Take it out, or have it allowed there first",
        ),
        (
            Reason.DEFAULT_NOT_ALLOWED,
            {"default": "gpu", "allowed": [], "source": "tenant-acme-web"},
            "The default class gpu of Tenant tenant-acme/web is not allowed: no class is. Set "
            'spec.defaultAffinityClass to "" for none; until then applications that name no class are refused',
        ),
        (
            Reason.PARENT_MISSING,
            {"missing": "tenant-acme", "why": "foreign"},
            "Tenant tenant-acme/web has no parent: the namespace tenant-acme was not made for the Tenant of its name",
        ),
        (
            Reason.NAME_CONFLICT,
            {"of": "u-9", "uid": "u-1"},
            "Namespace tenant-acme-web exists and is of the Tenant with uid u-9, so Tenant tenant-acme/web leaves it "
            "alone. Delete it, choose another name, or hand it over: kubectl annotate --overwrite namespace "
            "tenant-acme-web nodeyard.dev/tenant=u-1",
        ),
        (
            Reason.TENANT_IN_USE,
            {"children": [f"t{number}" for number in range(12)], "applications": 1},
            "Tenant tenant-acme/web is in use by 12 tenants (t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more) and 1 "
            "application in tenant-acme-web: delete these first",
        ),
        (
            Reason.BAD_VALUES,
            {"of": "tenant-acme", "error": "it is not a mapping"},
            "Secret tenant-acme-web/cozystack-values stays as it is: values.yaml of Secret "
            "tenant-acme/cozystack-values, which it is made from, cannot be read: it is not a mapping",
        ),
    ],
)
def test_it_reads_as_it_should(reason, facts, said):
    assert text(reason, {**FACTS, **facts}) == said


def test_what_tenants_and_applications_have_in_common_is_told_of_whom_it_is_about():
    tenants = text(Reason.CLASS_MISSING, {**FACTS, "classes": ["dc9"]})
    applications = text(Reason.CLASS_MISSING, {"kind": "Redis", "namespace": "n", "name": "cache", "class": "dc9"})
    assert tenants.startswith("Tenant tenant-acme/web names AffinityClass dc9")
    assert applications.startswith('AffinityClass "dc9" not found')
