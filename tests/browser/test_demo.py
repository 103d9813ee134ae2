"""The page of `nodeyard demo`: a real operator on the embedded API server, from the first tile to an approval."""

from __future__ import annotations

import asyncio
import queue
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import PHONE
from tests.browser.test_page import OVERFLOW

from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import untyped

pytestmark = pytest.mark.browser

PROGRAM = [
    sys.executable,
    "-c",
    "from nodeyard.demo import fleet; fleet.PAUSE_SECONDS = 0.0; from nodeyard.cli import main; main()",
    "demo",
]
TEMPLATES = untyped("nyallocator.cybozu.io", "v1", "nodetemplates", "NodeTemplate", namespaced=False)
EXAMPLE = Path(__file__).parents[2] / "examples" / "01-spares" / "nodetemplate.yaml"
MEMBERS = """(label) => {
    const groups = document.querySelector('canvas')?.yard?.layout.groups ?? [];
    return groups.find((group) => group.label === label)?.members.map((member) => member.name) ?? [];
}"""
VIEWS = {
    "yard": ["LatticeCluster example", "Held: Scales the control plane of example from 3 to 1", "example/gpu"],
    "plan": ["Held for approval: 1 action on 2 nodes", "2 of 6 managed nodes would be disrupted"],
    "why?kind=LatticeCluster&name=example": ["NeedsApproval", "Approve the held plan", "highmem"],
    "why?kind=NodeTemplate&name=compute": ["compute has 10 of 10 nodes", "Enough nodes are claimed"],
    "recorder": ["is held: 1 action", "Leaf cluster east responds", "Claimed"],
    "rollouts": ["Rollouts and drains"],
    "places": ["east", "Leaf reachable", "80 GiB of 96 GiB free", "tenant-acme"],
}


class Demo:
    """A running tour, which waits for the approval of its held plan."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(PROGRAM, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.address = self.line("Dashboard: ").split()[1]

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)

    def line(self, part: str) -> str:
        """Return the next line with this text."""
        while part not in (line := self._lines.get(timeout=200)):
            pass
        return line

    def stop(self) -> tuple[int, str]:
        self._process.send_signal(signal.SIGINT)
        _, errors = self._process.communicate(timeout=60)
        return self._process.returncode, errors

    def kill(self) -> None:
        self._process.kill()


@pytest.fixture
def demo() -> Any:
    running = Demo()
    yield running
    running.kill()


def claim(kubeconfig: Path, nodes: int) -> None:
    """Scale the template of the demo. Playwright's own event loop runs in this thread, so another one does it."""

    async def patch() -> None:
        client = Client(HttpTransport(load_config(kubeconfig)))
        await client.patch(TEMPLATES, "compute", {"spec": {"nodes": nodes}})
        await client.close()

    with ThreadPoolExecutor() as threads:
        threads.submit(asyncio.run, patch()).result(60)


@pytest.mark.timeout(420)
def test_a_newcomer_sees_the_fleet_approves_the_plan_and_sees_it_run(demo, open_page, expect):
    base = demo.address.partition("?")[0]
    page = open_page(Server(base), demo.address.removeprefix(base))
    page.wait_for_function("() => document.querySelector('canvas')?.yard?.tiles.size", timeout=60_000)
    kubeconfig = Path(next(re.finditer(r"KUBECONFIG=(\S+)", demo.line("nodeyard approve ")))[1])
    demo.line("waits for your approval")

    for view, texts in VIEWS.items():
        page.goto(f"{base}#/{view}")
        for text in texts:
            expect(page.locator("main")).to_contain_text(text, timeout=30_000)
        page.set_viewport_size(PHONE)
        assert page.evaluate(OVERFLOW) <= 0, view
        page.set_viewport_size({"width": 1280, "height": 800})

    # Tiles move from the spares to their template.
    page.goto(f"{base}#/yard?group=template")
    page.wait_for_function(f"() => ({MEMBERS})('Spare').length === 2")
    spares = page.evaluate(MEMBERS, "Spare")
    claim(kubeconfig, 12)
    page.wait_for_function(
        f"(names) => names.every((name) => ({MEMBERS})('compute').includes(name))", arg=spares, timeout=30_000
    )

    # A change is tried out, and nothing of it is applied.
    page.goto(f"{base}#/plan?mode=whatif")
    page.get_by_label("Drop YAML files here").fill(
        EXAMPLE.read_text().replace("  nodes: 10\n", "  nodes: 5\n  releasePolicy: Release\n")
    )
    page.get_by_role("button", name="Show its plan").click()
    outcome = page.locator(".outcome")
    expect(outcome.locator(".group.new").first).to_contain_text("Releases", timeout=60_000)
    outcome.get_by_role("button", name="Copy as Markdown").click()
    expect(outcome.get_by_role("button", name="Copied")).to_be_visible()
    assert "nodetemplates" in page.evaluate("navigator.clipboard.readText()")

    page.goto(f"{base}#/plan")
    page.get_by_role("button", name="Approve…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("Two are enough")
    page.get_by_role("button", name="Approve 2 nodes").click()
    expect(page.get_by_role("dialog")).to_contain_text("Recorded as approved by", timeout=30_000)
    demo.line("7. The failed node")
    page.goto(f"{base}#/recorder")
    expect(page.locator(".marks")).to_contain_text("Two are enough", timeout=30_000)
    assert demo.stop() == (0, "")


class Server:
    """The part of a server that `open_page` needs."""

    def __init__(self, url: str) -> None:
        self.url = url
