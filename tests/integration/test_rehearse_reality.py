"""A rehearsal shows what then happens: the same change on a cluster and on its twin, on both servers."""

import json
import subprocess
import sys

from tests.builders.spares_env import ENV_LABEL, node_metadata

from nodeyard.capabilities.spares import names

PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()", "rehearse", "-o", "json"]


def rehearse(api, path, objects):
    path.write_text("\n---\n".join(map(json.dumps, objects)))
    command = [*PROGRAM, "-f", path, "--from", "live", "--kubeconfig", api.kubeconfig, "--capabilities", "spares"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def template(env, word, nodes, **spec):
    body = {"selector": {"matchLabels": {ENV_LABEL: env.name}}, "nodes": nodes, "template": node_metadata(word), **spec}
    kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    return {**kind, "metadata": {"name": f"{env.name}-{word}"}, "spec": body}


def nodes_of(timeline, reason):
    steps = [each for each in timeline["steps"] if each["reason"] == reason]
    return {name.removeprefix("Node ") for step in steps for name in step["objects"]}


def names_of(nodes):
    return {node["metadata"]["name"] for node in nodes}


def test_spares_are_released_and_claimed_as_rehearsed(api, spares_env, operator, tmp_path):
    """Two surplus nodes of one template are emptied and released; another template takes the spares and then them."""
    spares_env.spares(6)
    operator("spares")
    web = spares_env.template("web", 4, releasePolicy="Release")
    before = names_of(spares_env.wait_for_owned(web, 4))
    changes = template(spares_env, "web", 2, releasePolicy="Release"), template(spares_env, "db", 4)

    timeline = rehearse(api, tmp_path / "change.yaml", changes)

    spares_env.change(web, nodes=2)
    db = spares_env.template("db", 4)
    claimed = names_of(spares_env.wait_for_owned(db, 4, timeout=60))
    released = before - names_of(spares_env.owned(web))
    assert timeline["converged"]
    assert nodes_of(timeline, "Claimed") == claimed
    assert nodes_of(timeline, "Released") == released
    # A released node can be claimed only afterwards, in both.
    begins = {each["reason"]: each["begin"] for each in timeline["steps"]}
    ends = {each["reason"]: each["end"] for each in timeline["steps"]}
    assert begins["Releasing"] <= begins["Released"] <= ends["Claimed"]
    releases = [each["eventTime"] for each in spares_env.wait_for_event(web, "Released")]
    claims = [each["eventTime"] for each in spares_env.wait_for_event(db, "Claimed")]
    assert min(claims) <= min(releases)
