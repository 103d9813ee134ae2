"""The frame of the page: connection, errors, keyboard, colours, sizes, addresses, and hostile texts."""

from __future__ import annotations

import re

import pytest
from tests.browser.conftest import PHONE
from tests.browser.worlds import HOSTILE, NOW, row

pytestmark = pytest.mark.browser

VIEWS = {
    "yard": "Needs you",
    "plan": "Held for approval",
    "why": "Ask about an object.",
    "recorder": "Marks",
    "rollouts": "Rollouts and drains",
    "places": "Leaf clusters",
}
STATES = {
    "#/yard?group=zone&node=rack1-n030&q=zone%3Deu-a": "rack1-n030",
    "#/yard?as=table&sort=since&desc=1&offset=100": "114",
    f"#/yard?at={NOW - 1800}": "Now",
    "#/yard?operators=1": "Capability",
    "#/yard?help=1": "Keyboard",
    "#/plan?open=spares%2Fnodetemplates%3Arelease&offset=20": "rack4-n021",
    "#/plan?capability=pools": "Roll pool workers",
    "#/plan?mode=whatif": "Show its plan",
    "#/plan?approve=spares%2Fnodetemplates": "will run",
    "#/why?kind=NodeTemplate&name=gpu&only0=NotReady": "Not Ready since 09:15",
    "#/why?q=gpu": "gpu-worker-1",
    f"#/recorder?from={NOW - 5000}&to={NOW}&capability=pools&open=1": "12 writes of pools",
    "#/recorder?range=1h": "Marks",
    "#/rollouts?kind=Drain": "8 pods are left.",
    "#/places?pod=shop%2Freports-1&leaf=edge": "could run on 2 of 114",
}
OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"
CONTRASTS = """() => {
    const channel = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const luminance = (name) => {
        const probe = document.createElement('i');
        probe.style.color = `var(${name})`;
        document.body.append(probe);
        const [r, g, b] = getComputedStyle(probe).color.match(/[0-9.]+/g).map((part) => channel(part / 255));
        probe.remove();
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const pairs = [
        ...['--ground', '--panel', '--raised', '--sunken', '--hover'].flatMap((ground) => [
            ['--text', ground], ['--muted', ground], ['--accent', ground],
        ]),
        ['--warning', '--warning-soft'], ['--critical', '--critical-soft'], ['--good', '--good-soft'],
        ['--accent', '--accent-soft'], ['--accent-ink', '--accent'], ['--critical', '--ground'],
        ['--added', '--ground'], ['--removed', '--ground'], ['--changed', '--ground'], ['--muted', '--warning-soft'],
    ];
    return Object.fromEntries(pairs.map(([ink, ground]) => {
        const [light, dark] = [luminance(ink), luminance(ground)].sort((a, b) => b - a);
        return [`${ink} on ${ground}`, (light + 0.05) / (dark + 0.05)];
    }));
}"""


@pytest.mark.parametrize("world", ["small", "large", "hostile"])
def test_no_view_scrolls_sideways_on_a_phone(serve, open_page, expect, world):
    server = serve(world)
    page = open_page(server, size=PHONE, has_touch=True, is_mobile=True)
    for view, text in VIEWS.items():
        page.goto(f"{server.url}#/{view}")
        expect(page.get_by_text(text).first).to_be_visible()
        assert page.evaluate(OVERFLOW) <= 0, view


@pytest.mark.parametrize("address", STATES)
def test_every_state_is_restored_from_its_address(serve, open_page, expect, address):
    page = open_page(serve(), address)
    expect(page.get_by_text(STATES[address]).first).to_be_visible()
    assert page.url.endswith(address)
    page.reload()
    expect(page.get_by_text(STATES[address]).first).to_be_visible()
    assert page.evaluate(OVERFLOW) <= 0


def test_no_state_scrolls_sideways_on_a_phone(serve, open_page, expect):
    server = serve()
    page = open_page(server, size=PHONE, has_touch=True, is_mobile=True)
    for number, address in enumerate(each for each in STATES if "group=zone" not in each):
        # Another query loads the page anew.
        page.goto(f"{server.url}?{number}{address}")
        expect(page.get_by_text(STATES[address]).first).to_be_attached()
        assert page.evaluate(OVERFLOW) <= 0, address


