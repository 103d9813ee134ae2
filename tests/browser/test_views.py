"""The views Why, Recorder, Rollouts and Places: their contents and links."""

from __future__ import annotations

import pytest
from tests.browser.worlds import NOW

pytestmark = pytest.mark.browser

LABELS = "(all) => all.map((each) => each.ariaLabel)"
GPU = "#/why?kind=NodeTemplate&name=gpu"


def test_a_search_finds_an_object_and_opens_its_answer(serve, open_page, expect):
    server = serve()
    page = open_page(server)
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search an object")
    expect(box).to_be_focused()
    page.keyboard.type("gpu")
    expect(page.get_by_role("option")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_contain_text("shop/gpu-worker-1")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")

    expect(page.locator(".sentence")).to_have_text("gpu has 12 of 16 nodes, because no spare with cpu=large is left.")
    page.wait_for_url("**/#/why?kind=NodeTemplate&name=gpu&api=nyallocator.cybozu.io%2Fv1")
    asked = {"kind": "NodeTemplate", "name": "gpu", "apiVersion": "nyallocator.cybozu.io/v1"}
    assert server.bodies("why") == [asked]


def test_an_unknown_name_suggests_other_input(serve, open_page, expect):
    page = open_page(serve(), "#/why?q=nothing-like-it")
    expect(page.get_by_text("For an object of another kind type kind/namespace/name.")).to_be_visible()


def test_the_answer_has_age_notes_and_the_ladder_with_the_rung_that_decided(serve, open_page, expect):
    page = open_page(serve(), GPU)
    answer = page.get_by_role("article")
    expect(answer).to_contain_text("For 1 h 8 min")
    expect(answer).to_contain_text("A plan of storage that would free 2 such nodes waits for approval.")
    rungs = answer.locator(".ladder li")
    expect(rungs).to_have_count(5)
    expect(answer.locator(".ladder [aria-current=step]")).to_contain_text("No spare that fits is left")
    expect(rungs.last).to_contain_text("not asked any more")


def test_the_matrix_names_the_failing_requirement_of_each_candidate(serve, open_page, expect):
    page = open_page(serve(), GPU)
    expect(page.get_by_text("42 candidates, 2 taken")).to_be_visible()
    row = page.get_by_role("row", name="rack4-n063")
    marks = row.get_by_role("img").evaluate_all(LABELS)
    assert marks == ["not the reason", "fails", "not the reason"]
    expect(page.get_by_role("row", name="rack2-n061")).to_contain_text("Taken")

    page.get_by_role("button", name="Fails Selector 24").or_(
        page.get_by_role("button", name="Fails Selector")
    ).first.click()
    expect(page.locator(".matrix tbody tr")).to_have_count(23)
    expect(page.get_by_role("row", name="rack4-n063")).to_have_count(0)


def test_the_remedy_is_a_command_to_copy(serve, open_page, expect):
    page = open_page(serve(), GPU)
    ways = page.locator(".would")
    expect(ways.get_by_role("listitem")).to_have_count(3)
    ways.get_by_role("button", name="Copy").nth(1).click()
    expect(ways.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == 'kubectl patch nodetemplate gpu --type=merge -p \'{"spec":{"nodes":12}}\''


def test_an_object_of_no_capability_is_reported(serve, open_page, expect):
    server = serve()
    server.world["why"]["Pod"] = {"object": {"kind": "Pod", "name": "lonely", "apiVersion": "v1"}}
    page = open_page(server, "#/why?kind=Pod&ns=shop&name=lonely")
    expect(page.get_by_text("No capability concerns itself with this object.")).to_be_visible()


def test_the_recorder_has_a_lane_per_capability(serve, open_page, expect):
    page = open_page(serve(), "#/recorder")
    lanes = page.locator(".lane")
    expect(lanes).to_have_count(5)
    expect(lanes.first).to_contain_text("spares")
    expect(lanes.first).to_contain_text("1 brake")
    expect(lanes.first).to_contain_text("Claimed")
    marks = page.locator(".marks")
    expect(marks).to_contain_text("Leaf cluster edge stopped responding.")
    expect(marks).to_contain_text("pools is led by nodeyard-7d9f.")


def test_a_young_recorder_shows_lanes_with_little_in_them(serve, open_page, expect):
    server = serve()
    lanes = {"spares": [{"t": NOW - 60, "passes": 3, "writes": {"Claimed": 2}}], "pools": []}
    server.world["recorder"] |= {"lanes": lanes, "began": NOW - 300}
    page = open_page(server, "#/recorder")
    expect(page.locator(".lane")).to_have_count(2)
    expect(page.locator(".lane").first).to_contain_text("2 writes · 3 passes")
    expect(page.locator(".lane").last).to_contain_text("0 writes · 0 passes")
    expect(page.get_by_text("Recorded since")).to_be_visible()


def test_a_server_without_recorder_names_one_that_has_it(serve, open_page, expect):
    server = serve()
    server.fail("recorder", 404, "Not Found.", "Reload the page.")
    page = open_page(server, "#/recorder", expected_errors="404")
    expect(page.get_by_text("nodeyard run --dashboard-bind")).to_be_visible()


def test_dragging_over_a_lane_lists_every_write_of_that_time_with_its_diff(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/recorder")
    lane = page.locator(".lane").first.locator(".u-over")
    box = lane.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 20, steps=4)
    page.mouse.up()

    expect(page.get_by_text("12 writes of spares")).to_be_visible()
    asked = server.bodies("recorder/writes")[-1]
    assert asked["capability"] == "spares"
    assert int(asked["to"]) - int(asked["from"]) == pytest.approx(6 * 3600, rel=0.02)
    assert int(asked["from"]) == pytest.approx(NOW - 12 * 3600, abs=900)
    shown = page.locator(".lane").nth(2).locator(".u-select").bounding_box()
    assert shown["width"] == pytest.approx(box["width"] * 0.25, rel=0.05), "every lane shows the window"

    page.get_by_role("row").nth(2).get_by_role("button").click()
    expect(page.locator(".opened")).to_contain_text("metadata.labels[tier]old→web")
    expect(page.get_by_role("row", name="Conflict")).to_have_count(1)


def test_a_window_can_be_chosen_without_a_mouse(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/recorder")
    page.get_by_role("button", name="last 30 min").press("Enter")
    expect(page.get_by_text("12 writes of spares")).to_be_visible()
    page.get_by_role("radio", name="pools").click()
    expect(page.get_by_text("12 writes of pools")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".writes")).to_have_count(0)


def test_a_write_appears_in_the_recorder_while_one_looks(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/recorder")
    expect(page.locator(".lane")).to_have_count(5)
    server.world["recorder"]["lanes"]["spares"][-1]["writes"] = {"Detached": 777}
    server.push("recorder", {"entries": [{"t": NOW, "capability": "spares"}]})
    expect(page.locator(".lane").first).to_contain_text("Detached", timeout=15_000)


def test_rollouts_show_progress_and_blockers_in_front(serve, open_page, expect):
    page = open_page(serve(), "#/rollouts")
    rows = page.locator(".rollout")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("Blocked")
    pool = rows.filter(has_text="Pool workers rolls")
    for text in ("9 of 16", "56 %", "Next: Drain prod-workers-078", "data/postgres-0", "25 min", "Add a replica"):
        expect(pool).to_contain_text(text)
    expect(pool.locator(".command")).to_contain_text("kubectl delete pod -n data postgres-0")
    expect(rows.last).to_contain_text("All nodes of leaf west are mirrored.")

    page.get_by_role("radio", name="Drains").click()
    expect(rows).to_have_count(1)
    page.wait_for_url("**kind=Drain")


def test_places_show_leaves_tenants_and_refusals(serve, open_page, expect):
    page = open_page(serve(), "#/places")
    edge = page.locator(".leaf").filter(has_text="edge")
    for text in ("Leaf unreachable", "lease 6 min old", "Timeout after 5 s."):
        expect(edge).to_contain_text(text)
    east = page.locator(".leaf").filter(has_text="east")
    expect(east).to_contain_text("Leaf reachable")
    expect(east).not_to_contain_text("responds", use_inner_text=True)
    expect(
        east.get_by_role("img", name="154 cores taken, 41 cores reserved, 317 cores free of 512 cores")
    ).to_be_visible()
    expect(east).to_contain_text("1.2 TiB of 2 TiB")

    tenants = page.get_by_role("region", name="Tenants")
    expect(tenants.get_by_role("row", name="gpu")).to_contain_text("3 pods")
    expect(tenants.get_by_role("row", name="spot")).to_contain_text("none")
    expect(page.locator(".refusals")).to_contain_text("selects no class that tenant shop allows")
    tenants.get_by_role("link", name="12").click()
    page.wait_for_url("**/#/yard?group=class&class=gpu")
    expect(page.get_by_text("12 of 114 nodes")).to_be_visible()


def test_could_it_run_names_the_nodes_and_what_each_lacks(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/places")
    page.get_by_label("A pod").fill("shop/reports-1")
    page.get_by_role("button", name="Could it run?").click()
    expect(page.get_by_text("The pod could run on 2 of 114 nodes.")).to_be_visible()
    assert server.bodies("could-run") == [{"namespace": "shop", "name": "reports-1"}]
    page.wait_for_url("**pod=shop%2Freports-1")
    expect(page.locator(".by-requirement")).to_contain_text("Class gpu")
    expect(page.locator(".matrix tbody tr")).to_have_count(30)
    marks = page.get_by_role("row", name="rack2-n027").get_by_role("img").evaluate_all(LABELS)
    assert marks == ["meets", "fails", "not the reason", "not the reason"], "requirements are checked in order"

    page.get_by_label("or the YAML").fill("kind: Pod")
    page.get_by_role("button", name="Could it run?").click()
    page.wait_for_function("() => !location.hash.includes('pod=')")
    expect(page.get_by_role("button", name="Could it run?")).to_be_enabled()
    assert server.bodies("could-run")[-1] == {"yaml": "kind: Pod"}
