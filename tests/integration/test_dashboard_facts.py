"""Facts that capabilities and the recorder give to the page while operators run."""

import pytest
from tests.builders.dashboard import LOOPBACK, Page, local_page
from tests.builders.operators import operator as whole_operator
from tests.builders.operators import until

from nodeyard.app.dashboard.server import DashboardOptions
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.plan.brake import Limit
from nodeyard.testing.faults import Drop, FaultProxy, TruncateEvents

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
async def page(api, spares_env):
    async with local_page(api.kubeconfig, SPARES) as page:
        yield page


def about(snapshot, section, name):
    return next((each for each in snapshot[section] if each["object"]["name"] == name), None)


async def test_a_shortage_appears_and_goes(page, spares_env, operator):
    operator(SPARES)
    label = f"{spares_env.name}-short"
    template = spares_env.template("short", 1, selector={"matchLabels": {"for": label}})
    item = await page.until_snapshot(lambda snapshot: about(snapshot, "attention", template), 40)
    assert (item["kind"], item["severity"], item["reason"]) == ("Shortage", "critical", "NoSpareNodesFound")
    assert item["link"] == {"view": "yard", "group": "template", "template": template}

    spares_env.spare("short", **{"for": label})

    await page.until_snapshot(lambda snapshot: not about(snapshot, "attention", template), 40)


