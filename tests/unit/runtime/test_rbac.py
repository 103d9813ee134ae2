"""RBAC rules generated from a capability."""

from dataclasses import replace

import pytest
from tests.builders import labels
from tests.builders.declared_kinds import BADGES
from tests.builders.rule_webhooks import GUARDED, guarded, mutating, validating

from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Rule


@pytest.mark.parametrize("mutates", [False, True])
def test_webhooks_bring_the_right_to_register_them_and_no_others(mutates):
    capability = guarded(mutating() if mutates else validating())
    made = "mutatingwebhookconfigurations" if mutates else "validatingwebhookconfigurations"
    configurations = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]
    group, name = ["admissionregistration.k8s.io"], ["nodeyard-labels"]

    added = [rule for rule in rbac.rules(capability) if rule not in rbac.rules(labels.LABELS)]

    assert added == [
        {"apiGroups": group, "resources": configurations, "verbs": ["get", "patch"], "resourceNames": name},
        {"apiGroups": group, "resources": [made], "verbs": ["create"], "resourceNames": name},
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["clusterroles"],
            "verbs": ["get"],
            "resourceNames": ["nodeyard-labels-webhooks"],
        },
    ]


def test_the_right_to_register_webhooks_is_in_a_role_of_its_own():
    role, binding = [each for each in rbac.manifests(GUARDED) if each["metadata"]["name"] == "nodeyard-labels-webhooks"]

    assert role["kind"] == binding["roleRef"]["kind"] == "ClusterRole"
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert role["rules"] == [rule for rule in rbac.rules(GUARDED) if rule not in rbac.rules(labels.LABELS)]
    other = rbac.roles(GUARDED, "nodeyard-labels")[0]
    assert other["rules"] == rbac.rules(labels.LABELS)
    assert not rbac.registering_roles(labels.LABELS, "nodeyard-labels")


def test_webhooks_bring_the_right_to_one_secret_of_our_own_namespace():
    added = [rule for rule in rbac.local_rules(GUARDED) if rule not in rbac.local_rules(labels.LABELS)]

    assert {verb: rule.get("resourceNames") for rule in added for verb in rule["verbs"]} == {
        "get": ["nodeyard-webhook-certificates"],
        "update": ["nodeyard-webhook-certificates"],
        "create": None,
    }


def test_rights_on_declared_kinds_are_gathered_by_a_label_and_bound_to_the_same_account():
    before = rbac.manifests(replace(BADGES, dynamic=None))

    role, binding = [each for each in rbac.manifests(BADGES) if each not in before]

    assert role["metadata"]["name"] == binding["roleRef"]["name"] == "nodeyard-badges-declared"
    (selector,) = role["aggregationRule"]["clusterRoleSelectors"]
    assert selector == {"matchLabels": {"rbac.nodeyard.dev/aggregate-to-badges": "true"}}
    assert "rules" not in role, "what was gathered stays when it is applied again"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "nodeyard-badges", "namespace": "nodeyard-system"}
    ]


def test_the_same_rights_can_be_given_to_an_account_that_runs_several():
    _, *own = rbac.manifests(BADGES)

    fleet = [{"kind": "ServiceAccount", "name": "fleet", "namespace": "nodeyard-system"}]
    wanted = [{**each, "subjects": fleet} if "subjects" in each else each for each in own]
    assert rbac.roles(BADGES, "fleet") == wanted != own


def test_a_capability_without_declared_kinds_gathers_nothing():
    assert rbac.declared_role(labels.LABELS) is None
    assert [each["kind"] for each in rbac.manifests(labels.LABELS)].count("ClusterRole") == 1


def test_viewers_without_secrets_may_not_read_kinds_with_credentials():
    (kind,) = labels.LABELS.kinds
    capability = replace(labels.LABELS, kinds=(replace(kind, holds_credentials=True),))

    (editor,) = rbac.viewer_and_editor(capability)

    assert editor["metadata"]["labels"] == {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}
    (rule,) = editor["rules"]
    assert {"get", "list", "watch", "create", "delete"} <= set(rule["verbs"])


def test_viewers_may_read_kinds_and_editors_may_write_them():
    viewer, editor = rbac.viewer_and_editor(labels.LABELS)

    assert viewer["metadata"]["labels"] == {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    assert viewer["rules"][0]["verbs"] == ["get", "list", "watch"]
    assert not set(viewer["rules"][0]["verbs"]) & set(editor["rules"][0]["verbs"])


def test_a_single_leader_needs_one_lease():
    changed = [rule for rule in rbac.local_rules(labels.LABELS) if "update" in rule["verbs"]]
    assert [rule["resourceNames"] for rule in changed] == [["nodeyard-labels"]]


def test_sharded_replicas_may_create_list_and_delete_their_leases():
    (rule,) = rbac.local_rules(replace(labels.LABELS, is_sharded=True))
    assert rule == {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "list", "create", "update", "delete"],
    }


def test_a_right_that_is_needed_in_one_namespace_is_given_there_alone():
    rule = Rule("coordination.k8s.io", ("leases",), ("get",), namespace="kube-node-lease")
    capability = replace(labels.LABELS, rbac=(*labels.LABELS.rbac, rule))
    before = rbac.manifests(labels.LABELS)

    role, binding = [each for each in rbac.manifests(capability) if each not in before]

    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "kube-node-lease"
    assert role["rules"] == [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}]
    assert binding["roleRef"]["kind"] == "Role"
    assert binding["subjects"][0]["namespace"] == "nodeyard-system"
    assert rbac.rules(capability) == rbac.rules(labels.LABELS)


def test_rights_in_single_namespaces_are_an_unbound_role():
    rule = Rule("", ("secrets",), ("get", "list"), grant="kubeconfigs")
    capability = replace(labels.LABELS, rbac=(*labels.LABELS.rbac, rule))
    before = rbac.manifests(labels.LABELS)

    (role,) = [each for each in rbac.manifests(capability) if each not in before]

    assert (role["kind"], role["metadata"]["name"]) == ("ClusterRole", "nodeyard-labels-kubeconfigs")
    assert role["rules"] == rbac.grants(capability)["kubeconfigs"] == [rbac.render(rule)]
    assert rbac.rules(capability) == rbac.rules(labels.LABELS)
