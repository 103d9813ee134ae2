"""Reviews of applications: name, spec and class."""

import pytest

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.application_plan import release_object
from nodeyard.capabilities.affinity.planning.choice import choose
from nodeyard.capabilities.affinity.reviews.applications import review, review_record

from ....builders.applications import (
    ApplicationsView,
    api_service,
    application,
    as_applied,
    class_body,
    definition_body,
    question,
    snapshot,
    tenant_body,
    with_record,
)

CLASSES = [class_body(name) for name in ("dc1", "dc2", "dc3")]


def view(*more, **tenant):
    tenant = tenant or {"defaultAffinityClass": "dc1", "allowedAffinityClasses": ["dc1", "dc2"]}
    return ApplicationsView(definition_body(), *CLASSES, tenant_body(**tenant), *more)


def released(spec):
    return as_applied(release_object(snapshot(spec), choose(snapshot(spec))))


def refused(response, *words, code=403):
    assert not response.is_allowed
    assert response.code == code
    assert all(word in response.message for word in words), response.message
    return True


@pytest.mark.parametrize("spec", [{}, {"affinityClass": "dc1"}, {"affinityClass": "dc2", "replicas": 2}])
def test_a_valid_application_is_admitted(spec):
    response = review(question(application(spec)), view())
    assert response.is_allowed
    assert response.warnings == ()


def test_a_class_that_does_not_exist_is_refused():
    assert refused(review(question(application({"affinityClass": "dc9"})), view()), 'AffinityClass "dc9" not found')


def test_a_class_that_the_tenant_does_not_allow_is_refused_with_what_it_allows():
    response = review(question(application({"affinityClass": "dc3"})), view())
    assert refused(response, "Postgres tenant-acme/main-db", '"dc3"', "tenant acme allows dc1, dc2")


def test_going_without_a_class_is_refused_where_the_tenant_restricts_and_has_a_default():
    assert refused(review(question(application({"affinityClass": ""})), view()), "is empty", "the default dc1")


def test_a_default_that_is_not_allowed_refuses_who_names_no_class():
    broken = view(defaultAffinityClass="dc3", allowedAffinityClasses=["dc1"])
    assert refused(review(question(application({})), broken), '"dc3"', "not one of the allowed classes dc1")
    assert review(question(application({"affinityClass": "dc1"})), broken).is_allowed


def test_outside_tenants_any_class_that_exists_will_do():
    elsewhere = {"namespace": "apps"}
    assert review(question(application({"affinityClass": "dc3"}, **elsewhere)), view()).is_allowed
    assert refused(review(question(application({"affinityClass": "dc9"}, **elsewhere)), view()), "not found")


def test_a_creation_that_takes_over_the_class_of_a_release_warns():
    other = released({"affinityClass": "dc2"})
    other["metadata"]["annotations"] = {}
    response = review(question(application({})), view(other))
    assert response.is_allowed
    (warning,) = response.warnings
    assert 'takes over AffinityClass "dc2" from the labels of HelmRelease postgres-main-db' in warning
    assert review(question(application({"affinityClass": "dc1"})), view(other)).warnings == ()


# updates


def test_an_unrelated_update_of_a_withdrawn_class_is_admitted_with_a_warning():
    old, new = ({"affinityClass": "dc3", "replicas": count} for count in (1, 5))
    response = review(question(application(new), application(old)), view(released(old)))
    (warning,) = response.warnings
    assert response.is_allowed
    assert '"dc3"' in warning
    assert "it was already so before" in warning


def test_an_unrelated_update_of_an_application_that_lacks_a_required_class_is_admitted_with_a_warning():
    old, new = ({"affinityClass": "", "replicas": count} for count in (1, 5))
    release = released(old)
    told = (with_record(application(each), release) for each in (new, old))
    (warning,) = review(question(*told), view(release)).warnings
    assert "still has no class, which is no longer allowed: tenant acme allows dc1, dc2" in warning


def test_an_unrelated_update_of_an_application_that_was_never_released_is_admitted_too():
    old, new = ({"affinityClass": "dc9", "replicas": count} for count in (1, 5))
    response = review(question(application(new), application(old)), view())
    assert response.is_allowed
    assert len(response.warnings) == 1


def test_a_change_of_class_is_reviewed():
    old = {"affinityClass": "dc1"}
    there = view(released(old))
    assert review(question(application({"affinityClass": "dc2"}), application(old)), there).is_allowed
    assert refused(review(question(application({"affinityClass": "dc3"}), application(old)), there), '"dc3"')


def test_an_application_that_drops_its_class_is_reviewed_by_the_default():
    old = {"affinityClass": "dc1"}
    broken = view(released(old), defaultAffinityClass="dc3", allowedAffinityClasses=["dc1"])
    assert refused(review(question(application({}), application(old)), broken), "cannot be used")


