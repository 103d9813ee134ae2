"""Yard: every node a tile, live, in groups, at any moment of the last hour."""

from __future__ import annotations

import pytest
from tests.browser.worlds import COLUMNS, NOW, fleet, row

pytestmark = pytest.mark.browser

GROUPS = "() => document.querySelector('canvas').yard.layout.groups.map((group) => [group.label, group.count])"
GROUP_OF = "(name) => document.querySelector('canvas').yard.tiles.get(name)?.group.label"
CENTRE = """(name) => {
    const canvas = document.querySelector('canvas');
    const box = canvas.yard.boxOf(name);
    const edge = canvas.getBoundingClientRect();
    return [edge.left + box.x + box.side / 2, edge.top + box.y + box.side / 2];
}"""
IS_STILL = "() => { const { yard } = document.querySelector('canvas'); return yard.progress() === 1 && !yard.frame; }"


def groups(page):
    page.wait_for_function("() => document.querySelector('canvas')?.yard?.layout.groups.length")
    return dict(page.evaluate(GROUPS))


def claimed(name, template="web"):
    found = next(each for each in fleet() if each[0] == name)
    return row(name, "claimed", 0, zone=found[1], template=template, hue=template)


def spare(name="rack1-n054"):
    assert next(each for each in fleet() if each[0] == name)[COLUMNS.index("state")] == "spare"
    return name


def test_nodes_stand_in_groups_of_their_template(serve, open_page, expect):
    page = open_page(serve())

    assert groups(page) == {"Spare": 22, "gpu": 12, "storage": 14, "web": 26, "No template": 40}
    for text in ("Spare 22", "Claimed 66", "Releasing 2", "Draining 2", "Not ready 3", "Mirrored 17", "Pending 2"):
        expect(page.get_by_label("Legend").get_by_role("button", name=text)).to_be_visible()


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [
        ("Zone", {"eu-a", "eu-b", "eu-c", "remote"}),
        ("Pool", {"Spare", "ingress", "workers", "No pool"}),
        ("Class", {"dense", "gpu", "standard", "No class"}),
        ("Leaf", {"east", "edge", "west", "No leaf"}),
        ("Profile", {"nova-dpdk", "No profile"}),
        ("State", {"Spare", "Claimed", "Pending", "Releasing", "Draining", "Not ready", "Mirrored"}),
    ],
)
def test_nodes_can_be_grouped_by_each_dimension(serve, open_page, dimension, expected):
    page = open_page(serve())
    page.get_by_role("radiogroup", name="Group by").get_by_role("radio", name=dimension).click()

    page.wait_for_url(f"**group={dimension.lower()}")
    assert set(groups(page)) == expected


def test_an_event_moves_a_tile_from_the_spares_to_its_template(serve, open_page, expect):
    server = serve()
    page = open_page(server)
    assert groups(page)["web"] == 26
    node = spare()

    server.push("nodes", {"set": [claimed(node)], "delete": []})

    page.wait_for_function(f"(name) => ({GROUP_OF})(name) === 'web'", arg=node)
    start, end = page.evaluate(
        "(name) => { const tile = document.querySelector('canvas').yard.tiles.get(name);"
        " return [[tile.fromX, tile.fromY], [tile.x, tile.y]]; }",
        node,
    )
    assert start != end, "it flies from where it was"
    assert groups(page)["Spare"] == 21
    expect(page.get_by_label("Legend").get_by_role("button", name="Spare")).to_contain_text("21")


def test_a_deleted_node_loses_its_tile_and_a_new_one_gets_one(serve, open_page):
    server = serve()
    page = open_page(server)
    groups(page)

    server.push("nodes", {"set": [row("brand-new", "spare", zone="eu-a")], "delete": [spare()]})

    page.wait_for_function(f"() => ({GROUP_OF})('brand-new') === 'Spare' && !({GROUP_OF})('{spare()}')")


