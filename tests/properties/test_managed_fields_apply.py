"""Properties of every apply, for any configurations."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nodeyard.apiserver.managed_fields import ApplyConflict, apply, update
from nodeyard.apiserver.managed_fields.compare import compare
from nodeyard.apiserver.managed_fields.fieldset import difference, includes, intersection, union
from nodeyard.apiserver.managed_fields.owned_set import to_field_set
from nodeyard.apiserver.managed_fields.type_shape import shape_of
from nodeyard.apiserver.managed_fields.update import UNOWNED
from nodeyard.kube.json import json_equal

from ..builders.managed_fields import Widgets

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WIDGET = shape_of(Widgets.schema)

seeds = st.integers(0, 2**32)


def config(seed: int) -> dict[str, Any]:
    samples = Widgets(random.Random(seed))
    metadata = {"name": "x", **samples.metadata()}
    obj = {"apiVersion": Widgets.api_version, "kind": "Widget", "metadata": metadata, "spec": samples.spec()}
    return without_empty_lists(obj)


def without_empty_lists(value: Any) -> Any:
    """An empty set or list map in a configuration has no owner, so it may be added and removed."""
    if isinstance(value, list):
        return [without_empty_lists(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: without_empty_lists(part) for name, part in value.items() if part != []}


def applied(live: Any, seed: int, manager: str, *, force: bool = True) -> dict[str, Any]:
    return apply(
        Widgets.schema,
        live,
        config(seed),
        manager=manager,
        force=force,
        api_version=Widgets.api_version,
        now=NOON,
        reset=Widgets.reset[""],
    )


def updated(live: Any, seed: int, manager: str) -> dict[str, Any]:
    new = {**config(seed), "metadata": {**(live or {}).get("metadata", {}), **config(seed)["metadata"]}}
    return update(Widgets.schema, live, new, manager=manager, api_version=Widgets.api_version, now=NOON)


def is_refused(value: Any) -> bool:
    """An apply may leave null after it removes the last part; validation then refuses the result."""
    if isinstance(value, list):
        return any(map(is_refused, value))
    if not isinstance(value, dict):
        return value is None
    return any(is_refused(part) for name, part in value.items() if name != "maybe")


def history(*steps: tuple[str, int]) -> dict[str, Any] | None:
    """An object after some writes: upper-case managers apply, lower-case ones update."""
    live = None
    for manager, seed in steps:
        new = applied(live, seed, manager) if manager.isupper() else updated(live, seed, manager)
        live = live if is_refused(new) else new
    return live


histories = st.lists(st.tuples(st.sampled_from("ABab"), seeds), max_size=4).map(lambda steps: history(*steps))


def entries(obj: Any) -> dict[tuple[str, str], Any]:
    return {(entry["manager"], entry["operation"]): entry for entry in obj["metadata"].get("managedFields", [])}


@settings(deadline=None)
@given(histories, seeds)
def test_applying_twice_is_applying_once(live: Any, seed: int) -> None:
    once = applied(live, seed, "A")
    assume(not is_refused(once))
    assert applied(once, seed, "A", force=False) is once


@settings(deadline=None)
@given(histories, seeds)
def test_applied_fields_are_stored_and_owned(live: Any, seed: int) -> None:
    result = applied(live, seed, "A")
    comparison = compare(WIDGET, config(seed), result)
    wanted = to_field_set(WIDGET, config(seed))
    assume(not is_refused(result))
    assert not intersection(union(comparison.modified, comparison.removed), wanted)
    mine = difference(wanted, UNOWNED)
    assert entries(result).get(("A", "Apply"), {}).get("fieldsV1", {}) == mine


@settings(deadline=None)
@given(histories, seeds)
def test_a_changed_field_has_no_other_owner(live: Any, seed: int) -> None:
    result = applied(live, seed, "A")
    if live is None:
        return
    comparison = compare(WIDGET, live, result)
    lost = union(comparison.gained, comparison.removed)
    for identity, entry in entries(result).items():
        if identity != ("A", "Apply"):
            assert not intersection(entry["fieldsV1"], lost)
            assert includes(entries(live)[identity]["fieldsV1"], entry["fieldsV1"])


@settings(deadline=None)
@given(histories, seeds)
def test_without_force_an_apply_conflicts_or_takes_no_field(live: Any, seed: int) -> None:
    result, contested = None, set()
    try:
        result = applied(live, seed, "B", force=False)
    except ApplyConflict as conflict:
        contested = {(each.manager.manager, each.manager.operation) for each in conflict.conflicts}
    assert ("B", "Apply") not in contested
    assert contested or json_equal(result, applied(live, seed, "B", force=True))


@settings(deadline=None)
@given(histories, seeds, seeds)
def test_pruning_that_can_be_skipped_would_do_nothing(live: Any, first: int, second: int) -> None:
    live = applied(live, first, "A")
    quick = applied(live, second, "A")
    with mock.patch("nodeyard.apiserver.managed_fields.apply.includes", return_value=False):
        assert json_equal(applied(live, second, "A"), quick)


@settings(deadline=None)
@given(histories, seeds)
def test_an_update_owns_what_it_changed(live: Any, seed: int) -> None:
    if live is None or not entries(live):
        return
    result = updated(live, seed, "c")
    comparison = compare(WIDGET, live, {**result, "metadata": {**result["metadata"], "managedFields": None}})
    changed = difference(comparison.gained, UNOWNED)
    assert entries(result).get(("c", "Update"), {}).get("fieldsV1", {}) == changed


@settings(deadline=None)
@given(histories, seeds)
def test_two_equal_objects_have_no_difference(live: Any, seed: int) -> None:
    first, second = applied(live, seed, "A"), applied(live, seed, "A")
    assert compare(WIDGET, first, second).is_same
