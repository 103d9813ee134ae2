"""Detection of whether the API server sends pods of tenants to the webhook, read from the registration."""

import pytest
from tests.builders.affinity_views import registration

from nodeyard.capabilities.affinity.reviews.pod_webhooks import is_webhook_registered

NAME = "placement-tenants.affinity.nodeyard.dev"


def narrowed(**fields):
    found = registration()
    entries = [{**each, **fields} if each["name"] == NAME else each for each in found["webhooks"]]
    return {**found, "webhooks": entries}


def test_a_complete_registration_counts():
    assert is_webhook_registered(registration())


@pytest.mark.parametrize(
    "fields",
    [
        {"matchConditions": [{"name": "never", "expression": "false"}]},
        {"failurePolicy": "Ignore"},
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        {"rules": []},
        {"name": "other.example.com"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_narrowed_registration_does_not_count(fields):
    assert not is_webhook_registered(narrowed(**fields))


def test_without_a_registration_nothing_is_enforced():
    assert not is_webhook_registered(None)
    assert not is_webhook_registered({"metadata": {}, "webhooks": None})
