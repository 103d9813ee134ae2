"""The pictures of README and docs. `make screenshots` writes them; a plain run only checks that they can be made."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.worlds import NOW

pytestmark = pytest.mark.browser

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LARGEST = 200_000
IS_STILL = "() => { const { yard } = document.querySelector('canvas'); return yard.tiles.size && !yard.frame; }"
PICTURES = {
    "yard": ("small", "#/yard?group=template", "light", DESKTOP),
    "yard-dark": ("small", "#/yard?group=template&node=rack1-n030", "dark", DESKTOP),
    "yard-10000": ("large", "#/yard?group=template", "dark", DESKTOP),
    "yard-phone": ("small", "#/yard?group=template", "light", PHONE),
    "plan": ("small", "#/plan", "light", DESKTOP),
    "plan-approve": ("small", "#/plan?approve=spares/nodetemplates", "light", DESKTOP),
    "why": ("small", "#/why?kind=NodeTemplate&name=gpu", "light", DESKTOP),
    "recorder": ("small", f"#/recorder?from={NOW - 36000}&to={NOW - 21600}&capability=spares&open=1", "dark", DESKTOP),
    "rollouts": ("small", "#/rollouts", "light", DESKTOP),
    "places": ("small", "#/places", "dark", DESKTOP),
}
READY = {
    "yard": "canvas",
    "plan": ".graph",
    "why": ".would",
    "recorder": ".opened",
    "rollouts": ".rollout",
    "places": ".tenants",
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_each_view(serve, open_page, expect, request, name):
    world, address, scheme, size = PICTURES[name]
    page = open_page(serve(world), address, size=size, color_scheme=scheme, reduced_motion="reduce")
    expect(page.locator(READY[name.split("-")[0]]).first).to_be_visible()
    if name.startswith("yard"):
        page.wait_for_function(IS_STILL)
    if "approve" in name:
        expect(page.get_by_role("dialog")).to_contain_text("You approve as jane")
    picture = page.screenshot(animations="disabled")

    assert 10_000 < len(picture) < LARGEST
    if request.config.getoption("--screenshots", default=False):
        IMAGES.mkdir(exist_ok=True)
        (IMAGES / f"dashboard-{name}.png").write_bytes(picture)
