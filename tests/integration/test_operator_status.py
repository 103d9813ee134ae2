"""The operator publishes itself on its Lease, and `plan`, `why`, `approve` and `status` read it."""

import json
import os
import subprocess
import sys
import time

import pytest

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.kube.names import APPROVALS, APPROVE, NAMESPACE, OPERATOR
from nodeyard.plan.brake import parse_limit
from nodeyard.process.version import VERSION
from nodeyard.runtime import rbac
from nodeyard.testing import third_party_crds

PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()"]
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/nodeyard-spares"


def nodeyard(kubeconfig, *arguments, **environment):
    given = {**os.environ, "KUBECONFIG": str(kubeconfig), **environment}
    command = [*PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, env=given, check=False)


def condition(spares_env, template, kind):
    found = (spares_env.get_template(template).get("status") or {}).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), None)


def published(api):
    return json.loads(api.rest.get(LEASE)["metadata"].get("annotations", {}).get(OPERATOR, "{}"))


def test_a_held_plan_is_reported_everywhere_and_runs_when_it_is_approved(api, spares_env, operator, eventually):
    running = operator("spares", limit=parse_limit("1"))
    spares_env.spares(3)
    web = spares_env.template("web", 3, releasePolicy="Release")
    spares_env.wait_for_owned(web, 3)
    assert condition(spares_env, web, "Held") is None
    spares_env.change(web, nodes=0)
    eventually(lambda: condition(spares_env, web, "Held"), "the template says that its plan is held")
    (held,) = running.held.values()
    told = condition(spares_env, web, "Held")
    assert (told["status"], told["reason"]) == ("True", "NeedsApproval")
    assert f"nodeyard approve {held.id}" in told["message"]

    eventually(lambda: published(api).get("held"), "the Lease tells of it")
    assert published(api) == {
        "version": VERSION,
        "limit": "1",
        "held": [{"id": held.id, "key": held.key, "nodes": 3, "actions": len(held.actions), "disrupts": "3 nodes"}],
        "heldCount": 1,
    }

    status = nodeyard(api.kubeconfig, "status")
    assert status.returncode == 0, status.stderr
    (row,) = [line for line in status.stdout.splitlines() if line.startswith("spares ")]
    assert row.split()[1:6] == [running.identity, VERSION, "yes", "1", "1"]
    assert f"{held.id}  spares {held.key}: 3 nodes" in status.stdout

    plan = nodeyard(api.kubeconfig, "plan")
    assert plan.returncode == 2, plan.stderr
    headline = plan.stdout.splitlines()[0]
    assert f"version {VERSION} runs spares with limit 1." in headline
    assert "Skipped, not running: pools, affinity, clustertree, profiles" in headline
    assert f"nodeyard approve {held.id}" in " ".join(plan.stdout.split())
    assert "3 objects held for approval" in plan.stdout
    assert "nothing to do" not in plan.stdout

    words = {"_NODEYARD_COMPLETE": "complete_bash", "COMP_WORDS": "nodeyard approve ", "COMP_CWORD": "2"}
    eventually(
        lambda: held.id in nodeyard(api.kubeconfig, **words).stdout.split(), "the shell completes its id in time"
    )

    why = nodeyard(api.kubeconfig, "why", f"nt/{web}")
    assert why.returncode == 0, why.stderr
    assert why.stdout.splitlines()[0] == headline
    assert "NeedsApproval: held: 3 of" in why.stdout
    assert "SufficientNodes: " not in why.stdout

    assert f"{held.id}  spares {held.key}: 3 nodes disrupted by" in nodeyard(api.kubeconfig, "approve").stdout
    approved = nodeyard(api.kubeconfig, "approve", held.id, "--reason", "the web farm moves")
    assert approved.returncode == 0, approved.stderr
    eventually(lambda: spares_env.owned(web) == [], "the nodes are released")
    eventually(lambda: condition(spares_env, web, "Held") is None, "nothing is held any more")
    (record,) = json.loads(spares_env.get_template(web)["metadata"]["annotations"][APPROVALS])
    assert (record["id"], record["reason"]) == (held.id, "the web farm moves")
    assert record.get("by") or not api.is_real, "the embedded server does not tell a user who it is"
    eventually(
        lambda: APPROVE not in spares_env.get_template(web)["metadata"]["annotations"],
        "the approval ends with what it was given for",
    )
    revoked = nodeyard(api.kubeconfig, "approve", held.id, "--revoke")
    assert revoked.returncode == 1
    assert f"no object has an approval of {held.id} in its annotation {APPROVE}" in revoked.stderr


