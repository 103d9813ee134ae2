"""Sharding of keys over replicas, on the embedded server under virtual time."""

import asyncio

import pytest
from structlog.testing import capture_logs
from tests.builders import replicas
from tests.builders.replicas import KEYS

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import LEASES
from nodeyard.kube.names import NAMESPACE
from nodeyard.process.logs import get_logger
from nodeyard.runtime.leader import election
from nodeyard.runtime.sharding.assignment import key_lease, rank, replica_lease
from nodeyard.runtime.sharding.leases import REFUSED_SECONDS, STALE_SECONDS

ALL = set(KEYS)


@pytest.fixture
async def server(clock):
    server = Server(clock=clock)
    await server.start(())
    yield server
    await server.stop()


@pytest.fixture
async def fleet(server, clock):
    async with replicas.fleet(server, clock) as fleet:
        yield fleet


def fair(*names):
    """Return the keys that each replica should hold."""
    return {name: {key for key in KEYS if rank(key, names)[0] == name} for name in names}


def is_fair(*running):
    wanted = fair(*(each.identity for each in running))
    return lambda: all(each.has() == wanted[each.identity] for each in running)


async def test_one_alone_has_everything_at_once(fleet):
    one = fleet.add("one")
    assert await fleet.until(lambda: one.has() == ALL, 3) <= 1
    assert one.has("") == {""}
    assert sorted(one.diary) == [("", True), *sorted((key, True) for key in KEYS)]


async def test_before_it_knows_which_keys_there_are_it_is_no_candidate(fleet):
    one = fleet.add("one", keys=None)
    await fleet.pass_time(10)
    assert one.tap.writes == []
    one.shares.set_keys(KEYS)
    await fleet.until(lambda: one.has() == ALL, 1)


async def test_one_that_joins_is_given_its_part_after_a_while_and_not_all_at_once(fleet):
    one = fleet.add("one")
    await fleet.pass_time(5)
    two = fleet.add("two")
    await fleet.pass_time(9)
    assert one.has() == ALL, "nothing is handed over to one who may be gone again at once"
    mine, theirs = fair("one", "two")["one"], fair("one", "two")["two"]
    had = []
    while two.has() != theirs:
        await fleet.pass_time(0.25)
        had.append(len(two.has()))
        assert len(had) < 240
    assert one.has() == mine
    assert max(later - earlier for earlier, later in zip([0, *had], had, strict=False)) <= 2


async def test_once_shared_out_nothing_moves(fleet):
    one, two, three = (fleet.add(name) for name in ("one", "two", "three"))
    await fleet.until(is_fair(one, two, three), 90)
    for each in (one, two, three):
        each.diary.clear()
    await fleet.pass_time(120, step=1)
    assert [one.diary, two.diary, three.diary] == [[], [], []]


async def test_keys_of_a_killed_replica_are_taken_over_within_20_seconds(fleet):
    one, two, three = (fleet.add(name) for name in ("one", "two", "three"))
    await fleet.until(is_fair(one, two, three), 90)
    await two.kill()
    fleet.replicas.remove(two)
    took = await fleet.until(lambda: one.has() | three.has() == ALL, 20)
    assert took >= 8, "not before its Leases have stood still for their duration"
    assert is_fair(one, three)()


async def test_keys_of_a_gracefully_stopped_replica_are_taken_over_at_once(fleet):
    one, two = fleet.add("one"), fleet.add("two")
    await fleet.until(is_fair(one, two), 90)
    await two.stop()
    await fleet.until(lambda: one.has() == ALL, 3)
    leases = await fleet.leases()
    assert set(leases.values()) == {"one"}
    assert replica_lease("trees", "two") not in leases


async def test_a_replica_that_is_partitioned_from_the_server_stops_before_others_begin_and_regains_its_part(fleet):
    one, two = fleet.add("one"), fleet.add("two")
    await fleet.until(is_fair(one, two), 90)
    two.part()
    assert await fleet.until(lambda: not two.has(), 11) >= 5
    assert one.has() == fair("one", "two")["one"]
    await fleet.until(lambda: one.has() == ALL, 10)
    two.mend()
    await fleet.pass_time(5)
    assert one.has() == ALL
    await fleet.until(is_fair(one, two), 60)


async def test_a_short_outage_moves_nothing(fleet):
    one, two = fleet.add("one"), fleet.add("two")
    await fleet.until(is_fair(one, two), 90)
    two.diary.clear()
    two.part()
    await fleet.pass_time(4)
    two.mend()
    await fleet.pass_time(30)
    assert two.diary == []


async def test_an_unexpected_error_is_survived_and_logged(fleet, monkeypatch):
    monkeypatch.setattr(election, "_log", get_logger("leader"))
    one = fleet.add("one")
    await fleet.until(lambda: one.has() == ALL, 3)
    unforeseen = ValueError("a token with a line break")
    one.tap.fail = lambda _method, _path: unforeseen
    with capture_logs() as told:
        await fleet.until(lambda: not one.has(), 15)
    one.mend()
    await fleet.until(lambda: one.has() == ALL, 30)
    await fleet.pass_time(30)
    assert (await fleet.leases())[replica_lease("trees", "one")] == "one"
    assert {each["lease"] for each in told if each.get("exc_info") is unforeseen and "lease" in each} == {
        *(key_lease("trees", key) for key in ("", *KEYS)),
        replica_lease("trees", "one"),
    }