def test_a_bad_name_does_not_keep_anybody_from_updating():
    assert review(question(application({"replicas": 9}, name="9"), application({}, name="9")), view()).is_allowed


def test_an_application_being_deleted_is_not_reviewed():
    going = application({"_x": 1, "affinityClass": "dc9"}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert review(question(going, application({"affinityClass": "dc1"})), view()).is_allowed


# permanent faults


@pytest.mark.parametrize("name", ["9lives", "a.b", "a-", "n" * 64])
def test_a_name_that_is_no_host_name_is_refused(name):
    assert refused(review(question(application({}, name=name)), view()), "Choose another name", code=422)


def test_a_name_that_is_too_long_with_its_prefix_is_refused_with_what_is_left():
    assert refused(review(question(application({}, name="n" * 45)), view()), "no more than 44", code=422)
    assert review(question(application({}, name="n" * 44)), view()).is_allowed


def test_a_generated_name_is_not_checked_before_generation():
    unnamed = application({}, generateName="db-")
    del unnamed["metadata"]["name"]
    assert review(question(unnamed), view()).is_allowed


def test_the_name_is_looked_at_before_the_keys_and_they_before_the_class():
    wrong = {"_x": 1, "affinityClass": "dc9"}
    assert refused(review(question(application(wrong, name="9")), view()), "name", code=422)
    assert refused(review(question(application(wrong)), view()), "_x", code=422)


@pytest.mark.parametrize("key", ["_scheduling", "_cluster", "_"])
def test_a_key_of_the_platform_is_refused(key):
    assert refused(review(question(application({key: {}})), view()), key, "reserved for the platform", code=422)


def test_a_key_of_the_platform_that_stands_already_is_warned_about_and_another_refused():
    old = application({"_x": 1})
    assert refused(review(question(application({"_x": 1, "_y": 1}), old), view()), "_y", code=422)
    response = review(question(application({"_x": 2}), old), view())
    assert response.is_allowed
    assert "_x" in response.warnings[0]


def test_a_name_with_a_foreign_release_is_denied():
    foreign = released({})
    foreign["metadata"]["labels"] = {**foreign["metadata"]["labels"], names.APPLICATION_KIND: "Redis"}
    response = review(question(application({})), view(foreign))
    assert refused(response, "HelmRelease tenant-acme/postgres-main-db", "Redis main-db")


def test_a_kind_being_deleted_gets_no_new_application():
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    there = ApplicationsView(definition_body(**going))
    assert refused(review(question(application({})), there), "ApplicationDefinition postgres is being deleted")


def test_a_tenant_being_deleted_gets_no_new_application():
    going = tenant_body()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    there = ApplicationsView(definition_body(), *CLASSES, going)
    assert refused(review(question(application({})), there), "Tenant tenant-root/acme is being deleted")
    assert review(question(application({"replicas": 2}), application({"replicas": 1})), there).is_allowed


def test_applications_of_a_platform_that_serves_them_itself_are_not_reviewed():
    wrong = application({"_x": 1, "affinityClass": "dc9"})
    assert review(question(wrong), view(api_service())).is_allowed


def test_a_label_that_cannot_be_passed_on_is_warned_about_once():
    long = application({}, labels={"k" * 60: "v"})
    (warning,) = review(question(long), view()).warnings
    assert "too long" in warning
    assert review(question(long, long), view()).warnings == ()


def test_undeclared_kinds_are_not_reviewed():
    assert review(question(application({"_x": 1}, kind="Kafka")), view()).is_allowed
    assert review(question(tenant_body()), view()).is_allowed


# the record of its class


RECORDED = with_record(application({"affinityClass": "dc1"}), released({"affinityClass": "dc1"}))
INVALID = application({"affinityClass": "dc1"}, annotations={names.CLASS_RECORD: "{}"})
UNRECORDED = application({"affinityClass": "dc1"})


@pytest.mark.parametrize(
    "there",
    [view(), ApplicationsView(definition_body(), tenant_body()), ApplicationsView(*CLASSES, tenant_body())],
    ids=["as it is", "its class is missing", "its kind is not declared"],
)
@pytest.mark.parametrize("changed", [UNRECORDED, INVALID], ids=["removed", "made invalid"])
def test_a_record_stays_also_while_the_operator_would_write_none(there, changed):
    restored = review_record(question(changed, RECORDED), there).object
    assert restored["metadata"]["annotations"] == RECORDED["metadata"]["annotations"]


def test_the_operators_record_is_admitted_and_an_invalid_record_may_be_removed():
    assert review_record(question(RECORDED, UNRECORDED), view()).object is None
    assert review_record(question(UNRECORDED, INVALID), view()).object is None
