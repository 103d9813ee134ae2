"""Plan: what is about to be done, what is held and how it is approved, and what a change would do."""

from __future__ import annotations

import pytest
from tests.browser import worlds

pytestmark = pytest.mark.browser

SPARES = "spares nodetemplates"


def test_disruptive_actions_stand_first_and_equal_ones_are_one_line(serve, open_page, expect):
    page = open_page(serve(), "#/plan")
    sections = page.locator("section.plan")
    expect(sections).to_have_count(3)
    expect(sections.first).to_contain_text("Held for approval: 80 actions on 40 nodes")
    lines = sections.first.locator(".group-what")
    assert lines.all_inner_texts() == [
        "Patch 40 Nodes",
        "Evict 112 Pods",
        "Patch 40 Nodes",
        "Patch 3 Nodes",
        "Patch 7 Nodes",
    ]
    expect(sections.nth(1)).to_contain_text("Replaces 4 nodes")
    expect(page.get_by_text("30 plans")).to_be_visible()


def test_a_group_opens_to_full_diffs_page_by_page(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/plan")
    page.locator(".groups").get_by_role("button", name="Return nodes of storage").click()

    first = page.locator(".actions li").first
    expect(first).to_contain_text("Node rack2-n001")
    expect(first.locator(".removed")).to_contain_text("metadata.labels[nyallocator.cybozu.io/node-template]")
    expect(first.locator(".changed")).to_contain_text("storage→spare")
    expect(first.locator(".added")).to_contain_text('{"value":"true"}')
    asked = server.bodies("plans/actions")[0]
    assert asked == {"capability": "spares", "key": "nodetemplates", "group": "release", "offset": "0", "limit": "20"}

    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("40 of 40")).to_be_visible()
    expect(page.locator(".actions")).to_contain_text("rack4-n021")


def test_the_graph_shows_the_order_of_actions(serve, open_page, expect):
    page = open_page(serve(), "#/plan")
    graph = page.locator("figure.graph").first
    expect(graph.locator(".box")).to_have_count(5)
    expect(graph.locator(".edge")).to_have_count(3)
    x = {
        name: graph.get_by_role("button", name=name).locator("rect").get_attribute("x")
        for name in ("Cordon", "Evict", "Return")
    }
    assert float(x["Cordon"]) < float(x["Evict"]) < float(x["Return"])

    graph.get_by_role("button", name="Evict").press("Enter")
    page.wait_for_url("**open=spares%2Fnodetemplates%3Aevict")


def test_blocked_objects_are_listed_with_their_reason(serve, open_page, expect):
    page = open_page(serve(), "#/plan")
    page.get_by_role("button", name="20 objects blocked").click()
    expect(page.get_by_role("row", name="SelectorMismatch")).to_contain_text(
        "Node rack2-n061, Node rack3-n062 and 16 more"
    )


