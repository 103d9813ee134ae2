"""Profiles on both servers: choices become service objects, and changes reach their nodes."""

import json
import re
import subprocess

import pytest
from tests.builders.pools_env import PROGRAM
from tests.builders.profiles import (
    DEDICATED,
    DPDK,
    SEED_NODE_ANNOTATIONS,
    SEED_ROLE_ANNOTATIONS,
    SHARED,
    compute_profile_body,
)
from tests.builders.profiles_env import ProfilesEnv

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.kube.names import APPROVE, PAUSED
from nodeyard.plan.brake import parse_limit
from nodeyard.testing import third_party_crds
from nodeyard.testing.session import MERGE

COMPUTE, AGENT, NODE, ROLE = names.COMPUTE_KIND, names.AGENT_KIND, names.NODE_KIND, names.ROLE_KIND
STALLED = "ProgressDeadlineExceeded"
COLLECTOR = "[collector]\ninterval = 30\n"


@pytest.fixture(scope="session")
def profile_kinds(api):
    third_party_crds.install(api.rest, list(PROFILES.definitions()))


@pytest.fixture
def profiles_env(api, profile_kinds):
    """Request it before `operator`, so it is torn down later."""
    profiles_env = ProfilesEnv(api.rest)
    yield profiles_env
    profiles_env.close()


@pytest.fixture
def story(profiles_env):
    """The design's own example."""
    profiles_env.compute_profile("dell-r740-shared-cpus", SHARED)
    profiles_env.compute_profile("dell-r740-dedicated-cpus", DEDICATED)
    profiles_env.network_profile("dpdk", DPDK)
    profiles_env.telemetry_profile("collector", COLLECTOR)
    profiles_env.role(annotations=SEED_ROLE_ANNOTATIONS)
    profiles_env.node("edpm-compute-0")
    profiles_env.node("edpm-compute-1", annotations=SEED_NODE_ANNOTATIONS)
    return profiles_env


def test_the_example_of_the_design_works(story, operator):
    operator(PROFILES)
    first = story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    assert first["spec"]["dataplaneNodeName"] == "edpm-compute-0"
    assert first["spec"]["cellName"] == "nova-cell1"
    assert not story.exists(AGENT, "edpm-compute-0")
    story.wait_until(lambda: story.find(AGENT, "edpm-compute-1"), "the second node has an agent")
    assert story.get(AGENT, "edpm-compute-1")["spec"]["networkProfileName"] == "dpdk"
    story.wait_until(lambda: story.choice("edpm-compute-1", "nova"), "the second node says what it chose")
    assert story.choice("edpm-compute-1", "nova")["source"] == "Node"
    assert story.choice("edpm-compute-1", "nova")["shadowed"] == ["Role=dell-r740-shared-cpus"]
    telemetry = story.choice("edpm-compute-1", "telemetry")
    assert (telemetry["value"], telemetry["source"]) == ("collector", "Role")
    files = story.configuration("edpm-compute-0", "nova")["data"]
    assert files["02-nova-profile.conf"] == SHARED


def test_a_roles_choice_reaches_its_nodes_but_not_those_that_choose_for_themselves(api, story, operator):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    story.wait_until(lambda: story.hash_of("edpm-compute-1"), "the second node has its compute")
    story.report("edpm-compute-1")
    own = story.get(COMPUTE, "edpm-compute-1")["metadata"]["resourceVersion"]

    story.compute_profile("tuned", "[compute]\ncpu_shared_set = 2-3\n")
    story.annotate(ROLE, "edpm-compute", {names.COMPUTE_PROFILE: "tuned"})

    story.wait_until_settled("edpm-compute-0", "tuned")
    story.wait_until(lambda: planned(api, story) == set(), "nothing is left to do")
    assert story.get(COMPUTE, "edpm-compute-1")["metadata"]["resourceVersion"] == own


def test_a_config_map_of_the_users_own_is_left_alone_until_it_goes(api, story, operator):
    path = f"/api/v1/namespaces/{story.namespace}/configmaps"
    metadata = {"name": names.config_name("edpm-compute-0", "nova"), "namespace": story.namespace}
    theirs = api.rest.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"notes": "mine"}})
    operator(PROFILES)
    refused = "ConfigurationWrittenFailed"
    story.wait_until(lambda: story.condition(NODE, "edpm-compute-0", "Ready").get("reason") == refused, "it is told")
    said = story.condition(NODE, "edpm-compute-0", "Ready")["message"]
    assert f"{metadata['name']}: exists and is not ours: rename or delete it" in said
    story.wait_until(lambda: story.exists(COMPUTE, "edpm-compute-1"), "the other node gets its own")
    assert story.configuration("edpm-compute-0", "nova") == theirs
    assert not story.exists(COMPUTE, "edpm-compute-0")

    api.rest.call("DELETE", f"{path}/{metadata['name']}")
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    assert story.configuration("edpm-compute-0", "nova")["data"] == {"02-nova-profile.conf": SHARED}


