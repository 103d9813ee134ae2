"""The CRD of an ApplicationDefinition: created, left unchanged, kept in use, and deleted."""

from datetime import timedelta

import pytest

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning import definitions
from nodeyard.capabilities.affinity.planning.definitions import closing_patch, crd_of, plan_definition
from nodeyard.capabilities.affinity.planning.structural_schema import structural
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import DefinitionSnapshot
from nodeyard.kube.patch import merge_patch
from nodeyard.plan.model import Verb

from ....builders.applications import NOW, SCHEMA, as_applied, builder, definition

GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [names.DEFINITION_FINALIZER]}
GUARDED = {"finalizers": [names.DEFINITION_FINALIZER]}


def planned(**given):
    made = builder()
    given.setdefault("definition", definition(**GUARDED))
    plan_definition(made, DefinitionSnapshot(**given))
    return made


def crd(of=None, **metadata):
    """Build the CRD of a definition as stored."""
    of = of or definition()
    body = crd_of(of, structural(of.spec.application.open_api_schema)[0])
    return as_applied(body, **metadata)


def done(made):
    return [each.reason for each in made.actions], [each.reason for each in made.blocked]


def test_the_finalizer_is_added_before_the_crd():
    made = planned(definition=definition())
    finalizer, served = made.actions
    assert (finalizer.reason, served.reason) == (Reason.FINALIZER_ADDED, Reason.DEFINITION_SERVED)
    assert (served.verb, served.after) == (Verb.APPLY, (finalizer.id,))
    assert made.writes[finalizer.id].resource_version == "1"


def test_the_kind_is_served_with_its_schema_columns_status_and_label():
    made = planned()
    (action,) = made.actions
    body = made.writes[action.id].body
    assert body["metadata"]["name"] == "postgreses.apps.cozystack.io"
    assert body["metadata"]["labels"][names.DECLARED_BY] == "postgres"
    assert body["spec"]["names"] == {
        "kind": "Postgres",
        "listKind": "PostgresList",
        "plural": "postgreses",
        "singular": "postgres",
        "categories": ["nodeyard"],
    }
    assert body["spec"]["scope"] == "Namespaced"
    (version,) = body["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    assert [each["name"] for each in version["additionalPrinterColumns"]] == [
        "Ready",
        "Version",
        "Class",
        "Held",
        "Age",
    ]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    assert schema["spec"]["properties"]["replicas"] == {"type": "integer", "default": 2}
    assert schema["spec"]["x-kubernetes-preserve-unknown-fields"] is True
    assert {"affinityClass", "nodeSelector", "version", "conditions"} <= set(schema["status"]["properties"])


def test_a_spec_is_required_where_something_in_it_is():
    strict = definition(schema={**SCHEMA, "required": ["size"]})
    (version,) = crd(strict)["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["required"] == ["spec"]


def test_a_served_definition_is_not_written_again():
    assert done(planned(crd=crd())) == ([], [])


def test_a_field_that_leaves_the_schema_is_a_change():
    fewer = definition(schema={"properties": {"size": {"type": "string"}}}, **GUARDED)
    (action,) = planned(definition=fewer, crd=crd()).actions
    assert action.reason == Reason.DEFINITION_SERVED
    assert any("replicas" in each.path for each in action.diff)


def test_foreign_changes_of_our_crd_are_reverted():
    live = crd()
    live["spec"] = {**live["spec"], "versions": [{**live["spec"]["versions"][0], "served": False}]}
    assert done(planned(crd=live)) == ([Reason.DEFINITION_SERVED], [])


def test_parts_left_out_of_the_schema_are_reported_and_the_kind_is_served():
    rich = definition(schema={"patternProperties": {"^a": {}}}, **GUARDED)
    made = planned(definition=rich)
    assert done(made) == ([Reason.DEFINITION_SERVED], [Reason.SCHEMA_SIMPLIFIED])
    assert made.blocked[0].facts.left_out == ("patternProperties of spec",)


# unchanged


def test_a_foreign_crd_is_used_unchanged():
    foreign = crd(labels={})
    assert done(planned(crd=foreign)) == ([], [Reason.CRD_NOT_MANAGED])


def test_a_crd_of_another_definition_is_not_taken_over():
    made = planned(crd=crd(labels={names.DECLARED_BY: "other"}))
    assert done(made) == ([], [Reason.CRD_NOT_MANAGED])
    assert made.blocked[0].facts.by == "ApplicationDefinition other"


def test_a_platform_that_serves_the_group_is_left_alone():
    assert done(planned(definition=definition(), is_served_elsewhere=True)) == ([], [Reason.SERVED_BY_API_SERVICE])


def test_an_invalid_schema_keeps_the_served_crd():
    made = planned(definition=definition(schema="{", **GUARDED), crd=crd())
    assert done(made) == ([], [Reason.INVALID_SCHEMA])


def test_the_older_of_two_definitions_of_a_kind_has_it():
    assert done(planned(rivals=["older"])) == ([], [Reason.DUPLICATE_DEFINITION])


def test_another_kind_under_a_plural_that_is_served_is_refused():
    renamed = definition("Postgresql", plural="postgreses", name="postgres", **GUARDED)
    assert done(planned(definition=renamed, crd=crd())) == ([], [Reason.INVALID_DEFINITION])


def test_a_crd_that_is_going_is_waited_for():
    assert done(planned(crd=crd(deletionTimestamp="2026-01-01T00:00:00Z"))) == ([], [Reason.DELETING])


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"kind": "Tenant", "plural": "landlords"}, "spec.application.kind"),
        ({"kind": "Landlord", "plural": "tenants"}, "spec.application.kind"),
        ({"kind": "Landlord", "singular": "tenant"}, "spec.application.kind"),
        ({"kind": "", "plural": "x", "singular": "y"}, "spec.application.kind"),
        ({"kind": "My_Kind", "plural": "x", "singular": "y"}, "spec.application.kind"),
        ({"kind": "K" * 60, "plural": "x", "singular": "y"}, "spec.application.kind"),
        ({"plural": "Postgreses"}, "spec.application.plural"),
        ({"singular": "9"}, "spec.application.singular"),
        ({"prefix": "Pg-"}, "spec.release.prefix"),
        ({"prefix": "9-"}, "spec.release.prefix"),
        ({"prefix": "p" * 53}, "spec.release.prefix"),
        ({"chart": None}, "spec.release.chartRef"),
        ({"chart": {"kind": "GitRepository", "name": "x"}}, "spec.release.chartRef.kind"),
        ({"name": "n" * 64}, "metadata.name"),
    ],
    ids=str,
)
def test_a_definition_that_could_not_be_served_is_refused_by_its_field(given, field):
    made = planned(definition=definition(**{"kind": "Postgres", **given, **GUARDED}))
    assert done(made) == ([], [Reason.INVALID_DEFINITION])
    assert made.blocked[0].facts.errors[0].startswith(f"{field}")


