"""The operator under the role that is generated for it, and nothing more: on both servers."""

import pytest
from tests.builders.labels import LABELS
from tests.builders.operators import fleet as fleet_on
from tests.builders.operators import operator, until

from nodeyard.client.resources import EVENTS, NAMESPACES
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime.access import cluster_role, policy_rules, rules


@pytest.fixture
async def fleet(api):
    async with fleet_on(api.kubeconfig) as fleet:
        yield fleet


async def test_its_own_role_is_enough_for_everything_it_does(api, fleet):
    user = api.user("labels-operator", rules=policy_rules(rules(LABELS, installs=True)))
    async with operator(user):
        await fleet.add_rule("a", "blue")
        await fleet.add_nodes("a", 2)
        await fleet.are_all("blue")

        async def is_told():
            return (await fleet.rule("a")).status.labelled == 2

        await until(is_told, "the status says so")

        async def is_recorded():
            events = (await fleet.client.list(EVENTS)).items
            return [each for each in events if each["regarding"].get("name") == fleet.name("a")]

        await until(is_recorded, "an event says so")
        assert NAMESPACE in [each["metadata"]["name"] for each in (await fleet.client.list(NAMESPACES)).items]


def test_without_installing_it_may_not_touch_definitions():
    granted = {each for rule in cluster_role(LABELS)["rules"] for each in rule["resources"]}
    assert "customresourcedefinitions" not in granted
    assert "customresourcedefinitions" in {
        each for rule in cluster_role(LABELS, installs=True)["rules"] for each in rule["resources"]
    }


def test_only_its_own_lease_may_be_renewed():
    renewing = [rule for rule in cluster_role(LABELS)["rules"] if "update" in rule["verbs"]]
    assert [rule["resourceNames"] for rule in renewing] == [["nodeyard-labels"]]
