"""Concurrent plans stay within the rollout budget, and waiting nodes are requeued when a part of it is free."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from tests.builders.profile_views import ProfilesView
from tests.builders.profiles import (
    DEDICATED,
    NOW,
    as_stored,
    compute_body,
    compute_profile_body,
    node_body,
    ready,
    role_body,
)

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.profiles.planning.rollout import BRIEF, is_available
from nodeyard.capabilities.profiles.snapshot import Budget
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneNode
from nodeyard.client.resources import view_kind
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.watch.reservations import Reservations

CHOICE = {names.CELL: "nova-cell1", names.COMPUTE_PROFILE: "p"}
COMPUTES = view_kind(names.NOVA_API_VERSION, names.COMPUTE_KIND)
OLD, NEW = {names.HASH: "old"}, {names.HASH: "new", names.WRITTEN: format_rfc3339(NOW)}


@pytest.fixture
def namespace() -> str:
    return "budgets"


def compute(name: str, namespace: str, annotations: Object = OLD) -> Object:
    """Return a compute that reports the old hash."""
    return {**compute_body(name, "p", annotations=annotations, namespace=namespace), "status": ready("old")}


def view(namespace: str, *computes: Object, limit: Any = 1, **of_node: Any) -> ProfilesView:
    """Four nodes with a changed profile."""
    profile = compute_profile_body("p", DEDICATED, spec={"maxUnavailable": limit}, namespace=namespace)
    nodes = [node_body(f"n{number}", namespace=namespace, **of_node) for number in range(4)]
    given = {each["metadata"]["name"]: each for each in computes}
    objects = [given.get(f"n{number}", compute(f"n{number}", namespace)) for number in range(4)]
    return ProfilesView(role_body(annotations=CHOICE, namespace=namespace), profile, *nodes, *objects)


def key(namespace: str, number: int) -> str:
    return names.node_key(namespace, f"n{number}")


def budget(seen: ProfilesView, namespace: str, number: int, now: datetime = NOW) -> Budget:
    snapshot = PROFILES.collect(seen, key(namespace, number), now)  # type: ignore[arg-type]
    found: Budget = snapshot.budgets.get(names.NOVA, Budget())
    return found


def begin(seen: ProfilesView, namespace: str, number: int, now: datetime = NOW) -> bool:
    """Plan a node and reserve its part, as the reconciler does before it writes; return True if it may be written."""
    own = key(namespace, number)
    seen.reservations.drop(own)
    planned = PROFILES.plan(PROFILES.collect(seen, own, now), now, ())  # type: ignore[arg-type]
    seen.reservations.reserve(own, planned.reserves, planned.waits_for)
    return not planned.waits_for


def end(seen: ProfilesView, namespace: str, number: int) -> set[str]:
    """End the pass of a node that was not written; return the keys that are requeued."""
    return set(seen.reservations.release(key(namespace, number)))


def granted(seen: ProfilesView, namespace: str, now: datetime = NOW) -> list[bool]:
    return [begin(seen, namespace, number, now) for number in range(4)]


def keys_of(kind: str, seen: ProfilesView, old: Any, new: Any) -> set[str]:
    watch = next(each for each in PROFILES.watches if each.resource.kind == kind)
    found = watch.keys(old, new) if watch.map_with_view is None else watch.map_with_view(seen, old, new)  # type: ignore[arg-type]
    return set(found)


def node_of(namespace: str, number: int, **given: Any) -> OpenStackDataPlaneNode:
    return msgspec.convert(as_stored(node_body(f"n{number}", namespace=namespace, **given)), OpenStackDataPlaneNode)


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (3, 3), ("50%", 2), ("100%", 4)])
def test_the_budget_admits_as_many_nodes_as_max_unavailable_allows(namespace: str, limit: Any, expected: int) -> None:
    assert sum(granted(view(namespace, limit=limit), namespace)) == expected


def test_a_waiting_node_reports_how_many_are_before_it_also_those_that_have_not_written_yet(namespace: str) -> None:
    seen = view(namespace, compute("n0", namespace, NEW), limit=2)
    assert begin(seen, namespace, 1)
    assert (budget(seen, namespace, 2).unavailable, budget(seen, namespace, 2).reserved) == (1, 1)


def test_a_node_that_was_written_and_does_not_run_it_yet_counts(namespace: str) -> None:
    told = compute("n0", namespace, NEW)
    assert granted(view(namespace, told, limit=2), namespace) == [True, True, False, False]


def test_the_first_deadline_of_those_who_are_awaited_wakes_the_others(namespace: str) -> None:
    told = compute("n0", namespace, {**NEW, names.WRITTEN: format_rfc3339(NOW - timedelta(seconds=570))})
    found = budget(view(namespace, told), namespace, 1)
    assert (found.unavailable, found.due) == (1, NOW + timedelta(seconds=30))


def test_past_a_deadline_no_node_is_written_and_the_blocking_ones_are_named(namespace: str) -> None:
    told = compute("n2", namespace, {**NEW, names.WRITTEN: format_rfc3339(NOW - timedelta(seconds=600))})
    found = budget(view(namespace, told, limit="100%"), namespace, 1)
    assert found.stalled == "n2"
    assert not begin(view(namespace, told, limit="100%"), namespace, 1)


def test_a_node_that_was_not_written_makes_room_at_the_end_of_its_pass(namespace: str) -> None:
    seen = view(namespace)
    assert granted(seen, namespace) == [True, False, False, False]

    assert end(seen, namespace, 0) == {key(namespace, number) for number in (1, 2, 3)}
    assert begin(seen, namespace, 1)


def test_a_node_that_chooses_otherwise_while_it_is_written_keeps_its_part_until_its_pass_ends(namespace: str) -> None:
    seen = view(namespace)
    granted(seen, namespace)
    otherwise = view(namespace, annotations={names.COMPUTE_PROFILE: ""})
    otherwise.reservations = seen.reservations

    assert not begin(seen, namespace, 1)
    assert key(namespace, 1) in end(seen, namespace, 0)
    assert begin(otherwise, namespace, 0)
    assert begin(seen, namespace, 1)


def test_a_node_that_comes_while_another_is_written_does_not_get_ahead_of_it(namespace: str) -> None:
    seen = view(namespace)
    assert begin(seen, namespace, 3)
    assert [begin(seen, namespace, number) for number in range(3)] == [False] * 3


def test_a_service_object_that_is_deleted_before_it_was_written_makes_room_at_once(namespace: str) -> None:
    seen = view(namespace)
    granted(seen, namespace)
    seen.remove(COMPUTES, "n0", namespace)
    assert begin(seen, namespace, 1)


def test_a_written_object_counts_once_as_soon_as_the_cache_shows_it(namespace: str) -> None:
    seen = view(namespace, limit=2)
    assert begin(seen, namespace, 0)
    (hash,) = seen.reservations.reserved(names.budget(names.NOVA, namespace, "p")).values()
    shown = view(namespace, compute("n0", namespace, {**NEW, names.HASH: hash}), limit=2)
    shown.reservations = seen.reservations
    assert [begin(shown, namespace, number) for number in (1, 2, 3)] == [True, False, False]


def test_the_budget_holds_also_if_reports_are_ignored_and_only_the_nodes_own_text_has_changed(namespace: str) -> None:
    """The generation of the profile is the same before and after such a write."""
    given = {names.HASH: "old", names.GENERATION: "1"}
    silent = [stored(compute(f"n{number}", namespace, given), reports=False) for number in range(4)]
    assert granted(view(namespace, *silent), namespace) == [True, False, False, False]


def test_reading_a_snapshot_changes_nothing(namespace: str) -> None:
    seen = view(namespace)
    first, second = (PROFILES.collect(seen, key(namespace, 0), NOW) for _ in range(2))  # type: ignore[arg-type]
    assert first == second
    for number in range(4):
        assert (budget(seen, namespace, number).unavailable, budget(seen, namespace, number).reserved) == (0, 0)
    assert not seen.reservations.reserved(names.budget(names.NOVA, namespace, "p"))


def test_a_paused_node_keeps_nobody_waiting(namespace: str) -> None:
    paused = {**CHOICE, "nodeyard.dev/paused": "true"}
    seen = view(namespace, annotations=paused)
    assert budget(seen, namespace, 0) == Budget()
    assert begin(view(namespace), namespace, 1)


def outcome_of(seen: ProfilesView, namespace: str, number: int) -> tuple[bool, bool, datetime | None]:
    """Return if a waiting node reports, if it records events, and when it is planned again."""
    snapshot = PROFILES.collect(seen, key(namespace, number), NOW)  # type: ignore[arg-type]
    plan = PROFILES.plan(snapshot, NOW, ()).plan
    assert [each.reason for each in plan.blocked] == ["MaxUnavailable"]
    report = PROFILES.report(snapshot, plan, Outcome(), NOW)
    return bool(report.statuses), bool(report.events), plan.wake_at


def test_a_wait_for_the_writes_of_others_is_not_reported_if_reports_are_ignored(namespace: str) -> None:
    silent = [stored(compute(f"n{number}", namespace), reports=False) for number in range(4)]
    seen = view(namespace, *silent)
    assert begin(seen, namespace, 0)
    assert outcome_of(seen, namespace, 1) == (False, False, NOW + BRIEF)


def test_a_wait_for_objects_that_are_not_ready_is_reported(namespace: str) -> None:
    silent = [stored(compute(f"n{number}", namespace), reports=False) for number in range(4)]
    failing = {**silent[0], "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    reports, records, at = outcome_of(view(namespace, failing, *silent[1:]), namespace, 1)
    assert (reports, records) == (True, True)
    assert at != NOW + BRIEF


def test_a_wait_for_the_writes_of_others_is_reported_if_they_become_unavailable(namespace: str) -> None:
    seen = view(namespace)
    assert begin(seen, namespace, 0)
    assert outcome_of(seen, namespace, 1)[:2] == (True, True)


# counted nodes


def status(source: str, value: str = "p") -> Object:
    return {"profiles": {names.NOVA: {"value": value, "source": source, "state": "Resolved"}}}


def selected(namespace: str, number: int, given: Object | None) -> OpenStackDataPlaneNode:
    body = as_stored(node_body(f"n{number}", namespace=namespace, role=""))
    return msgspec.convert(body if given is None else {**body, "status": given}, OpenStackDataPlaneNode)


def test_a_profile_is_looked_at_when_a_node_says_that_it_is_selected_by_it(namespace: str) -> None:
    before, after = selected(namespace, 0, None), selected(namespace, 0, status("Selector"))
    profile = names.profile_key(names.NOVA, namespace, "p")
    assert keys_of(names.NODE_KIND, ProfilesView(), before, after) == {profile}
    assert keys_of(names.NODE_KIND, ProfilesView(), after, before) == {profile}
    assert keys_of(names.NODE_KIND, ProfilesView(), after, after) == set()


def test_only_nodes_chosen_by_selector_are_found_by_status(namespace: str) -> None:
    assert list(watched.selected(selected(namespace, 0, status("Role")))) == []


def test_the_first_report_of_a_service_and_the_end_of_the_last_requeue_all_its_nodes(namespace: str) -> None:
    silent = [{**compute(f"n{number}", namespace), "status": {}} for number in range(4)]
    reporting = compute("n0", namespace)
    every = {key(namespace, number) for number in range(4)}

    seen = view(namespace, reporting, *silent[1:])
    assert keys_of(names.COMPUTE_KIND, seen, silent[0], reporting) >= every
    assert keys_of(names.COMPUTE_KIND, view(namespace, *silent), reporting, silent[0]) >= every

    both = view(namespace, reporting, compute("n1", namespace), *silent[2:])
    assert key(namespace, 2) not in keys_of(names.COMPUTE_KIND, both, silent[1], compute("n1", namespace))


# concurrency


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("reports", [True, False], ids=["reporting", "silent"])
def test_in_any_order_of_passes_writes_and_reports_the_limit_holds_and_every_node_is_written(
    namespace: str, seed: int, limit: int, *, reports: bool
) -> None:
    """Passes overlap: a node may be planned while the writes of others are under way, and some writes fail."""
    random, nodes = Random(seed), [f"n{number}" for number in range(8)]
    profile = compute_profile_body("p", DEDICATED, spec={"maxUnavailable": limit}, namespace=namespace)
    objects = {node: stored(compute(node, namespace), reports=reports) for node in nodes}
    reservations, under_way, failures = Reservations(), dict[str, str](), 5
    queue = [names.node_key(namespace, node) for node in nodes]

    def seen() -> ProfilesView:
        bodies = [node_body(node, namespace=namespace) for node in nodes]
        found = ProfilesView(role_body(annotations=CHOICE, namespace=namespace), profile, *bodies, *objects.values())
        found.reservations = reservations
        return found

    def show(node: str, obj: Object) -> None:
        before, objects[node] = objects[node], obj
        queue.extend(keys_of(names.COMPUTE_KIND, seen(), before, obj) & {names.node_key(namespace, n) for n in nodes})

    for _ in range(2000):
        silent = [n for n, each in objects.items() if is_written(each) and is_down(each)]
        steps = ["plan"] * bool(queue) + ["answer"] * bool(under_way) + ["report"] * bool(silent)
        if not steps:
            break
        match random.choice(steps):
            case "plan":
                key = queue.pop(random.randrange(len(queue)))
                node = key.rpartition("/")[2]
                if node in under_way:
                    queue.append(key)
                    continue
                reservations.drop(key)
                planned = PROFILES.plan(PROFILES.collect(seen(), key, NOW), NOW, ())  # type: ignore[arg-type]
                reservations.reserve(key, planned.reserves, planned.waits_for)
                under_way.update((node, hash) for hash in planned.reserves.values())
            case "answer":
                node, hash = under_way.popitem()
                key = names.node_key(namespace, node)
                if failures and random.random() < 0.3:
                    failures -= 1
                    queue += [*reservations.release(key), key]
                    continue
                show(node, stored(compute(node, namespace, {**NEW, names.HASH: hash}), reports=reports))
                reservations.release(key)
            case "report":
                node = random.choice(silent)
                obj = objects[node]
                show(node, {**obj, "status": ready(obj["metadata"]["annotations"][names.HASH])})
        assert sum(map(is_down, objects.values())) + len(under_way) <= limit
    assert all(is_written(each) and not is_down(each) for each in objects.values())


def stored(obj: Object, *, reports: bool) -> Object:
    """Return the object of an operator that reports hashes, or only condition Ready."""
    return obj if reports else {**obj, "status": {"conditions": ready("")["conditions"]}}


def is_written(obj: Object) -> bool:
    return bool(obj["metadata"]["annotations"] != OLD)


def is_down(obj: Object) -> bool:
    return not is_available(obj, ignores=not obj["status"].get("hash"))
