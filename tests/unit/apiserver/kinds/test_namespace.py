"""Namespaces: deletion and phase."""

from __future__ import annotations

from .pipeline import NOW, RESOURCES, made


def test_deleting_a_namespace_only_begins_it() -> None:
    strategy = RESOURCES["", "namespaces"].strategy
    namespace = made("", "namespaces", {"metadata": {"name": "x"}})
    assert strategy.holds(namespace)
    leaving = strategy.prepare_delete(namespace, NOW)
    assert leaving is not None
    assert leaving["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert leaving["status"] == {"phase": "Terminating"}
    assert strategy.prepare_delete({**leaving, "spec": {}}, NOW) is None


def test_a_namespace_that_is_left_cannot_become_active_again() -> None:
    strategy = RESOURCES["", "namespaces"].strategy
    leaving = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Active"}}
    assert [str(error) for error in strategy.validate_status(leaving, leaving)] == [
        "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
    ]
