"""The fields of the Lease after each step."""

from datetime import UTC, datetime, timedelta, timezone

from nodeyard.runtime.leader.lease import Lease, LeaseMeta, LeaseSpec, acquire, manifest, release, renew

NOW = datetime(2026, 3, 1, 12, 0, 0, 42, tzinfo=UTC)


def held_by(holder: str, transitions: int = 3) -> Lease:
    return Lease(LeaseMeta("7"), LeaseSpec(holder, 15, "2026-03-01T11:00:00.000000Z", None, transitions))


def test_a_first_holder_makes_no_transition():
    spec = acquire(None, "me", 15, NOW)
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("me", 15, 0)


def test_a_lease_taken_from_another_holder_is_a_transition_and_one_retaken_is_not():
    assert acquire(held_by("other"), "me", 15, NOW).lease_transitions == 4
    assert acquire(held_by("me"), "me", 15, NOW).lease_transitions == 3


def test_times_are_micro_timestamps_in_utc_wherever_we_are():
    elsewhere = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert acquire(None, "me", 15, elsewhere).renew_time == "2026-03-01T12:00:00.000042Z"


def test_a_renewal_changes_only_the_time():
    spec = renew(held_by("me"), NOW)
    assert spec.renew_time == "2026-03-01T12:00:00.000042Z"
    assert (spec.holder_identity, spec.acquire_time, spec.lease_transitions) == (
        "me",
        "2026-03-01T11:00:00.000000Z",
        3,
    )


def test_a_released_lease_has_no_holder_and_a_second_to_live():
    spec = release(held_by("me"), NOW)
    assert (spec.holder_identity, spec.lease_duration_seconds) == ("", 1)


def test_the_manifest_carries_the_version_it_replaces():
    body = manifest("nodeyard-x", "here", acquire(None, "me", 15, NOW), "7")
    assert body["metadata"] == {"name": "nodeyard-x", "namespace": "here", "resourceVersion": "7"}
    assert "resourceVersion" not in manifest("nodeyard-x", "here", LeaseSpec())["metadata"]
