"""Registration of the webhooks: which requests they see, and which ones fail if a webhook does not answer."""

import pytest

from nodeyard.admission.client_config import ByUrl
from nodeyard.admission.configurations import MUTATING, VALIDATING, configuration
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.webhook import WEBHOOKS
from nodeyard.runtime.capability import Admission, Capability, Report

AFFINITY = Capability(
    name=names.CAPABILITY,
    kinds=(),
    watches=(),
    all_keys=lambda _view: (),
    collect=lambda _view, _key, _now: None,
    plan=lambda _snapshot, _now, _refs: None,
    report=lambda *_: Report(),
    rbac=(),
    admission=Admission(WEBHOOKS),
)


@pytest.fixture
def entries():
    reach = ByUrl("https://127.0.0.1:9443")
    return {
        entry["name"].partition(".")[0]: entry
        for resource in (MUTATING, VALIDATING)
        for entry in configuration(resource, AFFINITY, reach, b"ca")["webhooks"]
    }


def values(entry, key):
    expressions = entry["namespaceSelector"]["matchExpressions"]
    return {value for each in expressions if each["key"] == key for value in each["values"]}


def test_only_new_pods_of_tenants_are_denied_while_no_webhook_responds(entries):
    assert {name for name, entry in entries.items() if entry["failurePolicy"] == "Fail"} == {
        "lineage-tenants",
        "placement-tenants",
        "records",
    }
    for name in ("lineage-tenants", "placement-tenants"):
        assert entries[name]["rules"][0]["operations"] == ["CREATE"]
        assert [each["expression"] for each in entries[name]["matchConditions"]] == [
            "request.namespace.startsWith('tenant-')"
        ]


@pytest.mark.parametrize(
    "name", ["lineage", "lineage-tenants", "lineage-updates", "placement", "placement-tenants", "workloads"]
)
def test_system_namespaces_and_ours_are_never_matched(entries, name):
    entry = entries[name]

    assert values(entry, "kubernetes.io/metadata.name") >= {
        "kube-system",
        "kube-node-lease",
        "default",
        "nodeyard-system",
    }
    assert values(entry, names.SYSTEM_NAMESPACE) == {"true"}
    assert entry["objectSelector"] == {}
    assert entry["timeoutSeconds"] <= 3


def test_one_entry_of_each_pair_reviews_a_pod(entries):
    for name in ("lineage", "placement"):
        conditions = [entries[each]["matchConditions"][0]["expression"] for each in (name, f"{name}-tenants")]
        assert conditions[0] == f"!{conditions[1]}"


def test_pods_are_changed_only_by_the_mutating_webhooks_and_checked_when_they_are_final(entries):
    assert {name for name, entry in entries.items() if "reinvocationPolicy" in entry} == {
        "lineage",
        "lineage-tenants",
        "lineage-updates",
        "records",
    }


def test_applications_of_any_kind_are_matched_by_a_webhook_without_tenants(entries):
    assert entries["applications"]["rules"][0]["resources"] == ["*"]
    assert entries["applications"]["rules"][0]["apiGroups"] == [names.APPS_GROUP]
    assert entries["applications"]["matchConditions"][-1]["expression"] == "request.resource.resource != 'tenants'"
    assert entries["tenants"]["rules"][0]["resources"] == ["tenants"]


def test_protected_deletions_are_matched(entries):
    for name in ("classes", "definitions", "tenants"):
        assert "DELETE" in entries[name]["rules"][0]["operations"]
