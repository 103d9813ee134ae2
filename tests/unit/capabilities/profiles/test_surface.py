"""Profiles on the dashboard."""

from datetime import timedelta

import pytest
from tests.builders import profile_views
from tests.builders.profile_views import ProfilesView
from tests.builders.profiles import NOW, compute_body, compute_profile_body, node, node_body, ready

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.surface import SURFACE

PROFILE = "shared"


def written(name, *, is_done, minutes=1, generation="1"):
    """Build a service object that was written this many minutes ago, with or without the profile deployed."""
    moment = (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    annotations = {names.HASH: "new", names.GENERATION: generation, names.WRITTEN: moment}
    return {**compute_body(name, PROFILE, annotations=annotations), "status": ready("new" if is_done else "old")}


@pytest.fixture(autouse=True)
def stored(monkeypatch):
    """Keep the status of the given bodies."""

    plain = profile_views.as_stored
    monkeypatch.setattr(profile_views, "as_stored", lambda body: plain(body, body.get("status")))


def rollouts(*objects, spec=None):
    view = ProfilesView(compute_profile_body(PROFILE, spec=spec or {}), *objects)
    return view, list(SURFACE.rollouts(view, NOW))


def test_a_profile_that_is_everywhere_is_no_rollout():
    assert rollouts(written("a", is_done=True), written("b", is_done=True))[1] == []


def test_a_rollout_counts_updated_nodes_and_names_the_next():
    objects = [written(name, is_done=True, generation="0") for name in "bcdefgh"]
    _, (row,) = rollouts(written("a", is_done=False), *objects, spec={"maxUnavailable": 2})
    assert (row.kind, row.object.kind, row.object.name) == ("Profile", names.COMPUTE_PROFILE_KIND, PROFILE)
    assert (row.done, row.total, row.state, row.blockers) == (1, 8, "RollingOut", ())
    assert row.next == "1 object of 7 written next."


def test_a_spent_budget_is_what_the_next_object_waits_for():
    objects = [written(name, is_done=True, generation="0") for name in "bcd"]
    _, (row,) = rollouts(written("a", is_done=False), *objects, spec={"maxUnavailable": 1})
    assert row.next == "3 objects to write, once fewer than 1 are unavailable."


def test_the_last_objects_only_have_to_become_available():
    _, (row,) = rollouts(written("a", is_done=False), written("b", is_done=True))
    assert row.next == "1 object to become available."


def test_a_stopped_rollout_names_the_object_and_needs_somebody():
    view, (row,) = rollouts(written("a", is_done=False, minutes=20), written("b", is_done=True))
    (blocker,) = row.blockers
    assert row.state == "Stopped"
    assert (blocker.object.kind, blocker.object.name, blocker.reason) == (
        names.COMPUTE_KIND,
        "a",
        "ProgressDeadlineExceeded",
    )
    assert blocker.since == NOW - timedelta(minutes=10)
    assert blocker.ways_out[0] == "kubectl describe novaexternalcompute.nova.openstack.org a --namespace openstack"
    (item,) = SURFACE.attention(view, NOW)
    assert (item.kind, item.object.name, item.since) == ("StoppedRollout", PROFILE, blocker.since)
    assert item.message == row.message


def test_a_running_rollout_needs_nobody():
    view, _ = rollouts(written("a", is_done=False))
    assert list(SURFACE.attention(view, NOW)) == []


def chosen(**states):
    choices = {name: {"value": value, "state": state} for name, (value, state) in states.items()}
    return {"profiles": choices}


def test_a_node_shows_the_profiles_of_the_data_plane_node_of_its_name():
    status = chosen(nova=("shared", "Resolved"), neutron=("dpdk", "Resolved"), telemetry=("lost", "NotFound"))
    view = ProfilesView({**node_body("worker-1"), "status": status})
    assert SURFACE.tile(view, "worker-1").profile == "neutron/dpdk, nova/shared"
    assert SURFACE.tile(view, "worker-2") is None


def test_only_another_choice_changes_a_tile():
    changes = SURFACE.tile_nodes[names.NODE_KIND]
    before, after = node("worker-1"), node("worker-1", status=chosen(nova=("shared", "Resolved")))
    assert list(changes(None, None, after)) == ["worker-1"]
    assert list(changes(None, before, after)) == ["worker-1"]
    assert list(changes(None, after, after)) == []