@pytest.mark.parametrize(
    ("view", "query", "last"),
    [
        ("yard", "", ".legend"),
        ("yard", "?as=table", ".table-box"),
        ("plan", "", ".graph"),
        ("why", "?kind=NodeTemplate&name=gpu", ".would"),
        ("recorder", f"?from={NOW - 5000}&to={NOW}&open=1", ".opened"),
        ("rollouts", "", ".rollout"),
        ("places", "?pod=shop/x", ".verdict"),
    ],
)
def test_hostile_texts_stay_texts(serve, open_page, expect, view, query, last):
    page = open_page(serve("hostile"), f"#/{view}{query}")
    expect(page.locator(last).first).to_contain_text("<img src=x")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img:not([src='/static/icon.svg'])").count() == 0
    page.set_viewport_size(PHONE)
    assert page.evaluate(OVERFLOW) <= 0


def test_hostile_objects_in_search_and_dialog_stay_texts(serve, open_page, expect):
    page = open_page(serve("hostile"), "#/why?q=gpu")
    expect(page.get_by_role("option").first).to_contain_text(HOSTILE)
    page.goto(page.url.split("#")[0] + "#/plan")
    page.get_by_role("button", name="Approve…").click()
    expect(page.get_by_role("dialog")).to_contain_text("<img src=x")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img:not([src='/static/icon.svg'])").count() == 0


def test_a_lost_connection_is_reported_and_restored(serve, open_page, expect):
    server = serve()
    page = open_page(server, expected_errors="ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()

    server.stop_listening()
    banner = page.locator(".connection")
    expect(banner).to_contain_text("The connection is lost.")
    expect(banner).to_contain_text("You see the state of")
    expect(banner).to_contain_text("Check that `nodeyard dashboard` still runs.")
    expect(page.get_by_label("Legend")).to_contain_text("Spare")

    server.listen_again()
    banner.get_by_role("button", name="Try now").click()
    expect(banner).to_have_count(0)
    server.push("nodes", {"set": [row("after-the-break", "spare")], "delete": []})
    page.wait_for_function("() => document.querySelector('canvas').yard.tiles.has('after-the-break')")


def test_a_silent_connection_is_reported(serve, open_page, expect):
    server = serve()
    page = open_page(server)
    page.clock.install()
    page.reload()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    # The clock also goes on by itself; a jump fires each timer once, however late a busy machine is.
    page.clock.fast_forward(30_000)
    expect(page.locator(".connection")).to_have_count(0)
    page.clock.fast_forward(10_500)
    expect(page.locator(".connection")).to_contain_text("The connection is lost.")
    page.clock.run_for(1_500)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_a_stream_resumes_after_the_last_event_that_was_seen(serve, open_page, expect):
    server = serve()
    page = open_page(server)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    server.push("nodes", {"set": [row("seen", "spare")], "delete": []})
    page.wait_for_function("() => document.querySelector('canvas').yard.tiles.has('seen')")

    with page.expect_request("**/api/v1/stream") as again:
        server.drop_streams()

    assert again.value.headers["last-event-id"] == str(server.seq)


def test_a_failing_server_is_reported_with_the_remedy(serve, open_page, expect):
    server = serve()
    server.fail("snapshot", 503, "The caches are not filled yet.", "Wait a moment; large fleets take a minute.")
    page = open_page(server, expected_errors="503")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The caches are not filled yet.")
    expect(alert).to_contain_text("Wait a moment")
    server.failures.clear()
    alert.get_by_role("button", name="Try again").click()
    expect(page.get_by_label("Legend")).to_be_visible()


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("#/plan?open=spares/nodetemplates:release", "plans/actions"),
        ("#/plan?approve=spares/nodetemplates", "approval"),
        ("#/why?kind=NodeTemplate&name=gpu", "why"),
        ("#/why?q=gpu", "search"),
        ("#/recorder", "recorder"),
        (f"#/recorder?from={NOW - 500}&to={NOW}", "recorder/writes"),
        (f"#/yard?at={NOW - 500}", "history"),
        ("#/places?pod=shop/x", "could-run"),
    ],
)
def test_each_part_reports_its_own_error_and_the_rest_stays(serve, open_page, expect, address, path):
    server = serve()
    server.fail(path, 500, "It broke.", "Mend it.")
    page = open_page(server, address, expected_errors="500")
    alert = page.get_by_role("alert").filter(has_text="It broke.")
    expect(alert).to_contain_text("Mend it.")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()


@pytest.mark.parametrize(
    ("view", "text"),
    [
        ("yard", "No nodes yet."),
        ("plan", "No plan has been made yet."),
        ("why", "Ask about an object."),
        ("recorder", "Nothing is recorded yet."),
        ("rollouts", "Nothing is on its way."),
        ("places", "No leaf clusters."),
    ],
)
def test_an_empty_cluster_explains_what_will_appear(serve, open_page, expect, view, text):
    page = open_page(serve("empty"), f"#/{view}")
    expect(page.get_by_text(text)).to_be_visible()
    expect(page.get_by_role("button", name="No operator")).to_be_visible()


