"""Work that grows with the fleet does not hold the event loop of an operator, which also serves admission."""

import gc
from statistics import median

import pytest
from tests.builders.affinity_env import class_body, install_crds, pod_body
from tests.builders.loop_turns import MeasuredOperator
from tests.builders.profiles import DPDK
from tests.builders.profiles_env import ProfilesEnv

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.profiles import names as profiles
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.testing import third_party_crds
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.session import MERGE
from nodeyard.testing.wait import until

ZONE = "topology.kubernetes.io/zone"
CLASSES = f"/apis/{names.API_VERSION}/{names.CLASS_PLURAL}"
PODS = "/api/v1/namespaces/default/pods"
FEW_PODS, MANY_PODS = 300, 3000
FEW_NODES, MANY_NODES = 150, 1500
SAMPLES = 7
PATIENCE = 250.0


@pytest.fixture(scope="module")
def server():
    """A server of these tests without controllers."""
    with EmbeddedServer(controllers=()) as server:
        yield server


@pytest.fixture
def measured(server):
    """`measured(SPARES)`: a leading operator. Garbage collection is off."""
    started = []

    def start(capability):
        operator = MeasuredOperator(server, capability)
        operator.start()
        started.append(operator)
        return operator.ready().wait_until_leading()

    gc.disable()
    yield start
    gc.enable()
    for each in started:
        each.stop()


# a class and its pods


def placed(name, zone):
    selector = {"nodeSelector": {ZONE: zone}} if zone else {}
    return pod_body("default", name, [], {names.AFFINITY_CLASS: "dc1"}, **selector)


def longest_turn(server, operator, outside):
    """Return the longest turn for events of pods outside their class, one of which was outside already."""

    def happen():
        server.rest.call(
            "PATCH", f"{PODS}/outside", {"metadata": {"annotations": {"n": str(outside)}}}, content_type=MERGE
        )
        server.rest.create(placed(f"outside-{outside}", ""))
        until(
            lambda: server.rest.get(f"{CLASSES}/dc1").get("status", {}).get("violators") == outside + 1,
            "it is counted",
            PATIENCE,
        )

    return operator.measure(happen).own


@pytest.mark.timeout(300)
def test_events_of_a_pod_outside_its_class_hold_the_loop_no_longer_the_more_pods_the_class_has(server, measured):
    install_crds(server)
    operator = measured(AFFINITY)
    server.rest.create(class_body("dc1", nodeSelector={ZONE: "dc1"}, enforcement="Warn"))
    server.rest.create(placed("outside", ""))
    turns, outside = {}, 0
    for number in range(MANY_PODS):
        server.rest.create(placed(f"inside-{number}", "dc1"))
        if number + 1 in (FEW_PODS, MANY_PODS):
            found = []
            for _ in range(SAMPLES):
                outside += 1
                found.append(longest_turn(server, operator, outside))
            turns[number + 1] = median(found)
    assert turns[MANY_PODS] < 3 * turns[FEW_PODS]


# a role and its nodes


def time_per_node(server, operator, nodes):
    """Return the loop's time for each node of a role that no longer requests agents."""
    env = ProfilesEnv(server.rest)
    env.network_profile("dpdk", DPDK)
    env.role(annotations={profiles.NETWORK_PROFILE: "dpdk"})
    for number in range(nodes):
        env.node(f"n{number}")
    agents = f"/apis/{profiles.NEUTRON_API_VERSION}/namespaces/{env.namespace}/{profiles.AGENT_PLURAL}"
    until(lambda: len(server.rest.get(agents)["items"]) == nodes, "every node has an agent", PATIENCE)

    def have(reason):
        found = server.rest.get(env.path(profiles.NODE_KIND))["items"]
        said = [each for node in found for each in node.get("status", {}).get("conditions", ())]
        return sum((each["type"], each["reason"]) == ("Ready", reason) for each in said) == nodes

    def happen():
        env.annotate(profiles.ROLE_KIND, "edpm-compute", {profiles.NETWORK_PROFILE: None})
        until(lambda: have("NeedsApproval"), "it is held on every node", PATIENCE)

    turns = operator.measure(happen)
    env.close()
    return turns.total / nodes


@pytest.mark.timeout(900)
def test_the_cost_of_a_bulk_removal_per_node_does_not_grow_with_the_nodes_of_a_role(server, measured):
    third_party_crds.install(server.rest, list(PROFILES.definitions()))
    operator = measured(PROFILES)
    before, many, after = (time_per_node(server, operator, nodes) for nodes in (FEW_NODES, MANY_NODES, FEW_NODES))
    assert many < 2 * max(before, after)
