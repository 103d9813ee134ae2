"""A component of a control plane: ports, readiness and error messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeyard.testing.component import Component, ComponentError, Site
from nodeyard.testing.probes import is_healthy

SERVE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
TAKEN_ONCE = """
import pathlib, sys
mark = pathlib.Path(sys.argv[2])
if not mark.exists():
    mark.touch()
    sys.exit("listen tcp: bind: address already in use")
"""


class Server(Component):
    """An HTTP server that first runs some code."""

    name = "server"
    first = ""

    def command(self) -> list[str | Path]:
        return [sys.executable, "-c", self.first + SERVE, str(self.ports["serve"]), self.folder / "mark"]

    def is_ready(self) -> bool:
        return is_healthy(self.ports["serve"], "/")


class Unlucky(Server):
    first = TAKEN_ONCE


class Broken(Server):
    first = "import sys; sys.exit('the flag --nonsense is unknown')"


class Silent(Server):
    first = "import signal; signal.pause()"
    ready_within = 0.5


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[dict[type[Server], Server]]:
    made = {kind: kind(Site(tmp_path / kind.__name__)) for kind in (Server, Unlucky, Broken, Silent)}
    yield made
    for part in made.values():
        part.process.kill()


def test_it_is_ready_when_start_returns(parts: dict[type[Server], Server]) -> None:
    parts[Server].start()
    assert parts[Server].is_ready()


def test_it_comes_back_on_the_same_port(parts: dict[type[Server], Server]) -> None:
    part = parts[Server]
    part.start()
    port = part.ports["serve"]
    part.process.kill()
    assert not part.is_ready()
    part.start()
    assert part.ports["serve"] == port
    assert part.is_ready()


def test_it_retries_with_another_port_when_its_port_is_taken(parts: dict[type[Server], Server]) -> None:
    parts[Unlucky].start()
    assert parts[Unlucky].is_ready()
    assert "address already in use" in parts[Unlucky].process.tail()


def test_one_that_ends_is_an_error_with_its_last_words(parts: dict[type[Server], Server]) -> None:
    with pytest.raises(
        ComponentError, match=r"server ended with exit code 1; the end of .*(?s:.)*--nonsense is unknown"
    ):
        parts[Broken].start()


def test_one_that_does_not_become_ready_is_killed_and_an_error(parts: dict[type[Server], Server]) -> None:
    with pytest.raises(ComponentError, match="server was not ready within 0.5 s"):
        parts[Silent].start()
    assert not parts[Silent].process.is_alive()


def test_further_flags_are_given_last(tmp_path: Path) -> None:
    class Echo(Server):
        def command(self) -> list[str | Path]:
            return [sys.executable, "-c", "import sys; sys.exit(' '.join(sys.argv[1:]))", "own"]

    with pytest.raises(ComponentError, match="own --further"):
        Echo(Site(tmp_path, {"server": ["--further"]})).start()
