"""Every permission of the generated role is used, and no other is needed."""

from __future__ import annotations

import pytest
from tests.builders.profiles import DPDK, SHARED, service_body
from tests.builders.profiles_env import ProfilesEnv
from tests.builders.rights import COUNTED, RENEWED, unregistered

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.kube.names import APPROVE
from nodeyard.testing import third_party_crds
from nodeyard.testing.operators import LOCAL_WEBHOOKS

RARE = {COUNTED, RENEWED} | unregistered(PROFILES)
SERVICES = f"/apis/{names.SERVICE_API_VERSION}/{names.SERVICE_PLURAL}"
ENDED = "0123456789ab"
PROFILES_OF_STORY = {
    names.COMPUTE_PROFILE_KIND: "shared",
    names.NETWORK_PROFILE_KIND: "dpdk",
    names.TELEMETRY_PROFILE_KIND: "collector",
}
CHOICE = {
    names.CELL: "nova-cell1",
    names.COMPUTE_PROFILE: "shared",
    names.NETWORK_PROFILE: "dpdk",
    names.TELEMETRY_PROFILE: "collector",
}


@pytest.fixture
def profiles_env(api):
    """Request it before `operator`, so it is torn down later."""
    third_party_crds.install(api.rest, list(PROFILES.definitions()))
    profiles_env = ProfilesEnv(api.rest)
    yield profiles_env
    profiles_env.close()


def with_ended(body):
    """Return the object with an approval that nothing needs."""
    return {**body, "metadata": {**body["metadata"], "annotations": {APPROVE: ENDED}}}


@pytest.fixture
def declared(api, profiles_env):
    """Declare a service whose kinds are not installed; return its path."""
    api.rest.create(with_ended(service_body("audited")))
    yield f"{SERVICES}/audited"
    api.rest.call("DELETE", f"{SERVICES}/audited")


def test_every_right_is_used_and_no_other_is_needed(api, profiles_env, declared, audited, operator):
    """Create and delete a node with services whose configuration is kept in ConfigMaps and in Secrets."""
    audit = audited(PROFILES)
    operator(PROFILES, webhooks=LOCAL_WEBHOOKS)
    profiles_env.compute_profile("shared", SHARED)
    profiles_env.network_profile("dpdk", DPDK, spec={"renderAs": "Secret"})
    profiles_env.telemetry_profile("collector", "[collector]\ninterval = 30\n")
    for kind, name in PROFILES_OF_STORY.items():
        profiles_env.annotate(kind, name, {APPROVE: ENDED})
    profiles_env.role(annotations={**CHOICE, APPROVE: ENDED})
    node = profiles_env.node("n0", annotations={APPROVE: ENDED})
    profiles_env.wait_until(lambda: profiles_env.exists(names.AGENT_KIND, node), "it has an agent")
    profiles_env.report(node, names.AGENT_KIND)
    profiles_env.wait_until_settled(node, "shared")
    profiles_env.wait_until(lambda: api.rest.get(declared).get("status"), "the declaration is judged")

    def kept(kind):
        found = api.rest.get(f"/api/v1/namespaces/{profiles_env.namespace}/{kind}")["items"]
        return [
            each["metadata"]["name"] for each in found if names.SERVICE_LABEL in (each["metadata"].get("labels") or {})
        ]

    profiles_env.wait_until(lambda: kept("configmaps") and kept("secrets"), "both kinds of configuration")
    profiles_env.annotate(names.NODE_KIND, node, {names.CELL: "", names.NETWORK_PROFILE: ""})
    profiles_env.wait_until(
        lambda: not profiles_env.exists(names.COMPUTE_KIND, node) and not profiles_env.exists(names.AGENT_KIND, node),
        "it has opted out",
    )
    profiles_env.wait_until(
        lambda: not kept("configmaps") and not kept("secrets"), "their configuration went with them"
    )

    ended = [declared, profiles_env.path(names.NODE_KIND, node), profiles_env.path(names.ROLE_KIND, "edpm-compute")]
    for path in (*ended, *(profiles_env.path(kind, name) for kind, name in PROFILES_OF_STORY.items())):
        profiles_env.wait_until(
            lambda path=path: APPROVE not in (api.rest.get(path)["metadata"].get("annotations") or {}),
            f"an approval that nothing needs goes from {path}",
        )

    assert audit.unused(RARE) == set()
    assert audit.forbidden() == set()


def test_configuration_is_written_in_the_granted_namespaces_alone(api, profiles_env, operator):
    """Nodes of two namespaces, with ConfigMaps granted in one and Secrets in neither."""
    other = ProfilesEnv(api.rest)
    try:
        operator(PROFILES, granted={names.CONFIGURATION_GRANT: [profiles_env.namespace]})
        for each in (profiles_env, other):
            each.compute_profile("shared", SHARED)
            each.network_profile("dpdk", DPDK, spec={"renderAs": "Secret"})
            each.role(annotations=CHOICE)
            each.node("n0")
        profiles_env.wait_until(
            lambda: profiles_env.exists(names.COMPUTE_KIND, "n0"), "the granted namespace has its compute"
        )

        message = refusal(profiles_env, "SecretsNotGranted")
        assert "NetworkProfile dpdk has spec.renderAs: Secret, but Nodeyard may not write Secrets" in message
        assert f"add {profiles_env.namespace} to namespaceGrants.profiles.secrets in the values of the chart" in message
        message = refusal(other, "NamespaceNotGranted")
        assert f"add {other.namespace} to namespaceGrants.profiles.configuration in the values of the chart" in message
        assert not other.exists(names.COMPUTE_KIND, "n0")
        assert not profiles_env.exists(names.AGENT_KIND, "n0")
    finally:
        other.close()


def refusal(profiles_env, reason):
    def found():
        condition = profiles_env.condition(names.NODE_KIND, "n0", "ProfilesReady")
        return condition["message"] if condition.get("reason") == reason else None

    return profiles_env.wait_until(found, f"the node says {reason}")