def test_attention_names_object_cause_and_age_and_links_to_its_view(serve, open_page, expect):
    server = serve()
    page = open_page(server)
    strip = page.get_by_role("region", name="Needs you")
    expect(strip.get_by_role("listitem").first).to_contain_text("NodeTemplate storage")
    expect(strip).to_contain_text("14 min")
    expect(strip).to_contain_text("Leaf cluster edge has not responded for 6 minutes")
    strip.get_by_role("button", name="1 more").click()
    expect(strip).to_contain_text("No pool fits")

    strip.get_by_role("link", name="Leaf cluster edge").click()
    page.wait_for_url("**/#/places?leaf=edge")

    page.go_back()
    server.push("attention", {"attention": []})
    expect(page.get_by_text("Nothing needs you.")).to_be_visible()


def test_a_list_that_the_server_cut_says_how_much_is_missing(serve, open_page, expect):
    server = serve()
    server.world["snapshot"]["totals"] = {"attention": 1200}
    page = open_page(server, "#/yard?needs=all")
    strip = page.get_by_role("region", name="Needs you")
    expect(strip.get_by_role("heading")).to_have_text("Needs you 1,200")
    expect(strip).to_contain_text("and 1,195 that are not listed")


def test_pointing_at_a_tile_tells_of_its_node_and_a_click_keeps_it(serve, open_page, expect):
    page = open_page(serve())
    groups(page)
    page.wait_for_function(IS_STILL)
    x, y = page.evaluate(CENTRE, "rack1-n030")

    page.mouse.move(x, y)
    card = page.locator(".hover-card")
    for text in ("rack1-n030", "Claimed", "gpu", "nova-dpdk", "eu-a"):
        expect(card).to_contain_text(text)
    page.mouse.click(x, y)

    panel = page.get_by_role("complementary", name="Node")
    expect(panel).to_contain_text("rack1-n030")
    page.wait_for_url("**node=rack1-n030")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_arrow_keys_choose_a_node_and_enter_asks_why(serve, open_page, expect):
    page = open_page(serve(), "#/yard?group=template")
    groups(page)
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("complementary", name="Node")).to_contain_text("rack1-n054")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("complementary", name="Node")).to_contain_text("rack1-n060")

    page.keyboard.press("Enter")

    page.wait_for_url("**/#/why?kind=Node&name=rack1-n060")


def test_a_filter_dims_the_others_and_counts(serve, open_page, expect):
    page = open_page(serve())
    groups(page)

    page.get_by_label("Filter nodes").fill("template=gpu")

    expect(page.get_by_text("12 of 114 nodes")).to_be_visible()
    dimmed = "() => [...document.querySelector('canvas').yard.tiles.values()].filter((tile) => tile.isDimmed).length"
    assert page.evaluate(dimmed) == 102
    page.get_by_role("button", name="Clear").click()
    assert page.evaluate(dimmed) == 0


def test_the_slider_shows_the_fleet_of_an_hour_ago(serve, open_page, expect):
    page = open_page(serve())
    assert groups(page)["web"] == 26
    slider = page.get_by_role("slider", name="Time")
    slider.focus()
    slider.press("Home")

    page.wait_for_function(f"() => !Object.fromEntries(({GROUPS})()).web")
    assert groups(page)["Spare"] == 48

    page.evaluate(f"location.hash = '#/yard?at={NOW - 3500 + 120 * 10}'")
    page.wait_for_function(f"() => Object.fromEntries(({GROUPS})()).web === 11")

    page.get_by_role("button", name="Back to now").click()
    page.wait_for_function(f"() => Object.fromEntries(({GROUPS})()).web === 26")
    assert "at=" not in page.url