def test_an_approval_is_revoked_before_anything_runs(api, spares_env, operator, eventually):
    running = operator("spares", limit=parse_limit("1"))
    spares_env.spares(3)
    web = spares_env.template("web", 3, releasePolicy="Release")
    spares_env.wait_for_owned(web, 3)
    spares_env.change(web, nodes=0)
    eventually(lambda: condition(spares_env, web, "Held"), "the template says that its plan is held")
    (held,) = running.held.values()
    running.stop()

    approved = nodeyard(api.kubeconfig, "approve", held.id)
    assert approved.returncode == 0, approved.stderr
    assert spares_env.get_template(web)["metadata"]["annotations"][APPROVE] == held.id
    revoked = nodeyard(api.kubeconfig, "approve", held.id, "--revoke")
    assert revoked.stdout == f"{held.id} revoked on NodeTemplate {web}\n", revoked.stderr
    assert not {APPROVE, APPROVALS} & set(spares_env.get_template(web)["metadata"].get("annotations", {}))

    again = operator("spares", limit=parse_limit("1"))
    eventually(lambda: [each.id for each in again.held.values()] == [held.id], "the plan is held again")
    assert len(spares_env.owned(web)) == 3


def test_status_reports_an_observe_only_operator_and_ignores_a_stopped_one(api, spares_env, operator):
    running = operator("spares", observe=True)
    spares_env.spares(1)
    spares_env.template("web", 1)
    running.wait_until_leading()
    plan = nodeyard(api.kubeconfig, "plan")
    assert "observes spares" in plan.stdout.splitlines()[0]
    assert "writes nothing (--observe)" in plan.stdout.splitlines()[0]
    running.stop()
    why = nodeyard(api.kubeconfig, "why", f"nt/{spares_env.name}-web")
    assert why.stdout.startswith("Operator: none runs on this cluster"), why.stdout
    assert "NotServed: no operator runs spares" in why.stdout
    status = nodeyard(api.kubeconfig, "status")
    assert "spares: not running: its Lease was released" in status.stdout


@pytest.fixture
def all_kinds(api):
    third_party_crds.install(api.rest, [definition for each in CAPABILITIES for definition in each.definitions()])


def test_an_object_of_a_capability_that_no_operator_runs_is_not_passed_over(
    api, spares_env, all_kinds, operator, request
):
    operator("spares").wait_until_leading()
    body = {
        "apiVersion": "cozystack.io/v1alpha1",
        "kind": "AffinityClass",
        "metadata": {"name": "not-served"},
        "spec": {"nodeSelector": {"a": "b"}},
    }
    api.rest.replace_or_create(body)
    request.addfinalizer(lambda: api.rest.call("DELETE", f"{api.rest.collection(body)}/not-served"))
    why = nodeyard(api.kubeconfig, "why", "affinityclass/not-served")
    assert why.returncode == 0, why.stderr
    assert "Skipped, not running: pools, affinity, clustertree, profiles" in why.stdout.splitlines()[0]
    assert "NotServed: no operator runs affinity on this cluster" in why.stdout


def timed(kubeconfig):
    began = time.monotonic()
    done = nodeyard(kubeconfig, "plan")
    return time.monotonic() - began, done


def test_a_missing_right_leaves_out_its_capability_at_once_in_one_line(api, spares_env, all_kinds):
    reading = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}]
    spares_env.template("web", 1)
    nobody = api.user("may-only-get", rules=reading)
    # Shorter than the timeout of caches, and longer than a slow machine needs.
    usual, _ = timed(api.kubeconfig)
    seconds, done = timed(nobody)
    assert seconds < 2 * usual + 15
    assert done.returncode == 1, done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "nodeyard-reader" in done.stderr

    some = api.user("may-read-spares", rules=[*rbac.rules(SPARES), *reading])
    done = nodeyard(some, "plan")
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if ": skipped: " in line]
    assert [line.partition(":")[0] for line in lines] == ["pools", "affinity", "clustertree", "profiles"]
    assert all("cannot list" in line or "cannot watch" in line for line in lines)
    assert len(done.stderr) < 2000


def test_an_account_with_the_rights_of_the_chart_can_plan(api, spares_env, all_kinds):
    user = "as-the-chart-has-it"
    kubeconfig = api.user(user, rules=[rule for each in CAPABILITIES for rule in rbac.rules(each)])
    api.rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.user(user, rules=[rule for each in CAPABILITIES for rule in rbac.local_rules(each)], namespace=NAMESPACE)
    spares_env.spares(1)
    spares_env.template("web", 1)
    done = nodeyard(kubeconfig, "plan")
    assert (done.returncode, done.stderr) == (2, "")
    assert "Claimed" in done.stdout
