"""Apply examples/05-profiles as its README says, and check the results of the design."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders.profile_admission import session
from tests.builders.profiles import ready

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES

EXAMPLE = Path(__file__).parents[2] / "examples" / "05-profiles"
COMPUTES = f"/apis/{names.NOVA_API_VERSION}/namespaces/default/{names.COMPUTE_PLURAL}"
AGENTS = f"/apis/{names.NEUTRON_API_VERSION}/namespaces/default/{names.AGENT_PLURAL}"
NODES = f"/apis/{names.DATAPLANE_API_VERSION}/namespaces/default/{names.NODE_PLURAL}"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
FIRST, SECOND = "edpm-compute-0", "edpm-compute-1"
PATIENCE = 60.0


@pytest.fixture
def http(api):
    return session(api)


@pytest.fixture
def applied(http, kubectl, operator):
    """Run the operator."""
    operator(PROFILES)
    kubectl("apply", "-f", str(EXAMPLE))
    yield
    kubectl("delete", "-f", str(EXAMPLE), "--ignore-not-found")


@pytest.fixture
def deploy(http):
    """Act as the operators of nova and neutron: report every desired hash."""

    def report():
        for path in (COMPUTES, AGENTS):
            for each in http.get(path).json["items"]:
                hash = each["metadata"]["annotations"][names.HASH]
                where = f"{path}/{each['metadata']['name']}/status"
                assert http.patch(where, {"status": ready(hash)}).status == 200
        return True

    return report


@pytest.fixture
def rows(kubectl):
    """Return the printer columns of the nodes, without the age."""

    def show():
        return [line.split()[:-1] for line in kubectl("get", "osdpnode").stdout.splitlines()[1:]]

    return show


def named(http, path):
    return sorted(each["metadata"]["name"] for each in http.get(path).json["items"])


def spec(http, path, name):
    return http.get(f"{path}/{name}").json["spec"]


@pytest.mark.timeout(240)
def test_the_example_works_as_its_readme_describes(applied, http, kubectl, rows, deploy, eventually):
    eventually(lambda: named(http, COMPUTES) == [FIRST, SECOND] and named(http, AGENTS) == [SECOND], "made", PATIENCE)
    shown = [
        [FIRST, "edpm-compute", "dell-r740-shared-cpus", "collector", "True"],
        [SECOND, "edpm-compute", "dell-r740-dedicated-cpus", "dpdk", "collector", "True"],
    ]
    eventually(lambda: deploy() and rows() == shown, "as the README shows them", PATIENCE)

    assert spec(http, COMPUTES, FIRST) == {
        "dataplaneNodeName": FIRST,
        "computeProfileName": "dell-r740-shared-cpus",
        "cellName": "nova-cell1",
    }
    assert spec(http, COMPUTES, SECOND)["computeProfileName"] == "dell-r740-dedicated-cpus"
    assert spec(http, AGENTS, SECOND) == {"dataplaneNodeName": SECOND, "networkProfileName": "dpdk"}
    configs = {f"{FIRST}-nova-config", f"{SECOND}-nova-config", f"{SECOND}-neutron-config"}
    assert configs <= set(named(http, CONFIG_MAPS))
    assert http.get(f"{CONFIG_MAPS}/{SECOND}-nova-config").json["data"] == {
        "02-nova-profile.conf": ("[compute]\ncpu_dedicated_set = 4-12,^8,15\n[DEFAULT]\ncpu_allocation_ratio = 1.0\n")
    }

    kubectl("annotate", "osdpnode", SECOND, f"{names.TELEMETRY_PROFILE}=")

    def telemetry():
        return http.get(f"{NODES}/{SECOND}").json["status"]["profiles"]["telemetry"]

    eventually(lambda: telemetry()["state"] == "Disabled", "it is not collected from")
    assert telemetry()["shadowed"] == ["Role=collector"]

    role = ("annotate", "osdprole", "edpm-compute", "--overwrite")
    kubectl(*role, f"{names.COMPUTE_PROFILE}=dell-r740-dedicated-cpus")
    eventually(
        lambda: spec(http, COMPUTES, FIRST)["computeProfileName"] == "dell-r740-dedicated-cpus", "the first follows"
    )

    kubectl("delete", "osdpnode", FIRST, SECOND)
    # The real garbage collector discovers new kinds with a delay.
    eventually(lambda: not named(http, COMPUTES) and not named(http, AGENTS), "all went with the nodes", 120)
