"""`nodeyard gather`, and what `plan --from`, `why --from` and `apiserver --load` make of its bundle."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from dataclasses import replace
from urllib.request import urlopen

import pytest
from tests.builders import remote_clusters
from tests.builders.affinity_env import ROOT, tenant_body, unique
from tests.builders.pools import pool
from tests.builders.profiles import SHARED
from tests.builders.profiles_env import ProfilesEnv
from tests.builders.rights import people

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.gather import gather, write
from nodeyard.app.replay import replaying
from nodeyard.bundle.reader import read_bundle
from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.runtime.capability import RemoteClusterRef
from nodeyard.testing import third_party_crds
from nodeyard.testing.ports import free_port
from nodeyard.testing.session import APPLY
from nodeyard.testing.wait import until

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
def profiles_env(api, all_kinds):
    profiles_env = ProfilesEnv(api.rest)
    yield profiles_env
    profiles_env.close()


@pytest.fixture
def fleet(api, profiles_env, own_pools_env, spares_env, tree, own_affinity_env):
    """Objects of all five capabilities, and no operator: everything is still to be done."""
    spares_env.spares(3)
    template = spares_env.template("web", 2)
    tree.leaf.node("l1", cpu="8")
    east = tree.cluster("east")
    node_class = own_pools_env.node_class(own_pools_env.name("class"))
    cluster = own_pools_env.cluster(own_pools_env.name(), workerPools={"gpu": pool(2, nodeClass=node_class)})
    affinity_class = own_affinity_env.affinity_class(unique("fast"), nodeSelector={"disk": "ssd"})
    tenant = unique("acme")
    own_affinity_env.create(tenant_body(tenant, defaultAffinityClass=affinity_class))
    profiles = profiles_env
    profile = profiles.compute_profile("cores", SHARED)
    profiles.role(annotations={names.COMPUTE_PROFILE: profile, names.CELL: "nova-cell1"})
    node = profiles.node("compute-0")
    return {
        f"nodetemplate/{template}": "",
        f"leaf/{east}": "",
        f"latticecluster/{cluster}": "",
        f"pool/{cluster}/gpu": "",
        f"affinityclass/{affinity_class}": "",
        f"tenant/{tenant}": ROOT,
        f"openstackdataplanenode/{node}": profiles.namespace,
        f"computeprofile/{profile}": profiles.namespace,
    }


@pytest.mark.timeout(400)
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


# secrets


PLANTED = "Pl4nt3d-in-every-corner"
CONTAINER = {
    "name": "c",
    "image": "registry.example/app:v1",
    "command": ["sh", "-c", f"login {PLANTED}"],
    "args": [f"--token={PLANTED}"],
    "env": [{"name": "PASSWORD", "value": PLANTED}],
    "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": PLANTED}]}},
}
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def plant(rest, name, version="v1", **more):
    """Create objects that hold the secret wherever objects may hold one."""
    metadata = {"name": name, "namespace": "default"}
    annotations = {APPLIED: json.dumps({"stringData": {"password": PLANTED}}), "example.com/hook": PLANTED}
    for obj in (
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": PLANTED}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a.ini": f"password={PLANTED}"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations},
         "spec": {"providerID": f"https://user:{PLANTED}@cloud/vm"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "annotations": annotations},
         "spec": {"containers": [CONTAINER]}},
        {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": metadata, "action": "Test", "reason": "Failed",
         "type": "Warning", "eventTime": "2026-11-19T12:00:00.000000Z", "note": f"dial: password is {PLANTED}",
         "reportingController": "example.com/test", "reportingInstance": "test",
         "regarding": {"apiVersion": "v1", "kind": "Pod", **metadata}},
    ):  # fmt: skip
        rest.replace_or_create(obj)
        paths = {"Node": f"/api/v1/nodes/{name}/status", "Pod": f"/api/v1/namespaces/default/pods/{name}/status"}
        if obj["kind"] in paths:
            condition = {"type": "Ready", "status": "False", "reason": "Failed", "message": f"bad token {PLANTED}"}
            query = "?fieldManager=planter&force=true"
            status = {"apiVersion": "v1", "kind": obj["kind"], "metadata": {"name": name}}
            rest.call(
                "PATCH",
                paths[obj["kind"]] + query,
                {**status, "status": {"conditions": [condition]}},
                content_type=APPLY,
            )


def release(name):
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "interval": "5m",
            "chart": {"spec": {"chart": "app", "sourceRef": {"kind": "HelmRepository", "name": "apps"}}},
            "values": {"database": {"name": PLANTED, "password": PLANTED, "hosts": [f"https://u:{PLANTED}@db/"]}},
        },
    }


def forms(secret):
    """Return the secret in plain text, base64 at each offset, and hexadecimal."""
    plain = secret.encode()
    yield plain
    yield plain.hex().encode()
    for offset in range(3):
        found = base64.b64encode(b"\0" * offset + plain)
        # The first and the last characters also depend on what is around the secret.
        yield found[4 if offset else 0 : -4]


def test_no_secret_is_in_the_bundle(api, all_kinds, affinity_crds, tree, leaf_servers, tmp_path):
    name = unique("planted")
    plant(api.rest, name)
    plant(leaf_servers[0].rest, name)
    api.rest.replace_or_create(release(name))
    inline, referenced = tree.cluster("inline", inline=True), tree.cluster("referenced")

    run("gather", "-o", tmp_path / "bundle.tgz", "--kubeconfig", api.kubeconfig)

    content = gzip.decompress((tmp_path / "bundle.tgz").read_bytes())
    token = leaf_servers[0].admin_token
    assert {f"clustertree/{inline}", f"clustertree/{referenced}"} <= set(read_bundle(tmp_path / "bundle.tgz").clusters)
    assert content.count(name.encode()) > 5
    for secret in (PLANTED, token, leaf_servers[0].kubeconfig.read_text()):
        for form in forms(secret):
            assert form not in content
    for kind in ("nodes", "events", "pods", "secrets", "configmaps"):
        path = "/api/v1/nodes" if kind == "nodes" else f"/api/v1/namespaces/default/{kind}"
        for rest in (api.rest, leaf_servers[0].rest):
            rest.call("DELETE", f"{path}/{name}")
    api.rest.call("DELETE", f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/default/helmreleases/{name}")


# remote clusters


async def test_clusters_of_the_same_name_of_two_capabilities_are_kept_apart(api, leaf_servers, tmp_path):
    capabilities, nodes = [], {}
    for name, leaf in zip(("oaks", "elms"), leaf_servers, strict=True):
        declared = remote_clusters.leaves(unique(name))
        ref = RemoteClusterRef("east", leaf.kubeconfig.read_bytes())
        remote = replace(declared.remote, clusters=lambda _view, ref=ref: [ref])
        capabilities.append(replace(declared, name=name, remote=remote))
        nodes[name] = unique(name)
        leaf.rest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": nodes[name]}})
    client = Client(HttpTransport(load_config(api.kubeconfig)))
    try:
        write(tmp_path / "bundle.tgz", await gather(client, capabilities))
    finally:
        await client.close()
        for name, leaf in zip(nodes, leaf_servers, strict=True):
            leaf.rest.call("DELETE", f"/api/v1/nodes/{nodes[name]}")

    bundle = read_bundle(tmp_path / "bundle.tgz")
    assert set(bundle.clusters) == {"oaks/east", "elms/east"}
    async with replaying(bundle) as replay, replay.planner(capabilities) as planner:
        for name in nodes:
            found = planner.views[name].cluster("east").all("Node")
            assert [each.metadata.name for each in found] == [nodes[name]]


# rights


def test_what_may_not_be_read_is_left_out_with_one_line_each(api, all_kinds, spares_env, tmp_path):
    spares_env.spares(1)
    template = spares_env.template("web", 1)
    rules = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]},
        {"apiGroups": ["nyallocator.cybozu.io"], "resources": ["nodetemplates"], "verbs": ["get", "list"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]},
    ]
    limited = api.user(unique("limited"), rules=rules)
    bundle = tmp_path / "bundle.tgz"

    done = run("gather", "-o", bundle, "--kubeconfig", limited)

    lines = done.stderr.splitlines()
    assert all(each.startswith("left out: ") for each in lines)
    assert len({each.split(": ")[1] for each in lines}) == len(lines)
    for kind in ("poddisruptionbudgets.policy", "events.events.k8s.io", "plans of pools", "plans of affinity"):
        assert any(each.startswith(f"left out: {kind}: ") for each in lines), kind
    assert f"{template}" in run("plan", "--from", bundle, codes=(CHANGES,)).stdout
    assert template in run("why", f"nodetemplate/{template}", "--from", bundle).stdout


def test_the_role_of_the_chart_is_enough_and_what_it_leaves_out_is_named(
    api, all_kinds, affinity_crds, spares_env, tree, tmp_path
):
    """It leaves out what holds credentials, and the plans that need that."""
    spares_env.spares(1)
    template = spares_env.template("web", 1)
    tree.cluster("east")
    bundle = tmp_path / "bundle.tgz"
    with people(api, CAPABILITIES) as bind:
        kubeconfig = bind("nodeyard-gatherer", unique("gatherer"))

        def left_out():
            lines = run("gather", "-o", bundle, "--kubeconfig", kubeconfig).stderr.splitlines()
            return sorted(each.split(": ")[:2] for each in lines)

        expected = ["clusters.kosmos.io", "plans of affinity", "plans of clustertree", "secrets"]
        until(lambda: left_out() == [["left out", each] for each in expected], "only these are left out", 60.0)

    assert 'API group "kosmos.io"' in str(read_bundle(bundle).manifest.omitted[0])
    assert template in run("plan", "--from", bundle, codes=(CHANGES,)).stdout
    assert template in run("why", f"nodetemplate/{template}", "--from", bundle).stdout


# hidden plans


def test_a_plan_that_rests_on_a_hashed_value_is_left_out_and_named(api, profiles_env, operator, tmp_path):
    """The profile has a word that a bundle hashes, so that its configuration has another checksum there."""
    profile = profiles_env.compute_profile("cores", f"{SHARED}volume_group = hunter2\n")
    profiles_env.role(annotations={names.COMPUTE_PROFILE: profile, names.CELL: "nova-cell1"})
    node = profiles_env.node("compute-0")
    operator(PROFILES)
    profiles_env.wait_until_settled(node, profile)
    bundle = tmp_path / "bundle.tgz"

    run("gather", "-o", bundle, "--kubeconfig", api.kubeconfig)

    subject = (f"openstackdataplanenode/{node}", "-n", profiles_env.namespace)
    planned = run("plan", "--from", bundle, "--capabilities", "profiles", codes=(0, CHANGES))
    explained = run("why", *subject, "--from", bundle, codes=(1,))
    key = f"profiles: node/{profiles_env.namespace}/{node}"
    line = f"{key}: left out: its plan rests on values that the bundle has only as hashes"
    for done in (planned, explained):
        assert [each for each in done.stderr.splitlines() if each.startswith(line)], done.stderr
        assert node not in done.stdout


# metrics


def test_metrics_of_a_running_operator_are_in_the_bundle(api, spares_env, tmp_path):
    url = f"http://127.0.0.1:{free_port()}/metrics"
    binds = ("--health-bind", "0", "--webhook-bind", "0", "--metrics-bind", url.split("/")[2])
    command = [*PROGRAM, "run", "--kubeconfig", str(api.kubeconfig), "--capabilities", "spares", *binds]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: b'nodeyard_leader{capability="spares"} 1.0' in read(url), "the operator leads", 60.0)
            run("gather", "-o", tmp_path / "bundle.tgz", "--metrics", url, "--kubeconfig", api.kubeconfig)
        finally:
            process.terminate()

    metrics = read_bundle(tmp_path / "bundle.tgz").documents["metrics"]
    assert 'nodeyard_leader{capability="spares"} 1.0' in metrics["url"]


def read(url):
    try:
        with urlopen(url, timeout=5) as response:
            return response.read()
    except OSError:
        return b""


# serving


def test_the_embedded_server_serves_the_cluster_of_a_bundle(api, all_kinds, spares_env, tmp_path):
    (node,) = spares_env.spares(1)
    template = spares_env.template("web", 1)
    run("gather", "-o", tmp_path / "bundle.tgz", "--kubeconfig", api.kubeconfig)

    kubeconfig = tmp_path / "kubeconfig"
    options = ("--load", tmp_path / "bundle.tgz", "--port", "0", "--kubeconfig-out", kubeconfig, "--controllers", "")
    command = [*PROGRAM, "apiserver", *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            served = run("why", f"nodetemplate/{template}", "-o", "json", "--kubeconfig", kubeconfig).stdout
        finally:
            process.terminate()
    said = run("why", f"nodetemplate/{template}", "-o", "json", "--from", tmp_path / "bundle.tgz").stdout
    assert timeless(served) == timeless(said)
    assert node in said


@pytest.mark.parametrize(
    "arguments", [("plan",), ("why", "node/n1"), ("apiserver", "--port", "0", "--kubeconfig-out", "kc")]
)
def test_a_bad_bundle_is_one_line_and_writes_nothing(arguments, tmp_path):
    bad = tmp_path / "bad.tgz"
    bad.write_bytes(gzip.compress(b"no bundle" * 100))
    option = "--load" if arguments[0] == "apiserver" else "--from"
    command = [*PROGRAM, *arguments, option, str(bad)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "bad.tgz" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["bad.tgz"]
