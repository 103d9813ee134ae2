"""Every permission of the generated role is used, and no other is needed."""

from __future__ import annotations

import pytest
from tests.builders.dataplanes import Dataplane
from tests.builders.profiles import DPDK, SHARED, service_body
from tests.builders.rights import COUNTED, RENEWED, unregistered

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.kube.names import APPROVE
from nodeyard.testing import third_party_crds
from nodeyard.testing.operators import LOCAL_WEBHOOKS

RARE = {COUNTED, RENEWED} | unregistered(PROFILES)
SERVICES = f"/apis/{names.SERVICE_API_VERSION}/{names.SERVICE_PLURAL}"
CHOICE = {
    names.CELL: "nova-cell1",
    names.COMPUTE_PROFILE: "shared",
    names.NETWORK_PROFILE: "dpdk",
    names.TELEMETRY_PROFILE: "collector",
}


@pytest.fixture
def plane(api):
    """Request it before `operator`, so it is torn down later."""
    third_party_crds.install(api.rest, list(PROFILES.definitions()))
    plane = Dataplane(api.rest)
    yield plane
    plane.close()


@pytest.fixture
def declared(api, plane):
    """Declare a service whose kinds are not installed; return its path."""
    api.rest.create(service_body("audited"))
    yield f"{SERVICES}/audited"
    api.rest.call("DELETE", f"{SERVICES}/audited")


def test_every_right_is_used_and_no_other_is_needed(api, plane, declared, audited, operator):
    """A node's life with services whose configuration is kept in ConfigMaps and in Secrets."""
    audit = audited(PROFILES)
    operator(PROFILES, webhooks=LOCAL_WEBHOOKS)
    plane.compute_profile("shared", SHARED)
    plane.network_profile("dpdk", DPDK, spec={"renderAs": "Secret"})
    plane.telemetry_profile("collector", "[collector]\ninterval = 30\n")
    plane.role(annotations={**CHOICE, APPROVE: "ended"})
    node = plane.node("n0")
    plane.until(lambda: plane.has(names.AGENT_KIND, node), "it has an agent")
    plane.report(node, names.AGENT_KIND)
    plane.settled(node, "shared")
    plane.until(lambda: api.rest.get(declared).get("status"), "the declaration is judged")

    def kept(kind):
        found = api.rest.get(f"/api/v1/namespaces/{plane.namespace}/{kind}")["items"]
        return [
            each["metadata"]["name"] for each in found if names.SERVICE_LABEL in (each["metadata"].get("labels") or {})
        ]

    plane.until(lambda: kept("configmaps") and kept("secrets"), "both kinds of configuration")
    plane.annotate(names.NODE_KIND, node, {names.CELL: "", names.NETWORK_PROFILE: ""})
    plane.until(
        lambda: not plane.has(names.COMPUTE_KIND, node) and not plane.has(names.AGENT_KIND, node), "it has opted out"
    )
    plane.until(lambda: not kept("configmaps") and not kept("secrets"), "their configuration went with them")

    assert audit.needless(RARE) == set()
    assert audit.beyond() == set()


def test_configuration_is_written_in_the_granted_namespaces_alone(api, plane, operator):
    """Nodes of two namespaces, with ConfigMaps granted in one and Secrets in neither."""
    other = Dataplane(api.rest)
    try:
        operator(PROFILES, granted={names.CONFIGURATION_GRANT: [plane.namespace]})
        for each in (plane, other):
            each.compute_profile("shared", SHARED)
            each.network_profile("dpdk", DPDK, spec={"renderAs": "Secret"})
            each.role(annotations=CHOICE)
            each.node("n0")
        plane.until(lambda: plane.has(names.COMPUTE_KIND, "n0"), "the granted namespace has its compute")

        message = refusal(plane, "SecretsNotGranted")
        assert "NetworkProfile dpdk has spec.renderAs: Secret, but Nodeyard may not write Secrets" in message
        assert f"add {plane.namespace} to namespaceGrants.profiles.secrets in the values of the chart" in message
        message = refusal(other, "NamespaceNotGranted")
        assert f"add {other.namespace} to namespaceGrants.profiles.configuration in the values of the chart" in message
        assert not other.has(names.COMPUTE_KIND, "n0")
        assert not plane.has(names.AGENT_KIND, "n0")
    finally:
        other.close()


def refusal(plane, reason):
    def found():
        condition = plane.condition(names.NODE_KIND, "n0", "ProfilesReady")
        return condition["message"] if condition.get("reason") == reason else None

    return plane.until(found, f"the node says {reason}")
