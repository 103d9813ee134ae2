"""The dashboard on a server: views, what-if, approvals, and hidden objects."""

import base64
import json

import pytest
from tests.builders.dashboard import LOOPBACK, Page, local_page
from tests.builders.operators import operator as whole_operator
from tests.builders.operators import until

from nodeyard.app.dashboard.server import DashboardOptions
from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.kube.names import APPROVALS
from nodeyard.plan.brake import Limit

TEMPLATES = f"/apis/{names.GROUP}/{names.VERSION}/nodetemplates"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
async def page(api, spares_env):
    async with local_page(api.kubeconfig, SPARES) as page:
        yield page


def rows_of(snapshot):
    return {row[0]: dict(zip(snapshot["nodes"]["columns"], row, strict=True)) for row in snapshot["nodes"]["rows"]}


def plan_of(snapshot, key="nodetemplates"):
    return next((plan for plan in snapshot["plans"] if plan["key"] == key), None)


async def test_nodes_are_tiles_with_their_state(page, spares_env):
    spare = spares_env.spare("seen", zone="b")
    row = await page.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare))
    assert (row["zone"], row["state"]) == ("zone-b", "spare")


async def test_a_change_of_a_node_is_an_event_at_once(page, spares_env):
    spare = spares_env.spare("live")
    await page.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare))
    async with page.stream() as next_event:
        assert (await next_event())[1] == "snapshot"
        spares_env.patch(spare, {"spec": {"unschedulable": True}})
        _, _, data = await page.until(
            next_event, lambda name, data: name == "nodes" and spare in [row[0] for row in data["set"]]
        )
        (row,) = (row for row in data["set"] if row[0] == spare)
        assert row[7] == "draining"
        assert data["now"] - row[10] < 30
    history = await page.get("history")
    assert [change[1][7] for change in history["changes"] if change[1][0] == spare][-1] == "draining"
    assert history["from"] <= history["changes"][0][0] <= history["to"]


async def test_a_plan_is_shown_folded_and_its_actions_in_full(page, spares_env):
    for number in range(3):
        spares_env.spare(f"folded{number}")
    template = spares_env.template("folded", 3)

    def claims(snapshot):
        plan = plan_of(snapshot)
        groups = plan["groups"] if plan else []
        return next((group for group in groups if group["reason"] == "Claimed" and group["count"] >= 3), None)

    group = await page.until_snapshot(claims)
    assert (group["verb"], group["kind"], group["disruption"]) == ("Patch", "Node", "none")
    found = await page.get("plans/actions", capability="spares", key="nodetemplates", group=group["id"], limit="2")
    assert found["total"] == group["count"]
    assert len(found["actions"]) == 2
    assert all(each["message"] and each["diff"] for each in found["actions"])
    assert template in {change["to"] for each in found["actions"] for change in each["diff"] if "to" in change}


@pytest.fixture
def many(spares_env):
    """A template with 27 nodes to release."""

    def prepare(operator, word):
        names_of = [spares_env.spare(f"{word}{number}") for number in range(27)]
        template = spares_env.template(word, 27, releasePolicy="Release")
        running = operator(SPARES)
        spares_env.wait_for_owned(template, 27)
        running.stop()
        spares_env.change(template, nodes=0)
        return template, names_of

    return prepare


async def test_a_held_plan_is_explained_and_approved_with_ones_own_name(
    page, spares_env, api, operator, many, eventually
):
    template, nodes = many(operator, "approved")
    spares_env.pod("busy", nodes[0])
    held = await page.until_snapshot(lambda snapshot: (plan := plan_of(snapshot)) and plan.get("held"), 40)
    assert (held["nodes"], held["reason"]) == (27, "NeedsApproval")
    attention = (await page.get("snapshot"))["attention"]
    (item,) = (each for each in attention if each["kind"] == "HeldPlan")
    assert item["link"] == {"view": "plan", "capability": "spares", "key": "nodetemplates"}
    where = {"capability": "spares", "key": "nodetemplates"}
    preview = await page.get("approval", **where)
    assert (preview["id"], preview["nodes"]) == (held["id"], 27)
    assert preview["laterSteps"]
    assert nodes[0].partition("-")[0] in preview["pods"][0]["name"]

    stale = await page.post("approve", {**where, "id": "0123456789ab"}, status=409)
    assert stale["id"] == held["id"]
    done = await page.post("approve", {**where, "id": held["id"], "reason": "planned with ops"})
    assert done["approved"]
    (record,) = json.loads(spares_env.get_template(template)["metadata"]["annotations"][APPROVALS])
    assert (record["id"], record["reason"], record["by"]) == (held["id"], "planned with ops", done["by"])
    await page.until_snapshot(lambda snapshot: not (plan_of(snapshot) or {}).get("held"), 40)