async def test_a_key_whose_lease_is_taken_by_force_is_lost(fleet):
    one = fleet.add("one")
    await fleet.until(lambda: one.has() == ALL, 3)
    name = key_lease("trees", "leaf-3")
    await fleet.client.patch(LEASES, name, {"spec": {"holderIdentity": "thief"}}, NAMESPACE)
    await fleet.until(lambda: one.has() == ALL - {"leaf-3"}, 5)
    await fleet.pass_time(8)
    tried = len(one.tap.written(name))
    await fleet.pass_time(2)
    assert len(one.tap.written(name)) == tried, "it does not fight for it"
    await fleet.until(lambda: one.has() == ALL, 15)


async def test_a_key_is_released_only_when_nothing_is_in_flight(fleet):
    one = fleet.add("one")
    await fleet.until(lambda: one.has() == ALL, 3)
    one.finishing = asyncio.Event()
    two = fleet.add("two")
    await fleet.until(lambda: len(one.has("", *KEYS)) < len(KEYS) + 1, 30)
    await fleet.pass_time(30)
    assert two.has("", *KEYS) == set(), "it is still renewed, though nothing is written for it"
    one.finishing.set()
    await fleet.until(is_fair(one, two), 60)


async def test_a_key_that_its_new_owner_does_not_take_is_kept_for_long(fleet):
    one = fleet.add("one")
    await fleet.until(lambda: one.has() == ALL, 3)
    two = fleet.add("two")

    async def no_keys(method, path):
        """A live replica that takes no key."""
        if method == "PUT" and "replica" not in path:
            await asyncio.Event().wait()

    two.tap.before = no_keys
    await fleet.pass_time(120, step=1)
    assert len(one.has()) >= len(ALL) - 1
    given_up = [key for key, is_ours in one.diary if not is_ours]
    assert len(given_up) == len(set(given_up)), "none was given up twice"
    assert set(given_up) == fair("one", "two")["two"] | ({""} & set(given_up))
    two.tap.before = None
    await fleet.pass_time(REFUSED_SECONDS, step=5)
    await fleet.until(is_fair(one, two), 60)


async def test_a_new_key_has_an_owner_at_once_and_a_removed_one_leaves_no_lease(fleet):
    one = fleet.add("one", keys=KEYS[:3])
    await fleet.until(lambda: one.has() == set(KEYS[:3]), 3)
    one.shares.set_keys(KEYS[:4])
    await fleet.until(lambda: one.has() == set(KEYS[:4]), 1)
    one.shares.set_keys(KEYS[1:4])
    await fleet.until(lambda: one.has() == set(KEYS[1:4]), 1)
    await fleet.pass_time(1)
    assert key_lease("trees", KEYS[0]) not in await fleet.leases()
    one.shares.set_keys(KEYS[:4])
    await fleet.until(lambda: one.has() == set(KEYS[:4]), 3)


async def test_leases_of_replicas_that_died_long_ago_are_deleted(fleet):
    two = fleet.add("two", keys=("gone",))
    await fleet.pass_time(3)
    await two.kill()
    fleet.replicas.remove(two)
    one = fleet.add("one")
    await fleet.pass_time(STALE_SECONDS - 20, step=5)
    left = {replica_lease("trees", "two"), key_lease("trees", "gone")}
    assert left <= (await fleet.leases()).keys()
    await fleet.pass_time(40, step=5)
    assert not left & (await fleet.leases()).keys()
    assert one.has() == ALL


async def test_looking_costs_one_request_for_all_keys_and_a_renewal_one_for_each(fleet):
    one = fleet.add("one")
    await fleet.pass_time(5)
    one.tap.writes.clear()
    await fleet.pass_time(40, step=1)
    assert {method for method, _ in one.tap.writes} == {"PUT"}
    each = (len(KEYS) + 2) * 40 / 4
    assert 0.85 * each <= len(one.tap.writes) <= 1.15 * each


async def test_two_replicas_never_hold_the_same_key(fleet):
    names = ["one", "two", "three", "four"]
    running = {name: fleet.add(name) for name in names}
    for round, name in enumerate([*names, *reversed(names)]):
        running[name].part()
        await fleet.pass_time(12 + round)
        running[name].mend()
        await fleet.pass_time(2)
    # A replica that was cut off did not take the key that it was offered, and is not offered it again for a while.
    await fleet.until(is_fair(*running.values()), REFUSED_SECONDS + 60)


async def test_other_capabilities_share_out_their_own(fleet):
    one = fleet.add("one")
    await fleet.pass_time(2)
    await fleet.client.create(
        LEASES, {"metadata": {"name": "nodeyard-other-leaf-1", "namespace": NAMESPACE, "labels": {}}, "spec": {}}
    )
    await fleet.pass_time(STALE_SECONDS + 20, step=10)
    assert "nodeyard-other-leaf-1" in await fleet.leases()
    assert one.has() == ALL