@pytest.fixture
def budget(spares_env):
    """A PodDisruptionBudget that blocks evictions of the pods of this test."""
    name = f"{spares_env.name}-keep"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"env.test/name": spares_env.name}}}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    spares_env.rest.create({**kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    yield name
    if any(each["metadata"]["name"] == name for each in spares_env.rest.get(BUDGETS)["items"]):
        spares_env.rest.call("DELETE", f"{BUDGETS}/{name}")


async def test_a_drain_is_shown_with_the_budget_that_blocks_it(page, spares_env, operator, budget):
    operator(SPARES)
    node = spares_env.spare("kept")
    template = spares_env.template("kept", 1, releasePolicy="Release", release={"evictAfterSeconds": 1})
    spares_env.wait_for_owned(template, 1)
    pod = spares_env.pod("guarded", node)
    spares_env.change(template, nodes=0)

    def blocked(snapshot):
        row = about(snapshot, "rollouts", template)
        blockers = row.get("blockers", []) if row else []
        return row if blockers and budget in blockers[0]["message"] else None

    row = await page.until_snapshot(blocked, 60)
    (blocker,) = row["blockers"]
    assert (row["kind"], row["done"], row["total"], row["state"]) == ("Drain", 0, 1, "Releasing")
    assert (blocker["object"]["kind"], blocker["object"]["name"]) == ("Pod", pod)
    assert f"Runs on {node}" in blocker["message"]
    assert blocker["since"]
    assert "kubectl get poddisruptionbudgets --namespace default" in blocker["waysOut"]

    spares_env.rest.call("DELETE", f"{BUDGETS}/{budget}")

    await page.until_snapshot(lambda snapshot: not about(snapshot, "rollouts", template), 60)


async def test_why_shows_the_ladder_with_the_rung_that_decided_and_a_command(page, spares_env):
    template = spares_env.template("why", 1, selector={"matchLabels": {"for": f"{spares_env.name}-nobody"}})

    async def answer():
        found = await page.get("why", kind="NodeTemplate", name=template)
        return next((each for each in found["answers"] if each["object"]["name"] == template), None)

    await page.until_snapshot(lambda snapshot: snapshot["plans"], 40)
    found = await answer()
    states = {each["reason"]: each["state"] for each in found["ladder"]}
    assert states["NoSpareNodesFound"] == "decided"
    assert states["InvalidTemplate"] == states["SufficientNodes"] == "passed"
    assert all(each["title"] for each in found["ladder"])
    spares_env.change(template, paused=True)

    async def paused():
        return any("nodeyard.dev/paused" in each.get("command", "") for each in (await answer())["wouldChange"])

    await until(paused, "the pause has a command")


# leaves


@pytest.fixture
def wire(leaf_servers):
    leaf = leaf_servers[0]
    with FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token) as proxy:
        yield proxy


async def test_a_leaf_becomes_unreachable_and_recovers(api, tree, tree_operator, wire):
    tree.leaf.node("n1", cpu="4", name=tree.unique_name("n1"))
    async with local_page(api.kubeconfig, CLUSTERTREE) as page:
        east = tree.cluster("east", kubeconfig=wire.kubeconfig)
        node = f"kosmos-{east}"

        def leaf(snapshot):
            return next((each for each in snapshot["places"].get("leaves", []) if each["name"] == east), None)

        def row(snapshot):
            columns = snapshot["nodes"]["columns"]
            return next(
                (dict(zip(columns, each, strict=True)) for each in snapshot["nodes"]["rows"] if each[0] == node), {}
            )

        shown = await page.until_snapshot(
            lambda snapshot: (found := leaf(snapshot)) and found.get("resources") and found, 60
        )
        (cpu,) = (each for each in shown["resources"] if each["resource"] == "cpu")
        assert (cpu["base"], cpu["free"]) == (4, 4)
        mirrored = await page.until_snapshot(
            lambda snapshot: row(snapshot).get("state") == "mirrored" and row(snapshot), 60
        )
        assert (mirrored["leaf"], mirrored["hue"]) == (east, east)
        await page.until_snapshot(lambda snapshot: (leaf(snapshot) or {}).get("leaseAgeSeconds") is not None, 60)
        assert not about(await page.get("snapshot"), "attention", east)

        wire.add(TruncateEvents(), path="watch=true")
        wire.add(Drop())

        item = await page.until_snapshot(lambda snapshot: about(snapshot, "attention", east), 90)
        assert (item["kind"], item["severity"]) == ("SilentLeaf", "critical")
        assert leaf(await page.get("snapshot"))["contact"]["state"] == "LeafUnreachable"

        wire.clear()

        await page.until_snapshot(lambda snapshot: not about(snapshot, "attention", east), 90)
        lanes = (await page.get("recorder"))["lanes"]
        marks = [mark for point in lanes["clustertree"] for mark in point.get("marks", [])]
        assert any(mark["type"] == "Contact" and f"Leaf cluster {east} " in mark["message"] for mark in marks)


# the recorder


def totals(lane):
    found = {"passes": 0, "brakes": 0, "approvals": 0, "writes": {}, "marks": []}
    for point in lane:
        for name in ("passes", "brakes", "approvals"):
            found[name] += point.get(name, 0)
        for reason, number in point.get("writes", {}).items():
            found["writes"][reason] = found["writes"].get(reason, 0) + number
        found["marks"] += [mark["type"] for mark in point.get("marks", [])]
    return found


async def test_the_operators_recorder_has_its_passes_writes_brakes_and_approvals(api, spares_env):
    options = {"settings": {"limit": Limit(nodes=0, percent=0)}, "dashboard": DashboardOptions(LOOPBACK)}
    async with whole_operator(api.kubeconfig, capability=SPARES, install_crds=False, **options) as running:
        page = Page(f"http://127.0.0.1:{running.ports['dashboard']}")
        try:
            await page.post("login", {"token": api.admin_token})
            spare = spares_env.spare("recorded")
            template = spares_env.template("recorded", 1, releasePolicy="Release")

            async def found():
                return totals((await page.get("recorder"))["lanes"]["spares"])

            async def is_claimed():
                return (await found())["writes"].get("Claimed")

            async with page.stream() as next_event:
                await page.until(
                    next_event,
                    lambda name, data: name == "recorder" and data["entries"][0].get("writes", {}).get("Claimed"),
                    40,
                )
            await until(is_claimed, "the claim is counted", 40)
            assert (await found())["passes"]
            writes = (await page.get("recorder/writes", capability="spares"))["writes"]
            (claim,) = (each for each in writes if each["reason"] == "Claimed" and each["object"]["name"] == spare)
            assert (claim["verb"], claim["outcome"], claim["key"]) == ("Patch", "Done", "nodetemplates")
            assert template in {change.get("to") for change in claim["diff"]}
            assert claim["message"]

            spares_env.change(template, nodes=0)
            held = await page.until_snapshot(
                lambda snapshot: next((plan["held"] for plan in snapshot["plans"] if plan.get("held")), None), 40
            )
            where = {"capability": "spares", "key": "nodetemplates"}
            await page.post("approve", {**where, "id": held["id"], "reason": "planned with ops"})

            async def is_approved():
                return {"Brake", "Approval"} <= set((await found())["marks"])

            await until(is_approved, "brake and approval are marked", 40)
            sums = await found()
            assert (sums["brakes"], sums["approvals"]) == (1, 1)
        finally:
            await page.close()


async def test_beside_no_operator_the_recorder_has_its_events(page, spares_env, operator):
    operator(SPARES)
    label = f"{spares_env.name}-events"
    template = spares_env.template("events", 1, selector={"matchLabels": {"for": label}})

    async def reported():
        writes = (await page.get("recorder/writes", capability="spares"))["writes"]
        return [each for each in writes if each["object"]["name"] == template]

    await until(reported, "the Events are recorded", 40)
    assert {each["verb"] for each in await reported()} == {"Event"}
    assert all(each["reason"] and each["message"] for each in await reported())


async def test_an_unknown_capability_or_time_is_refused(page):
    assert (await page.request("GET", "/api/v1/recorder/writes?capability=nobody"))[0] == 404
    assert (await page.request("GET", "/api/v1/recorder?from=yesterday"))[0] == 400
    found = await page.get("recorder", **{"from": "0"})
    assert found["to"] - found["from"] <= 86400
    assert set(found["lanes"]) == {"spares"}
