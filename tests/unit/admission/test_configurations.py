"""Webhook configurations, and when they must be written again."""

import pytest
from tests.builders import labels
from tests.builders.rule_webhooks import GUARDED, complete, guarded, mutating, validating

from nodeyard.admission.client_config import ByUrl
from nodeyard.admission.configurations import MUTATING, VALIDATING, bundles, configuration, drift
from nodeyard.runtime.webhooks import MatchCondition, Webhook, WebhookRule, allowed

REACH = ByUrl("https://127.0.0.1:9443")


def wanted(capability=GUARDED, resource=VALIDATING, bundle=b"ca"):
    return configuration(resource, capability, REACH, bundle)


def entry(webhook):
    (found,) = wanted(guarded(webhook), MUTATING if webhook.mutates else VALIDATING)["webhooks"]
    return found


def test_each_kind_has_its_own_webhooks():
    assert [each["name"] for each in wanted()["webhooks"]] == ["rules.labels.nodeyard.dev"]
    (mutating_entry,) = wanted(resource=MUTATING)["webhooks"]
    assert mutating_entry["name"] == "teams.labels.nodeyard.dev"
    assert mutating_entry["clientConfig"]["url"] == "https://127.0.0.1:9443/mutate/labels/teams"
    assert mutating_entry["reinvocationPolicy"] == "Never"


def test_system_namespaces_are_excluded_in_addition_to_the_webhooks_selector():
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}

    shown = entry(validating(namespace_selector=selector))["namespaceSelector"]

    assert shown["matchLabels"] == {"a": "b"}
    assert [each["operator"] for each in shown["matchExpressions"]] == ["Exists", "NotIn"]


def test_own_writes_are_left_out_unless_asked_for():
    condition = MatchCondition("mine", "true")

    assert [each["name"] for each in entry(validating(match_conditions=(condition,)))["matchConditions"]] == [
        "not-by-nodeyard",
        "mine",
    ]
    assert entry(validating(sees_own_writes=True))["matchConditions"] == []


@pytest.mark.parametrize(
    ("group", "resources"),
    [
        ("*", ("pods",)),
        ("", ("*",)),
        ("", ("*/status",)),
        ("apps", ("*",)),
        ("rbac.authorization.k8s.io", ("*",)),
        ("coordination.k8s.io", ("leases",)),
    ],
    ids=["every-group", "every-resource", "every-status", "every-workload", "every-role", "leases"],
)
def test_rules_that_could_block_the_whole_cluster_are_refused(group, resources):
    with pytest.raises(ValueError, match="must name its groups|must not intercept leases"):
        WebhookRule(group, resources)


@pytest.mark.parametrize("group", ["apps.cozystack.io", "cluster.x-k8s.io"])
def test_all_resources_of_a_group_that_is_not_built_in_can_be_declared(group):
    webhook = Webhook("all", rules=(WebhookRule(group, ("*",)),), review=complete)

    assert entry(webhook)["rules"] == [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["*"],
            "scope": "*",
        }
    ]


@pytest.mark.parametrize("options", [{"name": "Not A Name"}, {"timeout_seconds": 31}, {"timeout_seconds": 0}], ids=str)
def test_declarations_that_the_api_server_would_refuse_are_refused(options):
    with pytest.raises(ValueError, match="webhook "):
        Webhook(**{"name": "a", "rules": (), "review": complete, **options})


def test_an_unchanged_configuration_is_not_written():
    assert drift(wanted(), wanted()) == ""


def test_a_missing_configuration_is_created_unless_it_would_be_empty():
    assert drift(wanted(), None) == "missing"
    assert drift(wanted(guarded(mutating())), None) == ""


def change(**fields):
    there = wanted()
    return {**there, "webhooks": [{**there["webhooks"][0], **fields}]}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"failurePolicy": "Fail"}, "failurePolicy differs"),
        ({"timeoutSeconds": 30}, "timeoutSeconds differs"),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, "objectSelector differs"),
        ({"namespaceSelector": {}}, "namespaceSelector differs"),
        ({"rules": []}, "rules differs"),
        ({"matchConditions": None}, "matchConditions differs"),
        ({"clientConfig": {"url": "https://elsewhere"}}, "clientConfig differs"),
        ({"clientConfig": None}, "clientConfig differs"),
        ({"name": "gone.labels.nodeyard.dev"}, "gone.labels.nodeyard.dev is obsolete"),
    ],
)
def test_a_changed_field_is_found(fields, reason):
    assert drift(wanted(), change(**fields)).endswith(reason)


def test_webhooks_that_others_add_are_theirs():
    there = change()
    there["webhooks"].append({"name": "other.example.com"})

    assert drift(wanted(), there) == ""


def test_a_condition_added_to_a_webhook_of_ours_is_found():
    conditions = [*wanted()["webhooks"][0]["matchConditions"], {"name": "never", "expression": "false"}]

    assert drift(wanted(), change(matchConditions=conditions)).endswith("matchConditions differs")


def test_an_empty_selector_that_the_server_leaves_out_is_no_drift():
    there = change()
    del there["webhooks"][0]["objectSelector"]

    assert drift(wanted(), there) == ""


def test_bundles_are_those_of_our_own_webhooks():
    there = wanted(bundle=b"ours")
    there["webhooks"].append({"name": "other.example.com", "clientConfig": {"caBundle": "b3RoZXI="}})

    assert bundles([there], "labels") == [b"ours"]
    assert bundles([there], "other") == []
    assert bundles([change(clientConfig={"caBundle": "%"})], "labels") == [b""]


def test_a_webhook_says_where_it_is():
    webhook = Webhook("a", rules=(WebhookRule(labels.GROUP, ("labelrules",)),), review=lambda _review, _view: allowed())

    assert (webhook.full_name("pools"), webhook.path("pools")) == ("a.pools.nodeyard.dev", "/validate/pools/a")
