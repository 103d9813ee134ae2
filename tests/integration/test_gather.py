"""`nodeyard gather`, and what `plan --from`, `why --from` and `apiserver --load` make of its bundle."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from tests.builders.affinity_env import ROOT, unique
from tests.builders.pools import pool
from tests.builders.profiles_env import ProfilesEnv

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.bundle.reader import read_bundle
from nodeyard.testing import third_party_crds

PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()"]
CHANGES = 2


def run(*arguments, codes=(0,)):
    done = subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in codes, done.stdout + done.stderr
    return done


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
ID = re.compile(r"^[0-9a-f]{12}$")


def timeless(text):
    """Return JSON without the times that a plan writes, and the ids that are computed from them."""
    return normalize(json.loads(text))


def normalize(value):
    if isinstance(value, dict):
        return {key: normalize(each) for key, each in value.items()}
    if isinstance(value, list):
        return [normalize(each) for each in value]
    return ID.sub("id", TIME.sub("time", value)) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def all_kinds(api):
    third_party_crds.install(api.rest, [definition for each in CAPABILITIES for definition in each.definitions()])


@pytest.fixture
def fleet(api, all_kinds, own_pools_env, spares_env, tree, own_affinity_env):
    """Objects of all five capabilities, and no operator: everything is still to be done."""
    spares_env.spares(3)
    template = spares_env.template("web", 2)
    tree.leaf.node("l1", cpu="8")
    east = tree.cluster("east")
    node_class = own_pools_env.node_class(own_pools_env.name("class"))
    cluster = own_pools_env.cluster(own_pools_env.name(), workerPools={"gpu": pool(2, nodeClass=node_class)})
    affinity_class = own_affinity_env.affinity_class(unique("fast"), nodeSelector={"disk": "ssd"})
    tenant = own_affinity_env.tenant(unique("acme"), defaultAffinityClass=affinity_class)
    profiles = ProfilesEnv(api.rest)
    profile = profiles.compute_profile("cores", "[DEFAULT]\ncpu_shared_set = 0-3\n")
    profiles.role(annotations={"nova.openstack.org/compute-profile": profile})
    node = profiles.node("compute-0")
    yield {
        f"nodetemplate/{template}": "",
        f"leaf/{east}": "",
        f"latticecluster/{cluster}": "",
        f"pool/{cluster}/gpu": "",
        f"affinityclass/{affinity_class}": "",
        f"tenant/{tenant}": ROOT,
        f"openstackdataplanenode/{node}": profiles.namespace,
        f"computeprofile/{profile}": profiles.namespace,
    }
    profiles.close()


def test_plan_and_why_of_a_bundle_are_those_of_the_cluster(api, fleet, tmp_path):
    bundle, cluster = tmp_path / "bundle.tgz", ("--kubeconfig", api.kubeconfig)
    gathered = run("gather", "-o", bundle, *cluster)
    live = json.loads(run("plan", "-o", "json", *cluster, codes=(CHANGES,)).stdout)
    replayed = run("plan", "-o", "json", "--from", bundle, codes=(CHANGES,))

    assert "hashes" not in replayed.stderr, gathered.stderr
    planned = {each["capability"] for each in live["items"] if each.get("actions")}
    assert planned == {each.name for each in CAPABILITIES}
    assert timeless(replayed.stdout) == timeless(json.dumps(live))
    assert timeless(json.dumps(read_bundle(bundle).documents["plans"])) == timeless(json.dumps(live))

    for subject, namespace in fleet.items():
        options = ("-n", namespace) if namespace else ()
        said = run("why", subject, "-o", "json", *options, *cluster).stdout
        replayed = run("why", subject, "-o", "json", *options, "--from", bundle)
        assert timeless(replayed.stdout) == timeless(said)