async def test_why_answers_in_one_sentence_with_what_was_rejected(page, spares_env):
    spare = spares_env.spare("lacking", size="small")
    template = spares_env.template("lacking", 5, selector={"matchLabels": {"size": "large"}})
    await page.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare) and plan_of(snapshot))
    found = await page.get("why", kind="NodeTemplate", name=template)
    (answer,) = (each for each in found["answers"] if each["object"]["name"] == template)
    assert answer["by"] == "spares"
    assert answer["sentence"]
    assert answer["notes"][0]["reason"] == "NotServed"
    (candidate,) = (each for each in answer["candidates"] if each["name"] == spare)
    assert candidate["failed"] in answer["requirements"]
    assert candidate["message"]
    assert answer["total"] == len(answer["candidates"])
    assert answer["wouldChange"]


async def test_why_of_a_missing_object_reports_it(page):
    for asked in (
        {"kind": "Node", "name": "nobody"},
        {"kind": "Nonsense", "name": "x"},
        {"kind": "Secret", "name": "x"},
    ):
        status, _, body = await page.request("GET", "/api/v1/why", params=asked)
        assert status == 404
        assert json.loads(body)["error"]["message"]


async def test_search_finds_exact_names_first_and_objects_that_are_not_watched(page, spares_env, api):
    spare = spares_env.spare("find")
    spares_env.spare("find-more")
    await page.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare))
    found = await page.get("search", q=spare)
    assert (found[0]["kind"], found[0]["name"]) == ("Node", spare)
    (namespace,) = await page.get("search", q="namespace/default")
    assert (namespace["kind"], namespace["name"]) == ("Namespace", "default")
    assert await page.get("search", q="nothing-has-this-name") == []


async def test_what_if_marks_the_consequences_of_a_change(page, spares_env):
    spares_env.spare("tried")
    manifest = f"""
apiVersion: {names.API_VERSION}
kind: {names.KIND}
metadata: {{name: tried-out}}
spec:
  nodes: 1
  selector: {{matchLabels: {{for: tried}}}}
  template: {{metadata: {{labels: {{role: tried}}}}}}
"""
    status, _, body = await page.request(
        "POST", "/api/v1/whatif", data=manifest, headers={"Content-Type": "application/yaml"}
    )
    assert status == 200, body
    result = json.loads(body)
    new = [group for plan in result["plans"] for group in plan["groups"] if group.get("isNew")]
    assert "tried-out" in {sample["name"] for group in new for sample in group["samples"]}
    assert "**Patch NodeTemplate**" in result["markdown"]
    status, _, body = await page.request("GET", "/api/v1/why?kind=NodeTemplate&name=tried-out")
    assert status == 404


@pytest.mark.parametrize(
    ("manifest", "status", "told"),
    [
        ("{}", 422, "an object needs apiVersion"),
        ("", 400, "contains no object"),
        ("a: [", 422, "manifest"),
        ("apiVersion: nobody.example/v1\nkind: Owl\nmetadata: {name: x}", 422, "does not serve Owl"),
    ],
)
async def test_a_manifest_that_cannot_be_tried_out_is_refused_with_the_reason(page, manifest, status, told):
    answered, _, body = await page.request(
        "POST", "/api/v1/whatif", data=manifest, headers={"Content-Type": "application/yaml"}
    )
    assert answered == status
    assert told in json.loads(body)["error"]["message"]


POD = """
apiVersion: v1
kind: Pod
metadata: {{name: try}}
spec:
  nodeSelector: {{kubernetes.io/hostname: {name}}}
  containers: [{{name: c, image: i}}]
"""


