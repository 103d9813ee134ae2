"""What loops work from, and hear of."""

import asyncio
import threading

import pytest

from nodeyard.runtime.briefs import Briefs


def test_a_mapping_that_was_read_does_not_change():
    briefs = Briefs()
    briefs.put("a", 1)
    read = briefs.current
    briefs.put("b", 2)
    briefs.drop("a")
    assert dict(read) == {"a": 1}
    assert dict(briefs.current) == {"b": 2}
    with pytest.raises(TypeError):
        read["c"] = 3


async def test_whoever_listens_hears_of_what_is_new_other_or_gone_and_of_nothing_else():
    briefs = Briefs()
    with briefs.listening() as changed:
        for change, is_heard in (
            (lambda: briefs.put("a", (1, 2)), True),
            (lambda: briefs.put("a", (1, 2)), False),
            (lambda: briefs.put("a", (1, 3)), True),
            (lambda: briefs.drop("b"), False),
            (lambda: briefs.drop("a"), True),
            (briefs.clear, False),
        ):
            changed.clear()
            change()
            await asyncio.sleep(0)
            assert changed.is_set() == is_heard


async def test_a_loop_of_another_thread_is_woken():
    briefs, is_listening, heard = Briefs(), threading.Event(), []

    async def listen():
        with briefs.listening() as changed:
            is_listening.set()
            await asyncio.wait_for(changed.wait(), 5)
            heard.append(dict(briefs.current))

    thread = threading.Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    assert await asyncio.to_thread(is_listening.wait, 5)
    briefs.put("a", "brief")
    await asyncio.to_thread(thread.join)
    assert heard == [{"a": "brief"}]
    briefs.put("b", "nobody listens any more")
