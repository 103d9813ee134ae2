"""Reviews of ApplicationDefinitions: validation and deletion."""

import pytest

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reviews.definitions import review

from ....builders.applications import ApplicationsView, api_service, application, definition_body, question

EMPTY = ApplicationsView()


def refused(response, *words, code=422):
    assert not response.is_allowed
    assert response.code == code
    assert all(word in response.message for word in words), response.message
    return True


def test_a_valid_definition_is_admitted_without_a_warning():
    response = review(question(definition_body()), EMPTY)
    assert response.is_allowed
    assert response.warnings == ()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "Tenant"}, ["Tenant", "cannot be declared"]),
        ({"plural": "Pg"}, ["spec.application.plural 'Pg'"]),
        ({"singular": "-"}, ["spec.application.singular '-'"]),
        ({"chart": None}, ["spec.release.chartRef"]),
        ({"schema": "{"}, ["openAPISchema", "not JSON"]),
        ({"schema": {"type": "string"}}, ["openAPISchema", "its type is 'string'"]),
    ],
    ids=str,
)
def test_a_definition_that_cannot_be_served_is_denied(given, words):
    assert refused(review(question(definition_body(**{"kind": "Postgres", **given})), EMPTY), *words)


@pytest.mark.parametrize("rival", [{"name": "older"}, {"name": "older", "kind": "Pg", "plural": "postgreses"},
                                   {"name": "older", "kind": "Pg", "singular": "postgres"}], ids=str)  # fmt: skip
def test_a_kind_that_is_declared_already_is_refused(rival):
    there = ApplicationsView(definition_body(**{"kind": "Postgres", **rival}))
    assert refused(review(question(definition_body()), there), "older")


def test_unsupported_schema_parts_are_warned_about_when_they_are_new():
    rich = definition_body(schema={"patternProperties": {"^a": {}}})
    (warning,) = review(question(rich), EMPTY).warnings
    assert "patternProperties of spec" in warning
    assert review(question(rich, rich), EMPTY).warnings == ()


def test_an_old_fault_does_not_block_other_changes():
    old = definition_body(chart=None)
    response = review(question({**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}, old), EMPTY)
    assert response.is_allowed
    assert "chartRef" in response.warnings[0]
    assert refused(review(question(definition_body(chart=None, plural="Pg"), definition_body(chart=None)), EMPTY), "Pg")


@pytest.mark.parametrize(("field", "new"), [("kind", {"kind": "Pg", "plural": "postgreses", "singular": "postgres"}),
                                            ("plural", {"plural": "pgs"})])  # fmt: skip
def test_a_kind_that_is_served_cannot_be_called_otherwise(field, new):
    changed = definition_body(**{"kind": "Postgres", "name": "postgres", **new})
    assert refused(review(question(changed, definition_body()), EMPTY), f"spec.application.{field}", "cannot change")


def test_a_prefix_changes_only_while_nothing_is_released_under_it():
    changed = definition_body(prefix="pg-")
    used = ApplicationsView(definition_body(), application({}))
    assert refused(review(question(changed, definition_body()), used), "spec.release.prefix", "a second time")
    assert review(question(changed, definition_body()), EMPTY).is_allowed


def test_definitions_of_a_platform_that_serves_its_kinds_itself_are_not_reviewed():
    tenants = definition_body("Tenant", plural="tenants")
    assert refused(review(question(tenants), EMPTY), "cannot be declared")
    assert review(question(tenants), ApplicationsView(api_service())).is_allowed


def test_a_definition_being_deleted_is_not_reviewed():
    going = definition_body(chart=None, deletionTimestamp="2026-01-01T00:00:00Z")
    assert review(question(going, definition_body()), EMPTY).is_allowed


def test_a_definition_in_use_is_not_deleted_and_its_users_are_named():
    users = [application({}, name=f"db-{number:02}") for number in range(12)]
    there = ApplicationsView(definition_body(), *users)
    response = review(question(None, definition_body(), "DELETE"), there)
    assert refused(response, "12 applications of kind Postgres", "tenant-acme/db-00", "and 2 more", code=403)


def test_a_definition_of_a_kind_that_an_older_one_declares_is_deleted_though_there_are_applications():
    older = definition_body(creationTimestamp="2026-01-01T00:00:00Z")
    rival = definition_body(name="rival", creationTimestamp="2026-02-01T00:00:00Z")
    there = ApplicationsView(older, rival, application({}))
    assert review(question(None, rival, "DELETE"), there).is_allowed
    assert refused(review(question(None, older, "DELETE"), there), "1 application of kind Postgres", code=403)


def test_a_definition_that_was_served_is_in_use_though_an_older_one_declares_its_kind():
    older = definition_body(creationTimestamp="2026-01-01T00:00:00Z")
    served = definition_body(
        name="served", creationTimestamp="2026-02-01T00:00:00Z", finalizers=[names.DEFINITION_FINALIZER]
    )
    there = ApplicationsView(older, served, application({}))
    assert refused(review(question(None, served, "DELETE"), there), "1 application of kind Postgres", code=403)


@pytest.mark.parametrize("there", [EMPTY, ApplicationsView(definition_body())], ids=["unwatched", "unused"])
def test_a_definition_that_nobody_uses_is_deleted(there):
    assert review(question(None, definition_body(), "DELETE"), there).is_allowed
