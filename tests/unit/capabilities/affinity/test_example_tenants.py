"""The example's classes, tenants and applications equal those of the design, without faults."""

from pathlib import Path

import msgspec
import yaml
from tests.builders.tenants import namespace, planned, settled, snapshot

from nodeyard.capabilities.affinity.types import AffinityClass, Tenant

FOLDER = Path(__file__).parents[4] / "examples" / "03-affinity"


def documents(name):
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


def test_the_classes_are_the_designs():
    found = {each["metadata"]["name"]: each["spec"]["nodeSelector"] for each in documents("classes")}
    assert found == {
        "dc1": {"topology.kubernetes.io/zone": "dc1"},
        "dc2": {"topology.kubernetes.io/zone": "dc2"},
        "gpu": {"node.kubernetes.io/gpu": "true"},
    }
    assert all(msgspec.convert(each, AffinityClass, strict=True) for each in documents("classes"))


def test_the_tenant_is_the_designs():
    acme = next(each for each in documents("tenants") if each["metadata"]["name"] == "acme")
    assert acme == {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": "acme", "namespace": "tenant-root"},
        "spec": {
            "defaultAffinityClass": "dc1",
            "allowedAffinityClasses": ["dc1", "dc2"],
            "etcd": False,
            "ingress": True,
            "monitoring": False,
        },
    }


def test_the_applications_are_the_designs():
    assert [(each["kind"], each["metadata"]["name"], each["spec"]) for each in documents("applications")] == [
        ("Postgres", "main-db", {"affinityClass": "dc1", "replicas": 3}),
        ("Redis", "cache", {"replicas": 2}),
    ]


def test_the_tenants_converge_with_nothing_refused():
    bodies = [each for each in documents("tenants") if each["kind"] == "Tenant"]
    tenants = [msgspec.convert(each, Tenant) for each in bodies]
    classes = frozenset(each["metadata"]["name"] for each in documents("classes"))
    world = snapshot(*map(with_uid, tenants), classes=classes, namespaces=[namespace("tenant-root")])
    served = settled(world)
    assert set(served.namespaces) == {"tenant-root", "tenant-acme", "tenant-acme-web"}
    assert planned(served).plan.blocked == ()


def with_uid(tenant):
    metadata = msgspec.structs.replace(tenant.metadata, uid=f"uid-{tenant.name}")
    return msgspec.structs.replace(tenant, metadata=metadata)