def test_the_table_has_the_same_contents_in_words(serve, open_page, expect):
    page = open_page(serve(), "#/yard?as=table")
    table = page.get_by_role("region", name="Nodes")
    expect(table.get_by_role("row")).to_have_count(101)
    expect(page.get_by_text("100 of 114")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(table.get_by_role("row")).to_have_count(15)

    page.get_by_label("Filter nodes").fill("leaf=edge")
    expect(table.get_by_role("row")).to_have_count(5)
    expect(table).to_contain_text("Mirrored")
    table.get_by_role("button", name="Free").click()
    table.get_by_role("button", name="Free").click()
    expect(table.get_by_role("columnheader", name="Free")).to_have_attribute("aria-sort", "descending")
    expect(table.get_by_role("row").nth(1)).to_contain_text("edge-worker-3")


def test_zoom_shows_names_and_is_part_of_the_address(serve, open_page):
    server = serve()
    page = open_page(server, "#/yard?group=zone")
    groups(page)
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_url("**zoom=2.56**")

    again = open_page(server, page.url.removeprefix(server.url))
    groups(again)
    again.wait_for_function("() => Math.abs(document.querySelector('canvas').yard.view.scale - 2.56) < 0.01")
    again.get_by_role("button", name="Fit").click()
    again.wait_for_function("() => document.querySelector('canvas').yard.view.scale === 1")


def test_ten_thousand_nodes_move_without_stutter(serve, open_page):
    """Drawing all tiles costs less than as many images drawn raw, and only while something moves."""
    server = serve("large")
    page = open_page(server, "#/yard?group=template")
    assert sum(groups(page).values()) == 10_000
    page.wait_for_function(IS_STILL)
    raw = page.evaluate("""() => {
        const canvas = document.createElement('canvas');
        const { width, height } = document.querySelector('canvas');
        Object.assign(canvas, { width, height });
        const tile = document.createElement('canvas');
        tile.width = tile.height = 8;
        tile.getContext('2d').fillRect(0, 0, 7, 7);
        const context = canvas.getContext('2d');
        const times = [];
        for (let turn = 0; turn < 15; turn += 1) {
            const began = performance.now();
            context.clearRect(0, 0, width, height);
            for (let index = 0; index < 10000; index += 1) {
                context.drawImage(tile, (index * 9.5) % width, (index * 7.3) % height, 8, 8);
            }
            times.push(performance.now() - began);
        }
        return times.sort((a, b) => a - b)[7];
    }""")
    rows = server.world["snapshot"]["nodes"]["rows"]
    moved = [[*each[:3], "farm-01", *each[4:7], "claimed", "farm-01", *each[9:]] for each in rows if each[7] == "spare"]
    before = page.evaluate("() => ({ ...document.querySelector('canvas').yard.frames })")

    server.push("nodes", {"set": moved, "delete": []})

    page.wait_for_function(f"() => ({GROUP_OF})('{moved[0][0]}') === 'farm-01' && ({IS_STILL})()")
    after = page.evaluate("() => ({ ...document.querySelector('canvas').yard.frames })")
    frames = after["count"] - before["count"]
    drawn = sorted(after["drawn"][-frames:])
    assert after["shown"] - before["shown"] == 1, "laid out once for one change"
    assert frames >= 11, "no frame shows more than a small step of the move"
    assert drawn[len(drawn) // 2] < raw, f"median frame of {drawn}, raw {raw}"

    idle = page.evaluate("""() => new Promise((resolve) => {
        const { frames } = document.querySelector('canvas').yard;
        const before = frames.count;
        let left = 20;
        const next = () => (left-- ? requestAnimationFrame(next) : resolve(frames.count - before));
        next();
    })""")
    assert idle == 0, "nothing is drawn while nothing moves"


def test_finding_the_tile_under_the_pointer_does_not_search_the_tiles(serve, open_page):
    page = open_page(serve("large"), "#/yard?group=zone")
    groups(page)
    found = page.evaluate("""() => {
        const { yard } = document.querySelector('canvas');
        const wrong = [];
        for (const tile of yard.tiles.values()) {
            const box = yard.boxOf(tile.name);
            if (yard.at(box.x + box.side / 2, box.y + box.side / 2)?.tile?.name !== tile.name) wrong.push(tile.name);
        }
        const began = performance.now();
        for (let index = 0; index < 10000; index += 1) yard.at(index % yard.width, index % yard.height);
        return { wrong, microseconds: (performance.now() - began) / 10 };
    }""")
    assert found["wrong"] == []
    assert found["microseconds"] < 50
