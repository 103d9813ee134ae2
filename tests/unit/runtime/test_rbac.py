"""Rights, from what a capability declares."""

from tests.builders import labels
from tests.builders.guards import GUARDED

from nodeyard.runtime import rbac

CONFIGURATIONS = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]


def test_webhooks_bring_the_right_to_register_them_and_no_others():
    added = [rule for rule in rbac.rules(GUARDED) if rule not in rbac.rules(labels.LABELS)]

    assert added == [
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": CONFIGURATIONS,
            "verbs": ["get", "create", "patch"],
            "resourceNames": ["nodeyard-labels"],
        },
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["clusterroles"],
            "verbs": ["get"],
            "resourceNames": ["nodeyard-labels"],
        },
    ]


def test_webhooks_bring_the_right_to_one_secret_of_our_own_namespace():
    added = [rule for rule in rbac.local_rules(GUARDED) if rule not in rbac.local_rules(labels.LABELS)]

    assert {verb: rule.get("resourceNames") for rule in added for verb in rule["verbs"]} == {
        "get": ["nodeyard-webhook-certificates"],
        "update": ["nodeyard-webhook-certificates"],
        "create": None,
    }