def test_a_held_plan_is_approved_end_to_end(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/plan")
    page.get_by_role("button", name="Approve…").click()

    dialog = page.get_by_role("dialog")
    for text in (
        "80 actions on 40 nodes will run",
        "After the evictions, 40 nodes are reset and become spares.",
        "data/postgres",
        "allows none now",
        "11 pods and more will be evicted",
        "You approve as jane",
    ):
        expect(dialog).to_contain_text(text)
    send = dialog.get_by_role("button", name="Approve 40 nodes")
    expect(send).to_be_disabled()
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("The storage farm moves")
    send.click()

    expect(dialog).to_contain_text("The plan is approved; 40 nodes go now.")
    expect(dialog).to_contain_text("Recorded as approved by jane.")
    assert server.bodies("approve") == [
        {"capability": "spares", "key": "nodetemplates", "id": "668a8d15afa6", "reason": "The storage farm moves"}
    ]
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_text("Held for approval")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Views").get_by_role("link", name="Plan")).to_have_text("Plan")


def test_a_plan_that_has_changed_is_not_approved_but_read_again(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/plan?approve=spares/nodetemplates", expected_errors="409")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("It is time")
    server.world["snapshot"]["plans"][0] |= {"id": "0123456789ab"}
    dialog.get_by_role("button", name="Approve 40 nodes").click()

    expect(dialog.get_by_role("alert")).to_contain_text("The plan has changed.")
    server.world["approval"] = worlds.approval() | {"id": "0123456789ab", "nodes": 41}
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog.get_by_role("button", name="Approve 41 nodes")).to_be_visible()


def test_a_viewer_without_approve_rights_gets_the_command_and_an_error_names_the_remedy(serve, open_page, expect):
    server = serve()
    server.world["snapshot"]["viewer"] = {"name": "joe"}
    page = open_page(server, "#/plan")
    expect(page.get_by_text("nodeyard approve 668a8d15afa6")).to_be_visible()
    expect(page.get_by_role("button", name="Approve…")).to_have_count(0)

    server.world["snapshot"]["viewer"] = {"name": "jane", "canApprove": True}
    server.fail("approve", 403, "jane cannot patch nodetemplates.", "Ask for the ClusterRole nodeyard-approver.")
    page = open_page(server, "#/plan?approve=spares/nodetemplates", expected_errors="403")
    page.get_by_label("Reason").fill("It is time")
    page.get_by_role("button", name="Approve 40 nodes").click()
    expect(page.get_by_role("alert")).to_contain_text("Ask for the ClusterRole nodeyard-approver.")


def test_escape_closes_the_dialog_and_gives_the_focus_back(serve, open_page, expect):
    page = open_page(serve(), "#/plan")
    page.get_by_role("button", name="Approve…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Approve…")).to_be_focused()
    assert "approve" not in page.url


def test_what_if_plans_a_pasted_file_marks_new_actions_and_copies_markdown(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/plan")
    page.get_by_role("radio", name="What if").click()
    page.get_by_label("Drop YAML files here").fill("kind: NodeTemplate")
    page.get_by_role("button", name="Show its plan").click()

    outcome = page.locator(".outcome")
    expect(outcome).to_contain_text("spec.foo is unknown and ignored.")
    expect(outcome.locator(".group.new")).to_have_count(2)
    expect(outcome.locator(".group").first).to_contain_text("Releases 2 nodes")
    expect(outcome.get_by_label("No longer done")).to_contain_text("Claim spares for web.")
    assert server.bodies("whatif") == ["kind: NodeTemplate"]
    outcome.get_by_role("button", name="Copy as Markdown").click()
    expect(outcome.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == server.world["whatif"]["markdown"]


def test_what_if_accepts_a_dropped_file(serve, open_page, expect):
    server = serve()
    page = open_page(server, "#/plan?mode=whatif")
    data = page.evaluate_handle("""() => {
        const data = new DataTransfer();
        data.items.add(new File(['kind: Dropped'], 'gpu.yaml'));
        return data;
    }""")
    page.locator("form.what-if").dispatch_event("drop", {"dataTransfer": data})
    expect(page.locator(".outcome")).to_contain_text("Its plan")
    assert server.bodies("whatif") == ["kind: Dropped"]


def test_what_if_reports_faults_of_a_file(serve, open_page, expect):
    server = serve()
    server.fail("whatif", 400, "The YAML has no kind.", "Give apiVersion and kind.")
    page = open_page(server, "#/plan?mode=whatif", expected_errors="400")
    page.get_by_label("Drop YAML files here").fill("a: b")
    page.get_by_role("button", name="Show its plan").click()
    expect(page.get_by_role("alert")).to_contain_text(["The YAML has no kind", "Give apiVersion and kind."][0])
    expect(page.get_by_role("alert")).to_contain_text("Give apiVersion and kind.")


def test_observed_capabilities_and_truncated_lists_are_reported(serve, open_page, expect):
    server = serve()
    server.world["snapshot"]["operators"][0] |= {"state": "Observing", "observe": "--observe"}
    server.world["snapshot"]["plans"][1]["groupsTotal"] = 120
    page = open_page(server, "#/plan")
    expect(page.get_by_text("Observed only, nothing of it is written: spares.")).to_be_visible()
    expect(page.get_by_text("and 117 more groups")).to_be_visible()
