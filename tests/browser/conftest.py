"""A headless chromium and the pages that it opens. Every page fails its test if it logs an error."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.browser import worlds
from tests.browser.fake_server import FakeServer

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="write the dashboard's screenshots into docs/images")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    # Here, because only these tests need it: `make test` runs without.
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("chromium is not installed; `make test-browser` installs it, or: apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., FakeServer]]:
    """Start a server with a world: `serve("small")`."""
    servers = []

    def start(world: str = "small") -> FakeServer:
        server = FakeServer(getattr(worlds, world)()).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page of a server. Logged errors that match no pattern of `expected_errors` fail the test."""
    opened: list[tuple[Any, list[str], str]] = []

    def open_one(
        server: FakeServer, path: str = "", size: dict[str, int] = DESKTOP, expected_errors: str = "", **options: Any
    ) -> Any:
        context = browser.new_context(
            timezone_id="UTC", viewport=size, permissions=["clipboard-read", "clipboard-write"], **options
        )
        context.set_default_timeout(10_000)
        page = context.new_page()
        errors: list[str] = []
        page.on("console", lambda message: message.type in ("error", "warning") and errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "request", lambda request: request.url.startswith(server.url) or errors.append(f"asked for {request.url}")
        )
        opened.append((context, errors, expected_errors))
        page.goto(server.url + path)
        return page

    yield open_one
    problems = []
    for context, errors, expected in opened:
        problems += [error for error in errors if not (expected and re.search(expected, error))]
        context.close()
    assert problems == []


@pytest.fixture(scope="session")
def expect() -> Any:
    from playwright.sync_api import expect as expect_

    return expect_