def test_an_ended_session_asks_for_a_token(serve, open_page, expect):
    server = serve()
    server.fail("snapshot", 401, "There is no session.", "Sign in with a token.")
    page = open_page(server, expected_errors="401")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Kubernetes bearer token").fill("secret")
    with page.expect_response("**/login"):
        page.get_by_role("button", name="Sign in").click()
    server.failures.clear()
    expect(page.get_by_label("Legend")).to_be_visible()
    assert server.bodies("login") == [{"token": "secret"}]
    assert "secret" not in page.url


def test_operators_are_listed_with_state_limit_and_age(serve, open_page, expect):
    server = serve()
    server.world["snapshot"]["operators"][1] |= {"state": "Gone", "renewed": NOW - 300}
    page = open_page(server)
    page.get_by_role("button", name="1 operator gone").click()
    popover = page.get_by_role("dialog", name="Operators")
    expect(popover.get_by_role("row", name="pools")).to_contain_text("Gone")
    expect(popover.get_by_role("row", name="spares")).to_contain_text("25,10%")
    page.keyboard.press("Escape")
    expect(popover).to_have_count(0)


def test_the_keyboard_reaches_every_view(serve, open_page, expect):
    page = open_page(serve())
    expect(page.get_by_label("Legend")).to_be_visible()
    for key, view in {"p": "plan", "w": "why", "r": "recorder", "o": "rollouts", "l": "places", "y": "yard"}.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/#/{view}")
        expect(page.get_by_role("navigation", name="Views").locator("[aria-current=page]")).to_contain_text(
            "Rollouts" if view == "rollouts" else view.capitalize()
        )
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Search an object")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("p")
    assert page.url.endswith("#/yard"), "a letter alone does nothing"


def test_arrow_keys_choose_among_several(serve, open_page, expect):
    page = open_page(serve(), "#/rollouts")
    page.get_by_role("radio", name="All").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Pools")).to_be_focused()
    expect(page.get_by_role("radio", name="Pools")).to_be_checked()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**kind=Drain")


def test_keys_are_text_while_one_types(serve, open_page, expect):
    page = open_page(serve())
    page.get_by_label("Filter nodes").focus()
    page.keyboard.type("g p/?")
    expect(page.get_by_label("Filter nodes")).to_have_value("g p/?")
    assert "#/yard" in page.url


def test_the_tab_key_reaches_content_first_and_then_what_the_eye_sees(serve, open_page, expect):
    page = open_page(serve())
    expect(page.get_by_label("Legend")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.needs') !== null")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_have_contrast(serve, open_page, scheme):
    page = open_page(serve(), color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", ground)[:3])
    assert (brightness > 600) == (scheme == "light")
    assert {pair: ratio for pair, ratio in page.evaluate(CONTRASTS).items() if ratio < 4.5} == {}


def test_the_switch_of_colours_is_kept_in_address_and_browser(serve, open_page, expect):
    server = serve()
    page = open_page(server, color_scheme="light")
    page.get_by_role("button", name="Dark colours").click()
    page.wait_for_url("**theme=dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Plan").click()
    assert "theme=dark" in page.url
    page.goto(server.url)
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()


def test_changes_are_announced_to_screen_readers(serve, open_page, expect):
    server = serve()
    page = open_page(server)
    page.wait_for_function("() => document.querySelector('canvas')?.yard?.tiles.size")
    label = page.get_by_role("application").get_attribute("aria-label")
    assert "114 nodes in 5 groups" in label
    assert "web 26" in label
    rows = server.world["snapshot"]["nodes"]["rows"]
    page.clock.install()
    page.reload()
    page.wait_for_function("() => document.querySelector('canvas')?.yard?.tiles.size")
    page.clock.run_for(5100)
    server.push("nodes", {"set": [[*rows[60][:7], "notReady", *rows[60][8:]]], "delete": []})
    page.wait_for_function(
        "(name) => document.querySelector('canvas').yard.tiles.get(name).state === 'notReady'", arg=rows[60][0]
    )
    page.clock.run_for(5100)
    expect(page.locator("[aria-live=polite]").filter(has_text="Nodes changed")).to_contain_text("Not ready 4, before 3")


def test_a_wall_screen_has_larger_words(serve, open_page):
    page = open_page(serve(), size={"width": 2560, "height": 1440})
    assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") > 15
    assert page.evaluate(OVERFLOW) <= 0
