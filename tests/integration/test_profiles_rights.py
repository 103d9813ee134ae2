"""Every right of the generated role is used, and no other is needed."""

from __future__ import annotations

import pytest
from tests.builders.dataplanes import Dataplane
from tests.builders.profiles import DPDK, SHARED, service_body
from tests.builders.rights import COUNTED, RENEWED, unregistered

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.testing import foreign
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
    """Ask for it before `operator`, so that it outlives those."""
    foreign.install(api.rest, list(PROFILES.definitions()))
    plane = Dataplane(api.rest)
    yield plane
    plane.close()


@pytest.fixture
def declared(api, plane):
    """A service that somebody has declared, of kinds that nobody has installed; its path."""
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
    plane.role(annotations=CHOICE)
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
