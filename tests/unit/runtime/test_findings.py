"""What loops publish."""

import asyncio
import threading

import pytest

from nodeyard.runtime.findings import Findings


@pytest.fixture
async def findings():
    shown, due = {}, []
    findings = Findings(shown, due.append)
    findings.shown, findings.due = shown, due
    findings.start()
    return findings


async def test_on_the_same_loop_it_is_shown_at_once_and_the_keys_are_due(findings):
    findings.publish("leaf/a", 1, keys=("a", "b"))
    assert (findings.shown, findings.due) == ({"leaf/a": 1}, ["a", "b"])
    findings.publish("leaf/a", 2)
    assert (findings.shown, findings.due) == ({"leaf/a": 2}, ["a", "b"])


async def test_nothing_takes_it_back(findings):
    findings.publish("leaf/a", 1)
    findings.publish("leaf/a", None)
    findings.publish("leaf/b", None)
    assert findings.shown == {}


async def test_from_another_loop_it_is_shown_where_snapshots_are_taken_and_before_the_keys_are_due(findings):
    where = []

    class Shown(dict):
        def __setitem__(self, name, value):
            where.append(threading.current_thread())
            super().__setitem__(name, value)

    shown, is_due = Shown(), asyncio.Event()
    seen = []

    def due(key):
        seen.append((key, shown.get("leaf/a")))
        is_due.set()

    crossing = Findings(shown, due)
    crossing.start()

    async def publish():
        crossing.publish("leaf/a", 1, keys=["a"])

    await asyncio.to_thread(lambda: asyncio.run(publish()))
    await asyncio.wait_for(is_due.wait(), 5)
    assert seen == [("a", 1)]
    assert where == [threading.main_thread()]