async def test_could_it_run_names_the_requirement_that_each_node_fails(page, spares_env):
    spare = spares_env.spare("could")
    await page.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare))
    answer = await page.post("could-run", {"yaml": POD.format(name="no-such-host")})
    assert answer["verdict"] == "No"
    assert answer["total"] == sum(answer["byRequirement"].values())
    assert all(node["failed"] and node["message"] for node in answer["nodes"])
    await page.post("could-run", {"yaml": "kind: Node"}, status=400)
    await page.post("could-run", {}, status=400)


def asking(node, **requests):
    """Build a pod for this node with these requests."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asking", "namespace": "default"},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "affinity": only_on(node),
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
        },
    }


def only_on(node):
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


async def test_could_it_run_counts_what_other_pods_use(page, spares_env, api):
    spare = spares_env.spare("room")
    await page.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare))

    async def verdict(**requests):
        return await page.post("could-run", {"yaml": json.dumps(asking(spare, **requests))})

    def fit_of(answer):
        return next(node for node in answer["nodes"] if node["name"] == spare)

    assert (await verdict(cpu="4"))["verdict"] == "Yes"
    too_much = await verdict(cpu="5")
    assert (too_much["verdict"], too_much["byRequirement"]["cpu"]) == ("No", 1)
    other = asking(spare, cpu="3")
    other["metadata"]["name"] = f"{spares_env.name}-user"
    other["spec"]["nodeName"] = spare
    api.rest.create(other)
    try:
        assert fit_of(await verdict(cpu="2"))["failed"] == "cpu"
        answer = await verdict(cpu="1")
        assert (answer["verdict"], fit_of(answer)["isTaken"]) == ("Yes", True)
        running = await page.post("could-run", {"namespace": "default", "name": other["metadata"]["name"]})
        assert running["sentence"].startswith(f"The pod runs on {spare}")
    finally:
        api.rest.call("DELETE", f"/api/v1/namespaces/default/pods/{other['metadata']['name']}?gracePeriodSeconds=0")
    spares_env.patch(spare, {"spec": {"unschedulable": True}})
    await page.until_snapshot(lambda snapshot: rows_of(snapshot)[spare]["state"] == "draining")
    strict = asking(spare, cpu="1")
    strict["spec"]["tolerations"] = []
    answer = await page.post("could-run", {"yaml": json.dumps(strict)})
    assert fit_of(answer)["failed"] == "Taints"


async def test_a_pod_that_the_cluster_refuses_could_not_run(page):
    refused = asking("n1", cpu="-1")
    answer = await page.post("could-run", {"yaml": json.dumps(refused)})
    assert answer["verdict"] == "Refused"
    assert "must be greater than or equal to 0" in answer["sentence"]


async def test_no_secret_is_in_any_answer(page, api, spares_env):
    word = "correct-horse-battery"
    api.rest.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "dash-secret", "namespace": "default"},
            "data": {"password": base64.b64encode(word.encode()).decode()},
        }
    )
    encoded = base64.b64encode(word.encode())
    asked = ["snapshot", "history", "search?q=dash-secret", "search?q=secret/default/dash-secret"]
    asked += [
        "why?kind=Secret&namespace=default&name=dash-secret",
        "why?kind=secrets.&namespace=default&name=dash-secret",
    ]
    try:
        for path in asked:
            _, headers, body = await page.request("GET", f"/api/v1/{path}")
            for hidden in (word.encode(), encoded, api.admin_token.encode()):
                assert hidden not in body, path
            assert api.admin_token not in str(headers)
    finally:
        api.rest.call("DELETE", "/api/v1/namespaces/default/secrets/dash-secret")


# beside the operator


@pytest.fixture
async def beside(api, spares_env):
    """An operator that holds every release, and its page before a login."""
    options = {"settings": {"limit": Limit(nodes=0, percent=0)}, "dashboard": DashboardOptions(LOOPBACK)}
    async with whole_operator(api.kubeconfig, capability=SPARES, install_crds=False, **options) as running:
        page = Page(f"http://127.0.0.1:{running.ports['dashboard']}")
        yield page
        await page.close()


async def test_the_operators_page_wants_a_bearer_token(beside, api):
    assert (await beside.request("GET", "/api/v1/snapshot"))[0] == 401
    assert (await beside.request("GET", "/"))[0] == 200
    refused = await beside.post("login", {"token": "nobody"}, status=401)
    assert refused["error"]["remedy"]
    viewer = await beside.post("login", {"token": api.admin_token})
    assert viewer == {"name": "admin", "canApprove": True}
    assert (await beside.get("snapshot"))["viewer"]["name"] == "admin"


async def test_the_operators_page_shows_its_own_passes_and_approves(beside, api, spares_env):
    await beside.post("login", {"token": api.admin_token})
    spare = spares_env.spare("beside")
    template = spares_env.template("beside", 1, releasePolicy="Release")
    await beside.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare, {}).get("template") == template, 40)
    (process,) = await beside.until_snapshot(
        lambda snapshot: [each for each in snapshot["operators"] if each["state"] == "Running"]
    )
    assert (process["capability"], process["limit"]) == ("spares", "0")
    spares_env.change(template, nodes=0)
    held = await beside.until_snapshot(lambda snapshot: (plan := plan_of(snapshot)) and plan.get("held"), 40)
    await beside.post("approve", {"capability": "spares", "key": "nodetemplates", "id": held["id"], "reason": "test"})
    await beside.until_snapshot(lambda snapshot: rows_of(snapshot)[spare]["state"] in ("releasing", "spare"), 40)

    async def settled():
        return not (plan_of(await beside.get("snapshot")) or {}).get("held")

    await until(settled, "the plan is not held any more", 40)


async def token_of(api, name, *rules):
    """Return a bearer token of a new account with these rights in the whole cluster."""
    account = {"name": name, "namespace": "default"}
    api.rest.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    api.rest.create({**role, "kind": "ClusterRole", "rules": list(rules)})
    api.rest.create(
        {
            **role,
            "kind": "ClusterRoleBinding",
            "subjects": [{"kind": "ServiceAccount", **account}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        }
    )
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    return api.rest.call("POST", path, asked)["status"]["token"]


def rule(group, resources, *verbs):
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


NODES = rule("", ["nodes"], "list", "get")
READS_SPARES = rule(names.GROUP, ["nodetemplates"], "list", "get")


async def test_a_viewer_sees_no_more_than_their_token_may_list(beside, api, spares_env):
    spare = spares_env.spare("rights")
    spares_env.template("rights", 3)
    nobody = await token_of(api, f"{spares_env.name}-nobody")
    refused = await beside.post("login", {"token": nobody}, status=403)
    assert "may not list nodes" in refused["error"]["message"]
    only_nodes = await token_of(api, f"{spares_env.name}-nodes", NODES)
    viewer = await beside.post("login", {"token": only_nodes})
    assert not viewer.get("canApprove")
    snapshot = await beside.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare) and snapshot)
    assert [snapshot[name] for name in ("plans", "attention", "operators")] == [[], [], []]
    asked = {"capability": "spares", "key": "nodetemplates", "id": "0123456789ab"}
    await beside.post("approve", asked, status=404)
    assert await beside.get("search", q=f"{spares_env.name}-rights") == [
        {"kind": "Node", "apiVersion": "v1", "name": spare}
    ]
    assert (await beside.request("GET", f"/api/v1/why?kind=NodeTemplate&name={spare}"))[0] == 403


async def test_a_viewer_without_patch_rights_gets_the_approve_command(beside, api, spares_env):
    reads = rule("", ["pods"], "list", "get")
    token = await token_of(api, f"{spares_env.name}-reader", NODES, READS_SPARES, reads)
    viewer = await beside.post("login", {"token": token})
    assert not viewer.get("canApprove")
    spare = spares_env.spare("reader")
    template = spares_env.template("reader", 1, releasePolicy="Release")
    await beside.until_snapshot(lambda snapshot: rows_of(snapshot).get(spare, {}).get("template") == template, 40)
    spares_env.change(template, nodes=0)
    held = await beside.until_snapshot(lambda snapshot: (plan := plan_of(snapshot)) and plan.get("held"), 40)
    asked = {"capability": "spares", "key": "nodetemplates", "id": held["id"]}
    refused = await beside.post("approve", asked, status=403)
    assert f"nodeyard approve {held['id']}" in refused["error"]["remedy"]
    assert APPROVALS not in spares_env.get_template(template)["metadata"].get("annotations", {})