# deletion


def test_a_definition_in_use_is_kept():
    made = planned(definition=definition(**GOING), crd=crd(), applications=3)
    assert done(made) == ([], [Reason.DEFINITION_IN_USE])


def test_a_definition_whose_applications_cannot_be_counted_is_kept():
    assert done(planned(definition=definition(**GOING), crd=crd(), watch_error="forbidden")) == (
        [],
        [Reason.APPLICATIONS_UNWATCHED],
    )


def closed(seconds):
    """Build the CRD this long after it was closed."""
    open_ = crd()
    return merge_patch(open_, closing_patch(open_, NOW - timedelta(seconds=seconds)))


def test_the_crd_is_closed_for_new_objects_before_its_deletion():
    made = planned(definition=definition(**GOING), crd=crd(resourceVersion="7"))
    assert done(made) == ([Reason.DEFINITION_CLOSED], [])
    (action,) = made.actions
    write = made.writes[action.id]
    assert (action.verb, action.object.uid, write.resource_version) == (Verb.PATCH, "uid-live", "7")
    (version,) = write.body["spec"]["versions"]
    (rule,) = version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    assert (rule["rule"], rule["optionalOldSelf"]) == ("oldSelf.hasValue()", True)


def test_objects_created_before_the_crd_was_closed_have_time_to_reach_the_watch():
    made = planned(definition=definition(**GOING), crd=closed(definitions.SETTLE.total_seconds() / 2))
    assert done(made) == ([], [Reason.DEFINITION_CLOSED])
    assert made.wake_at == NOW + definitions.SETTLE / 2
    assert done(planned(definition=definition(**GOING), crd=closed(60), applications=1)) == (
        [], [Reason.DEFINITION_IN_USE]
    )  # fmt: skip


def test_an_invalid_timestamp_is_rewritten():
    odd = closed(60)
    odd["metadata"]["annotations"] = {names.CLOSED_AT: "soon"}
    assert done(planned(definition=definition(**GOING), crd=odd)) == ([Reason.DEFINITION_CLOSED], [])
    (version,) = closing_patch(odd, NOW)["spec"]["versions"]
    assert len(version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]) == 1


def test_a_recreated_definition_reopens_its_crd_and_later_closes_it_again():
    assert done(planned(crd=closed(60))) == ([Reason.DEFINITION_SERVED], [])
    opened = crd(annotations={names.CLOSED_AT: "2020-01-01T00:00:00Z"})
    assert done(planned(definition=definition(**GOING), crd=opened)) == ([Reason.DEFINITION_CLOSED], [])


FORMER = ["pgs.apps.cozystack.io"]


def test_a_definition_that_was_served_under_another_plural_is_not_served_under_the_new_one():
    made = planned(former=FORMER)
    assert done(made) == ([], [Reason.INVALID_DEFINITION])
    (error,) = made.blocked[0].facts.errors
    assert "already served as pgs.apps.cozystack.io, whose applications would be orphaned" in error


def test_a_definition_with_another_plural_is_not_deleted_before_the_plural_is_set_back():
    assert done(planned(definition=definition(**GOING), former=FORMER)) == ([], [Reason.INVALID_DEFINITION])
    assert done(planned(definition=definition(**GOING), former=FORMER, applications=1)) == (
        [], [Reason.DEFINITION_IN_USE]
    )  # fmt: skip


def test_the_crd_goes_first_and_then_the_finalizer():
    made = planned(definition=definition(**GOING), crd=closed(60))
    assert done(made) == ([Reason.DEFINITION_WITHDRAWN], [])
    assert (made.actions[0].verb, made.actions[0].object.uid) == (Verb.DELETE, "uid-live")
    going = crd(deletionTimestamp="2026-01-01T00:00:00Z")
    assert done(planned(definition=definition(**GOING), crd=going)) == ([], [Reason.DELETING])
    assert done(planned(definition=definition(**GOING))) == ([Reason.FINALIZER_REMOVED], [])


def test_a_foreign_crd_outlives_the_definition():
    assert done(planned(definition=definition(**GOING), crd=crd(labels={}))) == ([Reason.FINALIZER_REMOVED], [])


def test_a_definition_without_our_finalizer_is_deleted_without_us():
    gone = definition(deletionTimestamp="2026-01-01T00:00:00Z")
    assert done(planned(definition=gone, crd=crd())) == ([], [])