def test_a_configuration_that_lost_its_label_gets_it_back(api, story, operator):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    path = f"/api/v1/namespaces/{story.namespace}/configmaps/{names.config_name('edpm-compute-0', 'nova')}"
    before = api.rest.get(path)["metadata"]["labels"]
    taken = {"metadata": {"labels": {names.SERVICE_LABEL: None}}}
    api.rest.call("PATCH", path, taken, content_type=MERGE)
    story.wait_until(lambda: api.rest.get(path)["metadata"]["labels"] == before, "the label is back")


def test_an_empty_choice_opts_out_and_removing_it_follows_the_role_again(story, operator):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    story.annotate(NODE, "edpm-compute-0", {names.COMPUTE_PROFILE: ""})
    story.wait_until(lambda: story.choice("edpm-compute-0", "nova").get("state") == "Disabled", "it has opted out")
    story.wait_until(lambda: "computeProfileName" not in story.get(COMPUTE, "edpm-compute-0")["spec"], "it is cleared")
    story.annotate(NODE, "edpm-compute-0", {names.COMPUTE_PROFILE: None})
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")


def test_a_profile_that_comes_later_is_found_then(profiles_env, operator):
    operator(PROFILES)
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "late"})
    profiles_env.node("n0")

    def fault():
        return profiles_env.condition(NODE, "n0", "ProfilesReady").get("reason")

    profiles_env.wait_until(lambda: fault() == "ProfileNotFound", "the missing profile is told of")
    assert not profiles_env.exists(COMPUTE, "n0")
    profiles_env.compute_profile("late", SHARED)
    profiles_env.wait_until_settled("n0", "late")


def test_a_hand_edit_is_reverted_and_user_fields_stay(story, operator):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    custom = "[DEFAULT]\ndebug = true\n"
    story.patch(COMPUTE, "edpm-compute-0", {"spec": {"computeProfileName": "other", "customServiceConfig": custom}})

    def is_mended():
        spec = story.get(COMPUTE, "edpm-compute-0")["spec"]
        return spec.get("computeProfileName") == "dell-r740-shared-cpus" and spec.get("customServiceConfig") == custom

    story.wait_until(is_mended, "the profile's name is ours again, and the custom part is kept")

    def rendered():
        return story.configuration("edpm-compute-0", "nova")["data"].get("03-nova-custom.conf")

    story.wait_until(lambda: rendered() == custom, "the custom part is rendered last")


def test_a_changed_profile_reaches_its_nodes_one_at_a_time_and_stops_where_one_fails(profiles_env, operator):
    operator(PROFILES)
    profiles_env.compute_profile("p", SHARED, maxUnavailable=1, progressDeadlineSeconds=3)
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    nodes = [profiles_env.node(f"n{number}") for number in range(4)]
    for node in nodes:
        profiles_env.wait_until_settled(node, "p")
    before = profiles_env.hash_of("n0")

    profiles_env.patch(names.COMPUTE_PROFILE_KIND, "p", {"spec": {"customComputeServiceConfig": DEDICATED}})

    def told():
        return [node for node in nodes if profiles_env.hash_of(node) != before]

    profiles_env.wait_until(told, "the first node is told")

    def stopped():
        return [node for node in nodes if profiles_env.condition(NODE, node, "RolloutDone").get("reason") == STALLED]

    profiles_env.wait_until(lambda: len(stopped()) == len(nodes), "the rollout stops")

    def progress():
        return profiles_env.condition(names.COMPUTE_PROFILE_KIND, "p", "Progressing")

    profiles_env.wait_until(lambda: progress().get("reason") == STALLED, "the profile says so too")
    assert len(told()) == 1

    for wanted in (2, 3, 4):
        profiles_env.report(next(node for node in told() if not is_reported(profiles_env, node)))
        profiles_env.wait_until(lambda wanted=wanted: len(told()) == wanted, f"{wanted} nodes are told")


def test_a_rollout_does_not_wait_for_operators_that_report_nothing(profiles_env, operator):
    """Act as the existing operators of nova and neutron, which report Ready and no hash."""
    operator(PROFILES)
    profiles_env.compute_profile("p", SHARED, maxUnavailable=1, progressDeadlineSeconds=3, progress="Ignore")
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    nodes = [profiles_env.node(f"n{number}") for number in range(4)]
    for node in nodes:
        profiles_env.wait_until(lambda node=node: profiles_env.hash_of(node), f"{node} has been told")
        profiles_env.report(node, is_hashed=False)
    before = profiles_env.hash_of("n0")

    profiles_env.patch(names.COMPUTE_PROFILE_KIND, "p", {"spec": {"customComputeServiceConfig": DEDICATED}})

    profiles_env.wait_until(lambda: all(profiles_env.hash_of(node) != before for node in nodes), "all nodes are told")

    def rollout():
        return {profiles_env.condition(NODE, node, "RolloutDone").get("reason") for node in nodes}

    profiles_env.wait_until(lambda: rollout() == {"ProgressIgnored"}, "the nodes say that nobody waits")
    message = profiles_env.condition(NODE, "n0", "RolloutDone")["message"]
    assert "The rollout does not wait for nova" in message
    progress = profiles_env.wait_until(
        lambda: profiles_env.condition(names.COMPUTE_PROFILE_KIND, "p", "Progressing"), "it says so too"
    )
    assert "does not wait for status.hash.profile of NovaExternalCompute (progress: Ignore)" in progress["message"]


