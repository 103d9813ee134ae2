from nodeyard.apiserver.controllers.node_zones import NodeZones, ZoneState


def zones_with(zone="z", *, ready=0, lost=0):
    zones = NodeZones()
    for number in range(ready):
        zones.set(f"{zone}-ready-{number}", zone, is_ready=True)
    for number in range(lost):
        zones.set(f"{zone}-lost-{number}", zone, is_ready=False)
        zones.wait(f"{zone}-lost-{number}", zone)
    return zones


def test_a_zone_is_normal_while_few_nodes_are_lost():
    assert zones_with(ready=1, lost=2).state("z") is ZoneState.NORMAL
    assert zones_with(ready=3, lost=3).state("z") is ZoneState.NORMAL


def test_a_zone_is_disrupted_when_most_nodes_are_lost_and_at_least_three():
    assert zones_with(ready=2, lost=3).state("z") is ZoneState.PARTIAL
    assert zones_with(ready=0, lost=1).state("z") is ZoneState.FULL


def test_a_normal_zone_releases_one_node_in_ten_seconds():
    zones = zones_with(ready=5, lost=2)
    assert zones.release("z", now=100) == ("z-lost-0", 10)
    assert zones.release("z", now=105) == (None, 5)
    assert zones.release("z", now=110) == ("z-lost-1", None)
    assert zones.release("z", now=130) == (None, None)


def test_a_small_disrupted_zone_releases_nothing():
    assert zones_with(ready=1, lost=9).release("z", now=100) == (None, None)


def test_a_large_disrupted_zone_releases_one_node_in_a_hundred_seconds():
    assert zones_with(ready=1, lost=60).release("z", now=100) == ("z-lost-0", 100)


def test_no_pod_is_evicted_while_no_node_is_ready():
    zones = zones_with(lost=2)
    assert zones.is_fully_disrupted
    assert zones.release("z", now=0) == (None, None)
    zones.set("elsewhere", "y", is_ready=True)
    assert not zones.is_fully_disrupted
    assert zones.release("z", now=0) == ("z-lost-0", 10)


def test_no_nodes_at_all_is_not_a_disruption():
    assert not NodeZones().is_fully_disrupted


def test_a_node_that_moves_or_goes_is_no_longer_counted_where_it_was():
    zones = zones_with(ready=1, lost=1)
    zones.set("z-ready-0", "y", is_ready=True)
    assert zones.state("z") is ZoneState.FULL
    assert zones.state("y") is ZoneState.NORMAL
    zones.forget("z-lost-0")
    assert zones.nodes() == ["z-ready-0"]
    assert zones.release("z", now=0) == (None, None)


def test_a_node_that_came_back_is_not_released():
    zones = zones_with(ready=1, lost=1)
    zones.stop_waiting("z-lost-0")
    assert zones.release("z", now=0) == (None, None)
