"""Assignment of keys to replicas."""

import pytest

from nodeyard.kube.names import subdomain_faults
from nodeyard.runtime.sharding.assignment import RANK_DELAY_SECONDS, acquire_delay, key_lease, rank, replica_lease

KEYS = [f"leaf-{number}" for number in range(200)]


def first(replicas):
    return {key: rank(key, replicas)[0] for key in KEYS}


def test_the_ranking_does_not_depend_on_the_order_of_the_replicas():
    assert rank("a", ["one", "two", "three"]) == rank("a", ["three", "one", "two", "one"])


def test_each_replica_should_have_a_fair_part():
    wanted = list(first(["one", "two", "three"]).values())
    assert all(45 <= wanted.count(replica) <= 90 for replica in ("one", "two", "three"))


def test_a_new_replica_takes_keys_only_for_itself():
    before, after = first(["one", "two"]), first(["one", "two", "three"])
    moved = {key for key in KEYS if before[key] != after[key]}
    assert {after[key] for key in moved} == {"three"}
    assert 45 <= len(moved) <= 90


def test_only_keys_of_a_removed_replica_move():
    before, after = first(["one", "two", "three"]), first(["one", "two"])
    assert {before[key] for key in KEYS if before[key] != after[key]} == {"three"}


def test_the_first_in_rank_tries_at_once_and_the_others_with_a_delay():
    replicas = rank("a", ["one", "two", "three"])
    waits = [acquire_delay("a", each, replicas, holder="", free_for=0.0) for each in replicas]
    assert waits == [0, RANK_DELAY_SECONDS, 2 * RANK_DELAY_SECONDS]


def test_any_replica_may_take_a_key_that_was_free_for_long():
    last = rank("a", ["one", "two"])[-1]
    assert acquire_delay("a", last, ["one", "two"], holder="", free_for=RANK_DELAY_SECONDS) <= 0


def test_no_replica_tries_while_another_holds_the_lease():
    assert acquire_delay("a", "one", ["one", "two"], holder="two", free_for=-8.0) == 8


def test_a_holder_that_let_it_run_out_is_not_waited_for():
    holder, next_one = rank("a", ["one", "two"])
    assert acquire_delay("a", next_one, ["one", "two"], holder=holder, free_for=0.0) <= 0


def test_a_lease_that_still_names_us_is_renewed_when_we_are_first():
    us, other = rank("a", ["one", "two"])
    assert acquire_delay("a", us, ["one", "two"], holder=us, free_for=-9.0) <= 0
    assert acquire_delay("a", other, ["one", "two"], holder=other, free_for=-9.0) > 0


def test_a_lease_is_named_after_its_key():
    assert key_lease("clustertree", "leaf-1") == "nodeyard-clustertree-leaf-1"
    assert key_lease("clustertree", "") == "nodeyard-clustertree"


@pytest.mark.parametrize(
    "key", ["tenant-a/web", "UPPER", "x" * 300, "ends-", "ünïcode", "replica-0123456789", "../..", "a_b"]
)
def test_a_key_that_is_no_name_gets_one(key):
    name = key_lease("clustertree", key)
    assert subdomain_faults(name) == []
    assert name.startswith("nodeyard-clustertree-key-")
    assert name != key_lease("clustertree", f"{key}x")


def test_a_replica_has_a_lease_that_no_key_has():
    name = replica_lease("clustertree", "pod-1_abcd")
    assert subdomain_faults(name) == []
    assert key_lease("clustertree", name.removeprefix("nodeyard-clustertree-")) != name