def test_an_edit_of_a_role_writes_the_status_of_each_node_once(profiles_env, operator):
    running = operator(PROFILES)
    for name, text in (("p", SHARED), ("q", DEDICATED)):
        profiles_env.compute_profile(name, text, maxUnavailable=3, progress="Report")
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    nodes = [profiles_env.node(f"n{number}") for number in range(12)]
    for node in nodes:
        profiles_env.wait_until_settled(node, "p")

    def written():
        return running.wait_until_idle().write_counts()[f"patch {names.NODE_PLURAL}.{names.DATAPLANE_GROUP}"]

    def rollout():
        return {profiles_env.condition(NODE, node, "RolloutDone")["reason"] for node in nodes}

    profiles_env.wait_until(lambda: rollout() == {"Reconciled"}, "nothing is left to be told")
    before = written()
    profiles_env.annotate(ROLE, "edpm-compute", {names.COMPUTE_PROFILE: "q"})

    def reasons():
        found = [profiles_env.condition(NODE, node, "RolloutDone")["reason"] for node in nodes]
        return found.count("RollingOut"), found.count("MaxUnavailable")

    profiles_env.wait_until(lambda: reasons() == (3, 9), "three are told, the others wait")
    profiles_env.wait_until(
        lambda: profiles_env.get(names.COMPUTE_PROFILE_KIND, "q")["status"].get("updated") == 3, "it has counted them"
    )
    assert written() - before == len(nodes)

    first = next(node for node in nodes if profiles_env.condition(NODE, node, "RolloutDone")["reason"] == "RollingOut")
    profiles_env.report(first)
    profiles_env.wait_until(lambda: reasons() == (3, 8), "the next one is told")
    profiles_env.wait_until(
        lambda: profiles_env.get(names.COMPUTE_PROFILE_KIND, "q")["status"].get("updated") == 4, "it has counted them"
    )
    assert written() - before == len(nodes) + 2, "those that still wait are not written again"


def test_an_edit_of_a_role_writes_the_status_of_each_node_once_also_if_reports_are_ignored(profiles_env, operator):
    """Nodes that wait only for writes of other nodes are as good as queued: this is not reported."""
    running = operator(PROFILES)
    for name, text in (("p", SHARED), ("q", DEDICATED)):
        profiles_env.compute_profile(name, text, maxUnavailable=1, progress="Ignore")
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    nodes = [profiles_env.node(f"n{number}") for number in range(12)]
    for node in nodes:
        profiles_env.wait_until(lambda node=node: profiles_env.hash_of(node), f"{node} has been told")
        profiles_env.report(node, is_hashed=False)

    def reported():
        """Return the hashes that the nodes report."""
        return {profiles_env.choice(node, "nova").get("hash") for node in nodes}

    def written():
        return running.wait_until_idle().write_counts()[f"patch {names.NODE_PLURAL}.{names.DATAPLANE_GROUP}"]

    before = profiles_env.hash_of("n0")
    profiles_env.wait_until(lambda: reported() == {before}, "nothing is left to be told")
    known = written()
    profiles_env.annotate(ROLE, "edpm-compute", {names.COMPUTE_PROFILE: "q"})

    profiles_env.wait_until(lambda: before not in reported() and len(reported()) == 1, "all are told and say so")
    assert written() - known == len(nodes)


def is_reported(profiles_env, node):
    obj = profiles_env.get(COMPUTE, node)
    return (obj.get("status") or {}).get("hash", {}).get(names.REPORTED_HASH) == profiles_env.hash_of(node)


def test_a_deleted_node_deletes_its_service_objects(story, operator):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    story.delete(NODE, "edpm-compute-0")
    # The real garbage collector discovers new kinds with a delay.
    story.wait_until(lambda: not story.exists(COMPUTE, "edpm-compute-0"), "its compute is gone", timeout=120)


