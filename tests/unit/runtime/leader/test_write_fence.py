"""The lease thread: an event loop of its own, and its orderly end."""

import asyncio
import threading

from nodeyard.client.api import Client
from nodeyard.runtime.leader.elections import TaskElections, ThreadElections
from nodeyard.runtime.leader.write_fence import ALWAYS


class Wire:
    """Transport that records the thread that closed it."""

    def __init__(self):
        self.made_in = threading.current_thread().name
        self.closed_in = ""

    async def close(self):
        self.closed_in = threading.current_thread().name


async def test_work_runs_on_a_thread_of_its_own_with_connections_made_there():
    wires = []

    def connect():
        wires.append(Wire())
        return Client(wires[-1])

    is_begun = threading.Event()

    async def work(_client, stopped):
        is_begun.set()
        await stopped.wait()

    elections = ThreadElections(connect)
    elections.start()
    elections.run(work)
    assert await asyncio.to_thread(is_begun.wait, 5)
    assert elections.is_alive
    await elections.stop()
    assert [(wire.made_in, wire.closed_in) for wire in wires] == [("leases", "leases")]
    assert not elections.is_alive


async def test_stopping_waits_until_the_work_has_tidied_up():
    done = []

    async def work(_client, stopped):
        await stopped.wait()
        await asyncio.sleep(0.01)
        done.append("released")

    elections = ThreadElections(lambda: Client(Wire()))
    elections.start()
    elections.run(work)
    await elections.stop()
    assert done == ["released"]


async def test_work_that_dies_is_seen_by_health(eventually):
    async def work(_client, _stopped):
        raise RuntimeError("broken")

    elections = ThreadElections(lambda: Client(Wire()))
    elections.start()
    elections.run(work)
    eventually(lambda: not elections.is_alive, "the lease loop is known to have ended")
    await elections.stop()


async def test_a_thread_that_was_never_started_can_be_stopped():
    await ThreadElections(lambda: Client(Wire())).stop()


async def test_in_simulation_work_is_a_task_of_the_same_loop():
    here = []

    async def work(_client, stopped):
        here.append(threading.current_thread() is threading.main_thread())
        await stopped.wait()

    elections = TaskElections(Client(Wire()))
    elections.start()
    elections.run(work)
    await asyncio.sleep(0)
    assert elections.is_alive
    await elections.stop()
    assert here == [True]


def test_without_election_writes_are_always_allowed():
    assert ALWAYS.may_write()
