"""Names of tenants and of their namespaces."""

import pytest

from nodeyard.capabilities.affinity.names import tenant_namespace
from nodeyard.capabilities.affinity.planning.inheritance import lineage, name_faults, parent_of

LONG = "a" * 46


@pytest.mark.parametrize(
    ("namespace", "name", "fault"),
    [
        ("tenant-root", "a-b", "must match ^[a-z][a-z0-9]*$"),
        ("tenant-root", "9a", "must match"),
        ("tenant-root", "Acme", "must match"),
        ("tenant-root", "acme\n", "must match"),
        ("tenant-root", "", "must match"),
        ("tenant-root", LONG + "a", "no more than 46 characters"),
        (f"tenant-{LONG}", "abcdefghij", "more than 63 characters"),
        ("default", "acme", "belongs to no tenant"),
        ("tenant", "acme", "belongs to no tenant"),
        ("tenant-", "acme", "belongs to no tenant"),
    ],
)
def test_a_bad_name_or_namespace_is_reported(namespace, name, fault):
    assert fault in "; ".join(name_faults(namespace, name))


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("tenant-root", "root"), ("tenant-root", LONG), (f"tenant-{LONG}", "abcdefghi"), ("tenant-a-b", "c9")],
)
def test_a_good_name_passes_up_to_the_limits(namespace, name):
    assert name_faults(namespace, name) == []


@pytest.mark.parametrize("place", [("tenant-root", "root"), ("tenant-root", "acme"), ("tenant-acme", "web")])
def test_the_parent_of_a_tenant_is_read_off_its_namespace(place):
    assert parent_of(tenant_namespace(*place)) == place


def test_the_ancestors_of_a_namespace_are_read_off_its_name():
    assert list(lineage("tenant-a-b-c")) == ["tenant-a-b-c", "tenant-a-b", "tenant-a", "tenant-root"]
    assert list(lineage("tenant-root")) == ["tenant-root"]
