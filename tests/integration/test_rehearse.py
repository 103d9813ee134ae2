"""`nodeyard rehearse`: a change on a twin, through the command line."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import structlog
import yaml
from tests.builders.bundles import copy_cluster
from typer.testing import CliRunner

from nodeyard.apiserver.server import Server
from nodeyard.app import files
from nodeyard.app.capabilities import choose
from nodeyard.cli.app import app
from nodeyard.cli.failures import Failure
from nodeyard.process.clock import VirtualClock
from nodeyard.rehearsal.engine import FACTS
from nodeyard.rehearsal.faults import NAMES
from nodeyard.rehearsal.profiles import PROFILES
from nodeyard.runtime.crds import install
from nodeyard.sim.embedded import connect
from nodeyard.sim.nodes import spare_node

SCENARIOS = Path(__file__).parents[2] / "docs" / "examples" / "rehearse"
TEMPLATE = {
    "apiVersion": "nyallocator.cybozu.io/v1",
    "kind": "NodeTemplate",
    "metadata": {"name": "web"},
    "spec": {
        "priority": 1,
        "nodes": 3,
        "selector": {"matchLabels": {"rack": "r1"}},
        "template": {"metadata": {"labels": {"role": "web"}}},
    },
}
SPARES = {"count": 4, "prefix": "spare", "spare": True, "labels": {"rack": "r1"}}


@pytest.fixture(autouse=True)
def quiet_logs(monkeypatch):
    """The command configures the logs of its process; the tests after it have their own."""
    before = structlog.get_config()
    monkeypatch.setattr("nodeyard.process.logs.configure", lambda _level: None)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


class Done(NamedTuple):
    exit_code: int
    output: str


def invoke(*arguments):
    """Run the command; return its exit code, and its output or error."""
    done = CliRunner().invoke(app, ["rehearse", *map(str, arguments)], prog_name="nodeyard")
    if isinstance(done.exception, Failure):
        return Done(done.exception.exit_code, str(done.exception))
    return Done(done.exit_code, done.output)


def rehearse(tmp_path, scenario, *arguments, code=0):
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(scenario))
    result = invoke("--scenario", path, "-o", "json", *arguments)
    assert result.exit_code == code, result.output
    return json.loads(result.output)


def steps(timeline):
    return [(each["capability"], each["reason"], each["count"]) for each in timeline["steps"]]


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_scenarios_of_the_docs_converge(path):
    result = invoke("--scenario", path)
    assert result.exit_code == 0, result.output
    assert "FAILED" not in result.output


def test_the_page_shows_what_the_command_prints():
    page = (SCENARIOS.parents[1] / "rehearse.md").read_text()
    transcript = page.partition("$ nodeyard rehearse --scenario pool-upgrade.yaml\n")[2].partition("```")[0]
    assert invoke("--scenario", SCENARIOS / "pool-upgrade.yaml").output.startswith(transcript)


def test_the_page_lists_all_facts_faults_and_profiles():
    page = (SCENARIOS.parents[1] / "rehearse.md").read_text()
    assert [name for name in (*FACTS, *NAMES, *PROFILES) if f"`{name}" not in page] == []


def test_a_template_claims_spare_nodes(tmp_path):
    timeline = rehearse(
        tmp_path, {"capabilities": ["spares"], "fleet": {"nodes": [SPARES]}, "events": [{"apply": [TEMPLATE]}]}
    )
    assert timeline["converged"]
    assert ("spares", "Claimed", 3) in steps(timeline)
    assert timeline["profile"] == "typical"


def test_the_same_seed_gives_the_same_timeline_in_every_process():
    command = [sys.executable, "-c", "from nodeyard.cli import main; main()", "rehearse", "-o", "json"]
    command += ["--scenario", str(SCENARIOS / "pool-upgrade.yaml")]
    runs = [
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    other = subprocess.run([*command, "--seed", "7"], capture_output=True, check=True).stdout
    assert json.loads(other)["seconds"] != json.loads(runs[0])["seconds"]


def test_a_change_is_rehearsed_on_a_bundle(tmp_path):
    bundle, change = tmp_path / "bundle.tgz", tmp_path / "change.yaml"
    asyncio.run(write_cluster(bundle))
    change.write_text(yaml.safe_dump({**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodes": 2}}))
    result = invoke("-f", change, "--from", bundle, "-o", "json")
    assert result.exit_code == 0, result.output
    timeline = json.loads(result.output)
    (claimed,) = [each for each in timeline["steps"] if each["reason"] == "Claimed"]
    assert claimed["objects"] == ["Node s0", "Node s1"]
    assert timeline["source"] == "bundle bundle.tgz"


async def write_cluster(path):
    clock = VirtualClock()
    server = Server(clock, seed=1)
    await server.start(())
    client = connect(server)
    installing = asyncio.create_task(install(client, choose(["spares"]), clock))
    await clock.advance(5)
    await installing
    nodes = [spare_node(f"s{number}", clock.now(), zone=f"z{number}", labels={"rack": "r1"}) for number in range(3)]
    await files.send(client, [("test", node) for node in nodes], dry_run=False)
    await copy_cluster(client, path)
    await server.stop()


SHOP = {"name": "shop", "replicas": 2, "grace": 120, "nodeSelector": {"role": "old"}}
DRAINED = {
    "capabilities": ["spares"],
    "fleet": {"nodes": [{"count": 2, "labels": {"role": "old"}}], "workloads": [SHOP]},
    "events": [
        {
            "delete": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "shop", "namespace": "default"}}
            ]
        }
    ],
}


@pytest.mark.parametrize(("profile", "least", "most"), [("typical", 120, 122), ("fast", 1, 3)])
def test_a_pod_takes_its_grace_period_to_end_unless_the_profile_is_fast(tmp_path, profile, least, most):
    timeline = rehearse(tmp_path, DRAINED, "--profile", profile)
    assert least <= timeline["seconds"] <= most
    assert timeline["profile"] == profile
    assert [each["reason"] for each in timeline["moves"]] == ["Deleted", "Deleted"]


RELEASE = {
    "capabilities": ["spares"],
    "fleet": {
        "nodes": [{**SPARES, "count": 30}],
        "objects": [{**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodes": 30}}],
    },
    "events": [
        {"delete": [{"apiVersion": "nyallocator.cybozu.io/v1", "kind": "NodeTemplate", "metadata": {"name": "web"}}]}
    ],
}


def test_a_held_plan_is_named_and_goes_on_if_it_is_approved(tmp_path):
    held = rehearse(tmp_path, RELEASE, code=2)
    assert not held["converged"]
    assert any("is held" in each for each in held["reasons"])
    (plan,) = held["held"]
    assert "until" not in plan or plan["until"] is None
    approved = rehearse(tmp_path, RELEASE, "--approve")
    assert approved["held"][0]["id"] == plan["id"]
    assert ("spares", "Detached", 30) in steps(approved)


def test_an_assertion_that_fails_gives_code_2(tmp_path):
    scenario = {"capabilities": ["spares"], "fleet": {"nodes": [SPARES]}, "events": [{"apply": [TEMPLATE]}]}
    timeline = rehearse(tmp_path, scenario, "--assert", "actions < 3", "--assert", "converged", code=2)
    assert timeline["converged"]
    assert timeline["checks"] == [{"text": "actions < 3", "holds": False}, {"text": "converged", "holds": True}]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "give a change with -f, or --scenario"),
        (("--fault", "earthquake=a"), "--fault"),
        (("--fault", "boot-fails=2"), "between 0 and 1"),
        (("--assert", "import os"), "--assert"),
        (("--profile", "slow"), "--profile"),
        (("--until", "soon"), "--until"),
        (("--max-disruption", "x"), "--max-disruption"),
        (("--capabilities", "magic"), "--capabilities"),
        (("--calibrate",), "--calibrate"),
    ],
)
def test_a_wrong_option_is_named_and_gives_code_64(tmp_path, arguments, error):
    path = tmp_path / "scenario.yaml"
    path.write_text("{}")
    scenario = ("--scenario", path) if arguments else ()
    result = invoke(*scenario, *arguments)
    assert result.exit_code == 64
    assert error in result.output


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("fleet: {nodes: [{count: 1, colour: red}]}", "colour"),
        ("fleet: {nodes: [{count: 60000}]}", "more than 50000"),
        ("fleet: [", "scenario.yaml"),
        ("faults: [zone-lost=nowhere]", "no node has the label"),
        ("faults: [leaf-silent=east]", 'no leaf cluster "east"'),
        ("events: [{apply: [{kind: Node}]}]", "apiVersion, kind and metadata.name"),
    ],
)
def test_a_scenario_that_cannot_run_says_why(tmp_path, text, error):
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    result = invoke("--scenario", path, "--capabilities", "spares")
    assert result.exit_code == 1, result.output
    assert error in result.output


def test_a_truncated_bundle_is_refused(tmp_path):
    bundle, change = tmp_path / "bundle.tgz", tmp_path / "change.yaml"
    asyncio.run(write_cluster(bundle))
    bundle.write_bytes(bundle.read_bytes()[:-200])
    change.write_text(yaml.safe_dump(TEMPLATE))
    result = invoke("-f", change, "--from", bundle)
    assert result.exit_code == 1
    assert "bundle.tgz" in result.output


def test_the_html_page_is_complete_in_itself(tmp_path):
    hostile = {**TEMPLATE, "metadata": {"name": "web", "annotations": {"note": "<script>"}}}
    path = tmp_path / "<b>.yaml"
    path.write_text(
        yaml.safe_dump({"capabilities": ["spares"], "fleet": {"nodes": [SPARES]}, "events": [{"apply": [hostile]}]})
    )
    done = invoke("--scenario", path, "-o", "html")
    assert done.exit_code == 0, done.output
    page = done.output
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert "Converges in" in page
    assert "spares/nodetemplates: Claimed x3" in page
    assert page.count("<svg") >= 2
    assert "&lt;b&gt;.yaml" in page
    assert [each for each in ("<b>", "<script", "http:", "https:", "url(", "@import") if each in page] == []


POOL = {
    "apiVersion": "lattice.dev/v1alpha1",
    "kind": "LatticeCluster",
    "metadata": {"name": "prod"},
    "spec": {
        "provider": {"kubernetes": {"version": "1.32.0"}, "config": {"docker": {}}},
        "nodes": {"controlPlane": 1, "workerPools": {"web": {"replicas": 2}}},
    },
}
POOLS = {"capabilities": ["pools"], "events": [{"apply": [POOL]}]}


def test_a_new_cluster_waits_for_its_machines(tmp_path):
    slow = rehearse(tmp_path, POOLS)
    assert slow["facts"]["nodes_created"] == 3
    fast = rehearse(tmp_path, POOLS, "--profile", "fast")
    assert fast["facts"]["nodes_created"] == 3
    assert slow["seconds"] > 10 * fast["seconds"]


def test_machines_that_do_not_boot_keep_it_from_converging(tmp_path):
    timeline = rehearse(tmp_path, POOLS, "--fault", "boot-fails=1", code=2)
    assert timeline["facts"]["nodes_created"] == 0
    assert timeline["reasons"]
    assert "machines or pods are awaited that did not come" in timeline["reasons"]


def test_a_slow_api_server_makes_the_operator_slower(tmp_path):
    scenario = {"capabilities": ["spares"], "fleet": {"nodes": [SPARES]}, "events": [{"at": "1s", "apply": [TEMPLATE]}]}
    fast, slow = (rehearse(tmp_path, scenario, *more) for more in ((), ("--fault", "slow-api=2s")))
    assert fast["seconds"] < 1.5
    assert slow["seconds"] > 3
    assert steps(slow) == steps(fast)


LEAF = {
    "apiVersion": "kosmos.io/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "east"},
    "spec": {"clusterTreeOptions": {"enable": True}},
}
TREE = {
    "capabilities": ["clustertree"],
    "fleet": {"leaves": {"east": {"nodes": [{"count": 3, "prefix": "east"}]}}},
    "events": [{"apply": [LEAF]}],
}


def test_a_leaf_cluster_is_mirrored_and_its_nodes_are_lost_while_it_is_silent(tmp_path):
    timeline = rehearse(tmp_path, TREE, "--fault", "leaf-silent=east@10m+10m", "--until", "40m")
    whats = [(each["what"], each["at"]) for each in timeline["changes"] if each["what"].startswith("node")]
    assert timeline["facts"]["nodes_created"] == 1
    assert timeline["converged"]
    lost = [at for what, at in whats if what == "node not ready" and at > 600]
    back = [at for what, at in whats if what == "node ready" and at > 1200]
    assert lost
    assert back
    assert 600 < min(lost) < 720
    assert 1200 < min(back) < 1320


EXAMPLES = Path(__file__).parents[2] / "examples"
PLACES = [{"count": 4, "zones": ["dc1", "dc2"], "labels": {"node.kubernetes.io/gpu": "true"}}]


@pytest.mark.parametrize(
    ("capability", "folder", "reason"),
    [("profiles", "05-profiles", "ServiceObjectCreated"), ("affinity", "03-affinity", "ReleaseApplied")],
)
def test_the_examples_of_applications_and_profiles_are_rehearsed(tmp_path, capability, folder, reason):
    order = {"classes.yaml": 0, "tenants.yaml": 1, "definitions.yaml": 2, "applications.yaml": 3}
    paths = sorted((EXAMPLES / folder).glob("*.yaml"), key=lambda path: order.get(path.name, 0))
    files = [str(path) for path in paths]
    scenario = {"capabilities": [capability], "fleet": {"nodes": PLACES}, "events": [{"files": files}]}
    timeline = rehearse(tmp_path, scenario)
    assert timeline["converged"]
    assert reason in {each["reason"] for each in timeline["steps"]}