def test_an_existing_foreign_object_is_reported_and_left_to_its_owner(profiles_env, operator):
    profiles_env.network_profile("dpdk", DPDK)
    node = profiles_env.node("n0", role="")
    metadata = {"name": node, "namespace": profiles_env.namespace}
    theirs = {"customServiceConfig": "[DEFAULT]\ndebug = true\n"}
    profiles_env.rest.create(
        {"apiVersion": names.NEUTRON_API_VERSION, "kind": AGENT, "metadata": metadata, "spec": dict(theirs)}
    )
    operator(PROFILES)

    profiles_env.annotate(NODE, node, {names.NETWORK_PROFILE: "dpdk"})
    profiles_env.wait_until(lambda: profiles_env.hash_of(node, AGENT), "it is told")
    told = profiles_env.get(AGENT, node)
    assert told["spec"] == {**theirs, "dataplaneNodeName": node, "networkProfileName": "dpdk"}
    assert names.SERVICE_LABEL not in told["metadata"]["labels"]
    assert "ownerReferences" not in told["metadata"]

    profiles_env.annotate(NODE, node, {names.NETWORK_PROFILE: None})
    profiles_env.wait_until(lambda: not profiles_env.hash_of(node, AGENT), "what was said is taken back")
    left = profiles_env.get(AGENT, node)
    assert (left["metadata"]["uid"], left["spec"]) == (told["metadata"]["uid"], theirs)
    assert not left["metadata"].get("labels")

    profiles_env.annotate(NODE, node, {names.NETWORK_PROFILE: "dpdk"})
    profiles_env.wait_until(lambda: profiles_env.hash_of(node, AGENT), "it is told again")
    other = profiles_env.node("n1", role="", annotations={names.NETWORK_PROFILE: "dpdk"})
    profiles_env.wait_until(lambda: profiles_env.exists(AGENT, other), "another node's is made")
    profiles_env.delete(NODE, node)
    profiles_env.delete(NODE, other)
    profiles_env.wait_until(lambda: not profiles_env.exists(AGENT, other), "what was made goes with its node")
    assert profiles_env.get(AGENT, node)["metadata"]["uid"] == told["metadata"]["uid"]


