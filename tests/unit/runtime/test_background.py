"""Inputs and findings of background loops."""

import asyncio
import threading

import pytest

from nodeyard.runtime.background import LoopFindings, LoopInputs


def test_a_mapping_that_was_read_does_not_change():
    inputs = LoopInputs()
    inputs.put("a", 1)
    read = inputs.current
    inputs.put("b", 2)
    inputs.drop("a")
    assert dict(read) == {"a": 1}
    assert dict(inputs.current) == {"b": 2}
    with pytest.raises(TypeError):
        read["c"] = 3


async def test_listeners_are_called_for_added_changed_and_removed_entries_only():
    inputs = LoopInputs()
    with inputs.listening() as changed:
        for change, is_heard in (
            (lambda: inputs.put("a", (1, 2)), True),
            (lambda: inputs.put("a", (1, 2)), False),
            (lambda: inputs.put("a", (1, 3)), True),
            (lambda: inputs.drop("b"), False),
            (lambda: inputs.drop("a"), True),
            (inputs.clear, False),
        ):
            changed.clear()
            change()
            await asyncio.sleep(0)
            assert changed.is_set() == is_heard


async def test_a_loop_of_another_thread_is_woken():
    inputs, is_listening, heard = LoopInputs(), threading.Event(), []

    async def listen():
        with inputs.listening() as changed:
            is_listening.set()
            await asyncio.wait_for(changed.wait(), 5)
            heard.append(dict(inputs.current))

    thread = threading.Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    assert await asyncio.to_thread(is_listening.wait, 5)
    inputs.put("a", "value")
    await asyncio.to_thread(thread.join)
    assert heard == [{"a": "value"}]
    inputs.put("b", "nobody listens any more")


@pytest.fixture
async def findings():
    shown, due = {}, []
    findings = LoopFindings(shown, due.append)
    findings.shown, findings.due = shown, due
    findings.start()
    return findings


async def test_on_the_same_loop_it_is_shown_at_once_and_the_keys_are_due(findings):
    findings.publish("leaf/a", 1, keys=("a", "b"))
    assert (findings.shown, findings.due) == ({"leaf/a": 1}, ["a", "b"])
    findings.publish("leaf/a", 2)
    assert (findings.shown, findings.due) == ({"leaf/a": 2}, ["a", "b"])


async def test_a_withdrawn_finding_is_removed(findings):
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

    crossing = LoopFindings(shown, due)
    crossing.start()

    async def publish():
        crossing.publish("leaf/a", 1, keys=["a"])

    await asyncio.to_thread(lambda: asyncio.run(publish()))
    await asyncio.wait_for(is_due.wait(), 5)
    assert seen == [("a", 1)]
    assert where == [threading.main_thread()]
