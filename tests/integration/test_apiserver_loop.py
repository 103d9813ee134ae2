"""No request holds the event loop of the embedded server: others are served meanwhile."""

from __future__ import annotations

from ..builders.large_requests import cases, install
from ..builders.loop_turns import MeasuredServer

LONGEST = 0.1
"""Seconds of the loop's own CPU time in one turn."""
OBJECTS = 1000
YAML_SIZE = 1 << 20


def test_no_request_holds_the_event_loop_for_100_ms():
    longest: dict[str, float] = {}
    with MeasuredServer() as server:
        install(server)
        for case in cases(OBJECTS, YAML_SIZE):
            case.prepare(server)
            server.idle()
            longest[case.name] = server.measure(lambda case=case: case.ask(server)).own

    assert {name: seconds for name, seconds in longest.items() if seconds > LONGEST} == {}