def test_the_cell_of_an_adopted_compute_stays_when_nothing_requests_it(profiles_env, operator):
    profiles_env.compute_profile("p", SHARED)
    node = profiles_env.node("n0", role="", annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    metadata = {"name": node, "namespace": profiles_env.namespace}
    profiles_env.rest.create({"apiVersion": names.NOVA_API_VERSION, "kind": COMPUTE, "metadata": metadata, "spec": {}})
    operator(PROFILES)
    profiles_env.wait_until(lambda: profiles_env.hash_of(node), "it is told")

    profiles_env.annotate(NODE, node, {names.CELL: None})

    profiles_env.wait_until(lambda: not profiles_env.hash_of(node), "what was said is taken back")
    assert profiles_env.get(COMPUTE, node)["spec"] == {"cellName": "nova-cell1"}
    profiles_env.wait_until(lambda: profiles_env.is_ready(node), "nothing is left to do")


def test_a_profile_reports_its_nodes(story, operator):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")

    def counted():
        status = story.get(names.COMPUTE_PROFILE_KIND, "dell-r740-shared-cpus").get("status") or {}
        return (status.get("nodeCount"), status.get("nodes"), status.get("available"))

    story.wait_until(lambda: counted() == (1, ["edpm-compute-0"], 1), "the profile counts its node")


def test_a_profile_counts_the_nodes_that_it_selects_by_their_labels(profiles_env, operator):
    operator(PROFILES)
    profiles_env.compute_profile("gpus", SHARED, nodeSelector={"gpu": "yes"})
    profiles_env.role(annotations={names.CELL: "nova-cell1"})
    for number in range(2):
        profiles_env.node(f"n{number}", labels={"gpu": "yes"})
    profiles_env.node("n2", labels={"gpu": "no"})

    def counted():
        status = profiles_env.get(names.COMPUTE_PROFILE_KIND, "gpus").get("status") or {}
        return status.get("nodeCount"), status.get("nodes")

    profiles_env.wait_until(lambda: counted() == (2, ["n0", "n1"]), "the profile counts the nodes that it selects")
    assert profiles_env.choice("n0", "nova")["source"] == "Selector"

    profiles_env.patch(NODE, "n0", {"metadata": {"labels": {"gpu": None}}})
    profiles_env.delete(NODE, "n1")
    profiles_env.wait_until(lambda: counted() == (0, None), "the profile counts those no longer")


def test_a_rollout_continues_when_the_node_that_it_waits_for_is_deleted(profiles_env, operator):
    operator(PROFILES)
    profiles_env.compute_profile("p", SHARED, maxUnavailable=1)
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    nodes = [profiles_env.node(f"n{number}") for number in range(2)]
    for node in nodes:
        profiles_env.wait_until_settled(node, "p")
    before = profiles_env.hash_of("n0")

    profiles_env.patch(names.COMPUTE_PROFILE_KIND, "p", {"spec": {"customComputeServiceConfig": DEDICATED}})

    def told():
        return [node for node in nodes if profiles_env.exists(COMPUTE, node) and profiles_env.hash_of(node) != before]

    profiles_env.wait_until(told, "the first node is told")
    (first,) = told()
    (second,) = set(nodes) - {first}
    profiles_env.delete(NODE, first)
    # The real garbage collector discovers new kinds with a delay.
    profiles_env.wait_until(lambda: profiles_env.hash_of(second) != before, "the other node is told", timeout=120)


def test_a_choice_for_an_undeclared_service_is_reported_and_stops_nothing(story, operator):
    operator(PROFILES)
    story.annotate(NODE, "edpm-compute-0", {"cinder.openstack.org/volume-profile": "fast"})
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")

    def known():
        return story.condition(NODE, "edpm-compute-0", "ServicesKnown")

    story.wait_until(lambda: known().get("reason") == "UnknownService", "the unknown service is told of")
    assert "cinder.openstack.org/volume-profile" in known()["message"]
    assert story.get(NODE, "edpm-compute-0")["status"]["unknownProfiles"] == ["cinder.openstack.org/volume-profile"]


def test_why_explains_the_choice_of_a_node_and_what_it_shadows(story, api, operator):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    story.wait_until(lambda: story.hash_of("edpm-compute-1"), "the second node has its compute")
    node = why(api, story, "osdpnode/edpm-compute-1")
    assert "dell-r740-dedicated-cpus" in node
    assert "dell-r740-shared-cpus" in node
    assert "collector" in node


def why(api, profiles_env, subject):
    command = [*PROGRAM, "why", subject, "-n", profiles_env.namespace, "--kubeconfig", str(api.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return " ".join(done.stdout.split())


def test_why_lists_the_nodes_of_a_profile_and_of_a_role(api, story, operator):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    role = why(api, story, "osdprole/edpm-compute")
    assert "nova: SetForNodes: ComputeProfile dell-r740-shared-cpus, for 1 of its 2 nodes" in role
    assert "telemetry: SetForNodes: TelemetryProfile collector, for 2 of its 2 nodes" in role
    profile = why(api, story, "networkprofile/dpdk")
    assert f"edpm-compute-1: UsedByNode: The node names it in its annotation {names.NETWORK_PROFILE}" in profile


def test_each_wrong_choice_has_a_reason_of_its_own_and_changes_nothing(profiles_env, operator):
    operator(PROFILES)
    profiles_env.compute_profile("p", SHARED)
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    profiles_env.node("n0", labels={"rack": "a"})
    profiles_env.wait_until_settled("n0", "p")
    deployed = profiles_env.get(COMPUTE, "n0")["spec"], profiles_env.hash_of("n0")

    def told(reason):
        def has_our_fields():
            conditions = profiles_env.get(NODE, "n0")["status"]["conditions"]
            return reason in {each["reason"] for each in conditions if each["status"] == "False"}

        profiles_env.wait_until(has_our_fields, f"{reason} is told")
        assert (profiles_env.get(COMPUTE, "n0")["spec"], profiles_env.hash_of("n0")) == deployed

    profiles_env.annotate(NODE, "n0", {names.COMPUTE_PROFILE: "Not, a Name"})
    told("ProfileInvalid")
    profiles_env.annotate(NODE, "n0", {names.COMPUTE_PROFILE: "nowhere"})
    told("ProfileNotFound")
    profiles_env.annotate(NODE, "n0", {names.COMPUTE_PROFILE: None, names.CELL: "Cell 1"})
    told("CellInvalid")
    profiles_env.annotate(NODE, "n0", {names.COMPUTE_PROFILE: "nowhere", names.CELL: None})
    told("ProfileNotFound")
    profiles_env.annotate(NODE, "n0", {names.COMPUTE_PROFILE: None})
    profiles_env.patch(NODE, "n0", {"spec": {"role": "nobody"}})
    told("RoleNotFound")
    profiles_env.patch(NODE, "n0", {"spec": {"role": "edpm-compute"}})
    profiles_env.wait_until(lambda: profiles_env.is_ready("n0"), "the role is found again")
    for name in ("one", "two"):
        profiles_env.compute_profile(name, DEDICATED, nodeSelector={"rack": "a"}, priority=5)
        profiles_env.wait_until(
            lambda name=name: profiles_env.condition(names.COMPUTE_PROFILE_KIND, name, "Ready"), f"{name} is known"
        )
    profiles_env.annotate(ROLE, "edpm-compute", {names.COMPUTE_PROFILE: None})
    told("ProfileAmbiguous")
    profiles_env.annotate(NODE, "n0", {names.COMPUTE_PROFILE: "p"})
    profiles_env.wait_until(lambda: profiles_env.is_ready("n0"), "who chooses by annotation ends the tie")


def test_a_node_that_does_not_follow_keeps_its_configuration_until_it_does(api, profiles_env, operator):
    operator(PROFILES)
    profiles_env.compute_profile("p", SHARED)
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    profiles_env.node("n0", profileUpdatePolicy="Manual")
    profiles_env.node("n1")
    for node in ("n0", "n1"):
        profiles_env.wait_until_settled(node, "p")
    before = profiles_env.hash_of("n0")

    def text(node):
        return profiles_env.configuration(node, "nova")["data"]["02-nova-profile.conf"]

    profiles_env.patch(names.COMPUTE_PROFILE_KIND, "p", {"spec": {"customComputeServiceConfig": DEDICATED}})
    profiles_env.wait_until(
        lambda: text("n1") == DEDICATED and profiles_env.hash_of("n1") != before, "who follows has the new text"
    )
    profiles_env.wait_until_settled("n1", "p")
    profiles_env.wait_until(lambda: planned(api, profiles_env) == set(), "nothing is left to do")
    assert (text("n0"), profiles_env.hash_of("n0")) == (SHARED, before)

    def progress():
        return profiles_env.condition(names.COMPUTE_PROFILE_KIND, "p", "Progressing")

    profiles_env.wait_until(
        lambda: progress().get("status") == "False", "the rollout is done, with one that does not follow"
    )
    assert (
        "1 of 2 service objects updated; 1 keep an earlier generation (profileUpdatePolicy: Manual)"
        in progress()["message"]
    )
    for kind in ("Ready", "RolloutDone"):
        drift = profiles_env.condition(NODE, "n0", kind)
        assert (drift["status"], drift["reason"]) == ("True", "PinnedByPolicy")

    profiles_env.patch(NODE, "n0", {"spec": {"profileUpdatePolicy": "Automatic"}})
    profiles_env.wait_until(lambda: text("n0") == DEDICATED and profiles_env.hash_of("n0") != before, "now it follows")


def test_a_bulk_removal_by_a_role_waits_for_approval(api, profiles_env, operator):
    operator(PROFILES, limit=parse_limit("2,10%"))
    profiles_env.compute_profile("p", SHARED)
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    nodes = [profiles_env.node(f"n{number}") for number in range(4)]
    for node in nodes:
        profiles_env.wait_until_settled(node, "p")

    profiles_env.annotate(NODE, "n3", {names.CELL: ""})
    profiles_env.wait_until(lambda: not profiles_env.exists(COMPUTE, "n3"), "what a node gives up by itself goes")
    profiles_env.annotate(ROLE, "edpm-compute", {names.CELL: None})

    def held():
        conditions = [profiles_env.condition(NODE, node, "RolloutDone") for node in nodes[:3]]
        return [each["message"] for each in conditions if each.get("reason") == "NeedsApproval"]

    (message,) = set(
        profiles_env.wait_until(lambda: found if len(found := held()) == 3 else None, "all three are held")
    )
    assert all(
        profiles_env.exists(COMPUTE, node) and profiles_env.configuration(node, "nova")["data"] for node in nodes[:3]
    )
    (id,) = re.findall(r"held: 3 of \d+ managed nodes .* `nodeyard approve (\w+)` to proceed", message)
    told = profiles_env.wait_until(lambda: profiles_env.events(ROLE, "NeedsApproval"), "the role tells of it")
    assert [each["note"] for each in told] == [message]
    profiles_env.wait_until(
        lambda: profiles_env.condition(ROLE, "edpm-compute", "Held").get("message") == message, "the role is Held"
    )
    why = [*PROGRAM, "why", "openstackdataplanerole/edpm-compute", "-n", profiles_env.namespace]
    why += ["--kubeconfig", str(api.kubeconfig)]
    assert id in subprocess.run(why, capture_output=True, text=True, timeout=60, check=True).stdout

    command = [*PROGRAM, "approve", id, "--kubeconfig", str(api.kubeconfig)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    profiles_env.wait_until(
        lambda: not any(profiles_env.exists(COMPUTE, node) for node in nodes), "all computes are gone"
    )
    profiles_env.wait_until(
        lambda: not profiles_env.condition(ROLE, "edpm-compute", "Held"), "nothing of the role is held any more"
    )

    profiles_env.annotate(ROLE, "edpm-compute", {names.CELL: "nova-cell1"})
    for node in nodes[:3]:
        profiles_env.wait_until_settled(node, "p")
    annotations = profiles_env.get(ROLE, "edpm-compute")["metadata"]["annotations"]
    assert APPROVE not in annotations, "the approval has ended with what it was given for"
    profiles_env.annotate(ROLE, "edpm-compute", {names.CELL: None})
    profiles_env.wait_until(lambda: len(held()) == 3, "the same edit is asked about again")
    assert all(profiles_env.exists(COMPUTE, node) for node in nodes[:3])


def test_an_approval_on_a_role_does_not_wait_for_paused_nodes(api, profiles_env, operator):
    """It would cover nodes that are moved to the role meanwhile."""
    operator(PROFILES, limit=parse_limit("2,10%"))
    profiles_env.compute_profile("p", SHARED)
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    *nodes, paused = [profiles_env.node(f"n{number}") for number in range(4)]
    for node in (*nodes, paused):
        profiles_env.wait_until_settled(node, "p")
    profiles_env.annotate(NODE, paused, {PAUSED: "true"})
    profiles_env.annotate(ROLE, "edpm-compute", {names.CELL: None})

    told = profiles_env.wait_until(lambda: profiles_env.events(ROLE, "NeedsApproval"), "the role tells of it")
    (id,) = re.findall(r"`nodeyard approve (\w+)` to proceed", told[-1]["note"])
    command = [*PROGRAM, "approve", id, "--kubeconfig", str(api.kubeconfig)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)

    profiles_env.wait_until(lambda: not any(profiles_env.exists(COMPUTE, node) for node in nodes), "computes are gone")
    profiles_env.wait_until(lambda: not approved(profiles_env, ROLE, "edpm-compute"), "the approval has ended", 60)
    assert profiles_env.exists(COMPUTE, paused)
    profiles_env.annotate(NODE, paused, {PAUSED: None})
    profiles_env.wait_until(lambda: not profiles_env.exists(COMPUTE, paused), "a single node needs no approval")


def test_a_bulk_removal_by_a_selector_waits_for_approval(api, profiles_env, operator):
    operator(PROFILES, limit=parse_limit("2,10%"))
    profiles_env.network_profile("dpdk", DPDK, spec={"nodeSelector": {"rack": "r1"}})
    nodes = [profiles_env.node(f"n{number}", role="", labels={"rack": "r1"}) for number in range(4)]
    profiles_env.wait_until(lambda: all(profiles_env.exists(AGENT, node) for node in nodes), "all have an agent")

    profiles_env.patch(NODE, "n3", {"metadata": {"labels": {"rack": "r2"}}})
    profiles_env.wait_until(lambda: not profiles_env.exists(AGENT, "n3"), "what a node gives up by itself goes")
    profiles_env.patch(names.NETWORK_PROFILE_KIND, "dpdk", {"spec": {"nodeSelector": None}})

    (told,) = profiles_env.wait_until(
        lambda: profiles_env.events(names.NETWORK_PROFILE_KIND, "NeedsApproval"), "the profile tells of it"
    )
    (id,) = re.findall(r"held: 3 of \d+ managed nodes .* `nodeyard approve (\w+)` to proceed", told["note"])
    assert all(profiles_env.exists(AGENT, node) for node in nodes[:3])
    profile = (names.NETWORK_PROFILE_KIND, "dpdk", "Held")
    profiles_env.wait_until(lambda: id in profiles_env.condition(*profile).get("message", ""), "the profile is Held")

    command = [*PROGRAM, "approve", id, "--kubeconfig", str(api.kubeconfig)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    profiles_env.wait_until(lambda: not any(profiles_env.exists(AGENT, node) for node in nodes), "all agents are gone")
    profiles_env.wait_until(lambda: not profiles_env.condition(*profile), "nothing of the profile is held any more")
    profiles_env.wait_until(lambda: not approved(profiles_env, *profile[:2]), "the approval ends with the removal", 60)


def test_an_approval_on_a_profile_is_for_one_removal_and_not_for_the_next_of_the_same_generation(
    api, profiles_env, operator
):
    operator(PROFILES, limit=parse_limit("2,10%"))
    profiles_env.network_profile("dpdk", DPDK, spec={"nodeSelector": {"rack": "r1"}})
    nodes = [profiles_env.node(f"n{number}", role="", labels={"rack": "r1"}) for number in range(3)]

    def have_agents():
        return [node for node in nodes if profiles_env.exists(AGENT, node)]

    def label(rack):
        """Change the label of all nodes before any of them is planned."""
        for paused in ("true", None):
            for node in nodes:
                metadata = {"labels": {"rack": rack}, "annotations": {PAUSED: paused}}
                profiles_env.patch(NODE, node, {"metadata": metadata})

    def held():
        found = [profiles_env.condition(NODE, node, "RolloutDone") for node in nodes]
        return {each["message"] for each in found if each.get("reason") == "NeedsApproval"}

    profiles_env.wait_until(lambda: have_agents() == nodes, "all have an agent")
    label("r2")
    (message,) = profiles_env.wait_until(held, "the removal is held")
    (id,) = re.findall(r"`nodeyard approve (\w+)` to proceed", message)
    assert have_agents() == nodes
    command = [*PROGRAM, "approve", id, "--kubeconfig", str(api.kubeconfig)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    profiles_env.wait_until(lambda: not have_agents(), "all agents are gone")
    profiles_env.wait_until(
        lambda: not approved(profiles_env, names.NETWORK_PROFILE_KIND, "dpdk"), "the approval has ended", 60
    )

    label("r1")
    profiles_env.wait_until(lambda: have_agents() == nodes, "all have an agent again")
    label("r2")

    profiles_env.wait_until(held, "the same removal is asked about again")
    assert have_agents() == nodes


def test_a_bulk_removal_by_a_deleted_profile_needs_one_approval(api, profiles_env, operator):
    operator(PROFILES, limit=parse_limit("2,10%"))
    profiles_env.network_profile("dpdk", DPDK, spec={"nodeSelector": {"rack": "r1"}})
    nodes = [profiles_env.node(f"n{number}", role="", labels={"rack": "r1"}) for number in range(4)]
    profiles_env.wait_until(lambda: all(profiles_env.exists(AGENT, node) for node in nodes), "all have an agent")

    profiles_env.delete(names.NETWORK_PROFILE_KIND, "dpdk")

    def held():
        found = [profiles_env.condition(NODE, node, "RolloutDone").get("message", "") for node in nodes]
        ids = [
            re.findall(r"held: 4 of \d+ managed nodes .* `nodeyard approve (\w+)` to proceed", each) for each in found
        ]
        return {each for one in ids for each in one} if all(ids) else None

    (id,) = profiles_env.wait_until(held, "it is held on every node")
    assert all(profiles_env.exists(AGENT, node) for node in nodes)

    command = [*PROGRAM, "approve", id, "--kubeconfig", str(api.kubeconfig)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    profiles_env.wait_until(lambda: not any(profiles_env.exists(AGENT, node) for node in nodes), "all agents are gone")
    profiles_env.wait_until(
        lambda: not any(approved(profiles_env, NODE, node) for node in nodes), "the approval ends with the removal"
    )

    profiles_env.network_profile("dpdk", DPDK, spec={"nodeSelector": {"rack": "r1"}})
    profiles_env.wait_until(lambda: all(profiles_env.exists(AGENT, node) for node in nodes), "all have an agent again")
    profiles_env.delete(names.NETWORK_PROFILE_KIND, "dpdk")

    profiles_env.wait_until(held, "the same removal is asked about again")
    assert all(profiles_env.exists(AGENT, node) for node in nodes)


def approved(profiles_env, kind, name):
    """Return the approvals on an object."""
    return (profiles_env.get(kind, name)["metadata"].get("annotations") or {}).get(APPROVE, "")


def planned(api, profiles_env, *options):
    """Return the output of `nodeyard plan` for this namespace; other tests share the server."""
    command = [*PROGRAM, "plan", *options, "-o", "json", "--capabilities", "profiles"]
    command += ["--kubeconfig", str(api.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in {0, 2}, done.stdout + done.stderr
    objects = [action["object"] for plan in json.loads(done.stdout)["items"] for action in plan.get("actions", ())]
    return {each["name"] for each in objects if each.get("namespace") == profiles_env.namespace}


def test_plan_shows_which_nodes_an_edit_would_reconfigure_and_changes_nothing(api, story, operator, tmp_path):
    operator(PROFILES)
    story.wait_until_settled("edpm-compute-0", "dell-r740-shared-cpus")
    story.wait_until(lambda: story.hash_of("edpm-compute-1"), "the second node has its compute")
    story.report("edpm-compute-1")
    story.wait_until(lambda: planned(api, story) == set(), "nothing is left to do")
    story.wait_until(lambda: story.get(ROLE, "edpm-compute").get("status"), "the role counts its nodes")
    role = story.get(ROLE, "edpm-compute")
    annotations = {**role["metadata"]["annotations"], names.COMPUTE_PROFILE: "dell-r740-dedicated-cpus"}
    metadata = {"name": "edpm-compute", "namespace": story.namespace, "annotations": annotations}
    edited = {key: role[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
    file = tmp_path / "role.json"
    file.write_text(json.dumps(edited))

    assert planned(api, story, "-f", str(file)) == {"edpm-compute-0", "edpm-compute-0-nova-config"}
    assert story.get(ROLE, "edpm-compute")["metadata"]["resourceVersion"] == role["metadata"]["resourceVersion"]


def test_plan_shows_as_many_nodes_as_may_be_unavailable_at_once(api, profiles_env, operator, tmp_path):
    operator(PROFILES)
    profiles_env.compute_profile("p", SHARED, maxUnavailable=2)
    profiles_env.role(annotations={names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"})
    for node in [profiles_env.node(f"n{number}") for number in range(4)]:
        profiles_env.wait_until_settled(node, "p")
    profiles_env.wait_until(lambda: planned(api, profiles_env) == set(), "nothing is left to do")
    file = tmp_path / "profile.json"
    file.write_text(
        json.dumps(compute_profile_body("p", DEDICATED, namespace=profiles_env.namespace, maxUnavailable=2))
    )

    assert planned(api, profiles_env, "-f", str(file)) == {"n0", "n0-nova-config", "n1", "n1-nova-config"}
