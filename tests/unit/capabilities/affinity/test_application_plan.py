"""The HelmRelease of an application: contents, writes, and conflicts of ownership."""

import pytest

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.application_plan import plan_application
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.plan.model import Verb
from nodeyard.plan.secrets import fingerprint

from ....builders.applications import (
    CLASSES,
    affinity_class,
    application,
    as_applied,
    builder,
    definition,
    policy,
    snapshot,
    with_ready,
)

ZONE = "topology.kubernetes.io/zone"


def planned(given):
    made = builder()
    plan_application(made, given)
    return made


def body_of(given):
    made = planned(given)
    (action,) = written(made)
    assert action.verb is Verb.APPLY
    return made.writes[action.id].body


def written(made):
    """Return the actions except the first one, which records the class."""
    return [each for each in made.actions if each.reason != Reason.CLASS_RECORDED]


def released(spec=None, **given):
    """Return the ready release of the application after one pass."""
    return with_ready(as_applied(body_of(snapshot(spec, **given))))


def refusals(made):
    return [each.reason for each in made.blocked]


# contents


def test_the_example_of_the_design_is_released_as_it_says():
    body = body_of(snapshot({"affinityClass": "dc1", "replicas": 3}, policy=policy("dc1", ("dc1", "dc2"))))
    assert body["apiVersion"] == "helm.toolkit.fluxcd.io/v2"
    assert (body["metadata"]["name"], body["metadata"]["namespace"]) == ("postgres-main-db", "tenant-acme")
    assert body["metadata"]["labels"] == {
        "sharding.fluxcd.io/key": "tenants",
        "apps.cozystack.io/application.group": "apps.cozystack.io",
        "apps.cozystack.io/application.kind": "Postgres",
        "apps.cozystack.io/application.name": "main-db",
        "apps.cozystack.io/affinity-class": "dc1",
    }
    assert body["spec"] == {
        "chartRef": {"kind": "ExternalArtifact", "name": "postgres-chart", "namespace": "cozy-system"},
        "interval": "5m",
        "install": {"strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}},
        "upgrade": {"strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}},
        "valuesFrom": [{"kind": "Secret", "name": "cozystack-values"}],
        "values": {
            "affinityClass": "dc1",
            "replicas": 3,
            "_scheduling": {"affinityClass": "dc1", "nodeSelector": {ZONE: "dc1"}},
        },
    }
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == (
        "Postgres",
        "main-db",
        "uid-main-db",
        True,
    )


def test_a_class_of_terms_reaches_the_chart_as_node_affinity():
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["dc1", "dc2"]}]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    either = affinity_class("either", {}, nodeAffinity=required)
    values = body_of(snapshot({"affinityClass": "either"}, classes={"either": either}))["spec"]["values"]
    assert values["_scheduling"] == {"affinityClass": "either", "nodeAffinity": required}


def test_an_application_without_a_class_gets_no_placement():
    body = body_of(snapshot({"replicas": 1}))
    assert names.AFFINITY_CLASS not in body["metadata"]["labels"]
    assert body["spec"]["values"] == {"replicas": 1}
    assert body["metadata"]["annotations"] == {names.CLASS_SOURCE: "none"}


def test_user_labels_and_annotations_cannot_forge_ours():
    forged = {names.AFFINITY_CLASS: "dc3", "team": "db"}
    kept = {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    body = body_of(snapshot(app=application({"affinityClass": "dc1"}, labels=forged, annotations=kept)))
    labels = body["metadata"]["labels"]
    assert labels[names.AFFINITY_CLASS] == "dc1"
    assert labels["apps.cozystack.io-apps.cozystack.io/affinity-class"] == "dc3"
    assert labels["apps.cozystack.io-team"] == "db"
    assert body["metadata"]["annotations"] == {"apps.cozystack.io-note": "n", names.CLASS_SOURCE: "explicit"}


def test_a_label_that_would_be_too_long_is_left_out():
    body = body_of(snapshot(app=application({}, labels={"k" * 50: "v", "k" * 45: "v"})))
    theirs = [key for key in body["metadata"]["labels"] if key.startswith(names.USER_KEY_PREFIX)]
    assert theirs == [f"{names.USER_KEY_PREFIX}{'k' * 45}"]


def test_a_definition_cannot_give_a_class_by_its_labels():
    forging = definition(labels={names.AFFINITY_CLASS: "dc3", names.PREVIOUS_CLASS: "dc2"})
    labels = body_of(snapshot({}, definition=forging))["metadata"]["labels"]
    assert names.AFFINITY_CLASS not in labels
    assert names.PREVIOUS_CLASS not in labels


# writes


def test_a_release_that_is_as_it_should_be_is_not_written():
    live = released({"affinityClass": "dc1", "users": [{"name": "a"}], "resources": {}})
    again = snapshot({"affinityClass": "dc1", "users": [{"name": "a"}], "resources": {}}, release=live)
    assert planned(again).actions == []


def test_a_changed_value_is_written_and_one_that_is_gone_too():
    live = released({"replicas": 3, "size": "1Gi"})
    made = planned(snapshot({"replicas": 5}, release=live))
    (action,) = made.actions
    assert {each.path: (each.from_, each.to) for each in action.diff} == {
        "spec.values.replicas": (3, 5),
        "spec.values.size": (fingerprint("1Gi"), None),
    }
    assert action.reason == Reason.RELEASE_APPLIED
    assert action.object.uid == "uid-live"


def test_no_password_among_the_values_is_shown_in_any_diff():
    before = {"affinityClass": "dc1", "users": {"a": {"password": "hunter2"}}, "keys": ["hunter2"]}
    after = {"affinityClass": "dc1", "users": {"a": {"password": "hunter3"}}, "keys": []}
    live = released(before)
    foreign = {**live["spec"]["values"], "theirs": {"password": "hunter2"}}
    edited = {**live, "spec": {**live["spec"], "values": foreign}}
    made = [planned(snapshot(before)), planned(snapshot(after, release=live)), planned(snapshot(after, release=edited))]
    assert "hunter" not in str([each.actions for each in made])
    actions = [action for each in made for action in written(each)]
    shown = {change.path: change.to for change in actions[0].diff}
    assert shown["spec.values.users.a.password"] == fingerprint("hunter2")
    assert shown["spec.values.affinityClass"] == shown["spec.values._scheduling.affinityClass"] == "dc1"
    assert "spec.values.users.a.password" in {change.path for change in actions[1].diff}
    assert made[0].writes[actions[0].id].body["spec"]["values"]["users"] == before["users"]


def test_an_item_that_leaves_a_list_of_named_ones_is_a_change():
    live = released({"users": [{"name": "a"}, {"name": "b"}]})
    (action,) = planned(snapshot({"users": [{"name": "a"}]}, release=live)).actions
    assert action.diff


def test_a_class_change_keeps_the_class_before_until_the_release_is_ready():
    live = released({"affinityClass": "dc1"})
    changing = snapshot({"affinityClass": "dc2"}, release=live)
    made = planned(changing)
    assert [each.reason for each in made.actions] == [Reason.CLASS_RECORDED, Reason.CLASS_CHANGED]
    assert made.actions[1].after == (made.actions[0].id,)
    body = body_of(changing)
    assert body["metadata"]["labels"][names.PREVIOUS_CLASS] == "dc1"
    changed = as_applied(body, live)
    waiting = snapshot({"affinityClass": "dc2"}, release=with_ready(changed, generation=1))
    assert planned(waiting).actions == []
    settled = planned(snapshot({"affinityClass": "dc2"}, release=with_ready(changed)))
    assert [each.reason for each in settled.actions] == [Reason.CLASS_RECORDED, Reason.CLASS_SETTLED]
    assert names.PREVIOUS_CLASS not in settled.writes[settled.actions[1].id].body["metadata"]["labels"]


def test_a_default_that_changes_moves_nothing():
    live = released({}, policy=policy("dc1"))
    assert planned(snapshot({}, policy=policy("dc2"), release=live)).actions == []


def test_the_sharding_key_that_the_platform_has_set_survives():
    live = released({})
    live["metadata"]["labels"] = {**live["metadata"]["labels"], names.SHARDING_KEY: "shard-7"}
    assert planned(snapshot({}, release=live)).actions == []
    body = body_of(snapshot({"replicas": 9}, release=live))
    assert body["metadata"]["labels"][names.SHARDING_KEY] == "shard-7"


def test_labels_and_fields_of_others_are_left_alone():
    live = released({})
    live["metadata"]["labels"] = {**live["metadata"]["labels"], "their/label": "x"}
    live["spec"] = {**live["spec"], "suspend": True}
    assert planned(snapshot({}, release=live)).actions == []


def test_foreign_values_are_removed_before_ours_are_applied():
    live = released({"affinityClass": "dc1"})
    values = live["spec"]["values"]
    scheduling = {**values["_scheduling"], "nodeSelector": {ZONE: "dc1", "evil": "yes"}}
    live["spec"] = {**live["spec"], "values": {**values, "_scheduling": scheduling, "debug": True, "replicas": 1}}
    made = planned(snapshot({"affinityClass": "dc1", "replicas": 2}, release=live))
    first, second = made.actions
    assert (first.verb, first.reason) == (Verb.PATCH, Reason.VALUES_CLEARED)
    assert made.writes[first.id].body == {
        "spec": {"values": {"_scheduling": {"nodeSelector": {"evil": None}}, "debug": None}}
    }
    assert (second.verb, second.after) == (Verb.APPLY, (first.id,))
    assert [each.path for each in second.diff] == ["spec.values.replicas"]


def test_values_from_elsewhere_are_exactly_those_of_the_platform():
    live = released({})
    entry = {"kind": "Secret", "name": "mine", "targetPath": "_scheduling.affinityClass"}
    live["spec"] = {**live["spec"], "valuesFrom": [*live["spec"]["valuesFrom"], entry]}
    (action,) = planned(snapshot({}, release=live)).actions
    assert [each.path for each in action.diff] == ["spec.valuesFrom[mine]"]


# ownership


def test_a_release_with_the_three_labels_is_adopted():
    live = released({})
    live["metadata"] = {
        key: value for key, value in live["metadata"].items() if key not in ("ownerReferences", "managedFields")
    }
    (action,) = planned(snapshot({}, release=live)).actions
    assert [each.path for each in action.diff] == ["metadata.ownerReferences[Postgres:main-db:uid-main-db]"]


def test_a_release_without_a_spec_is_completed():
    live = released({})
    del live["spec"]
    (action,) = planned(snapshot({}, release=live)).actions
    assert action.verb is Verb.APPLY
    assert any(each.path.startswith("spec.chartRef") for each in action.diff)


def foreign_label(live):
    live["metadata"]["labels"] = {**live["metadata"]["labels"], names.APPLICATION_KIND: "Redis"}


def no_labels(live):
    del live["metadata"]["labels"]


def other_controller(live):
    live["metadata"]["ownerReferences"] = [{"kind": "Bundle", "name": "b", "uid": "u", "controller": True}]


@pytest.mark.parametrize("change", [foreign_label, no_labels, other_controller])
def test_a_foreign_release_is_a_conflict(change):
    live = released({})
    change(live)
    unrecorded = application({"replicas": 9}, annotations={names.CLASS_RECORD: ""})
    made = planned(snapshot(app=unrecorded, release=live))
    assert (made.actions, refusals(made)) == ([], [Reason.NAME_CONFLICT])


def no_owner(live):
    no_labels(live)
    del live["metadata"]["ownerReferences"]


@pytest.mark.parametrize("change", [foreign_label, no_labels, no_owner])
def test_a_release_named_in_the_record_is_ours_regardless_of_its_labels(change):
    live = released({})
    wanted = live["metadata"]["labels"]
    change(live)
    made = planned(snapshot({}, release=live))
    body = made.writes[made.actions[-1].id].body
    assert (refusals(made), body["metadata"]["labels"]) == ([], wanted)
    assert body["metadata"]["ownerReferences"][0]["uid"] == "uid-main-db"


def test_a_release_that_the_record_names_is_not_taken_from_another_controller():
    live = released({})
    no_labels(live)
    other_controller(live)
    made = planned(snapshot({}, release=live))
    assert (made.actions, refusals(made)) == ([], [Reason.NAME_CONFLICT])


def test_a_foreign_release_created_since_the_snapshot_is_not_taken_over():
    made = planned(snapshot({}))
    assert [made.writes[each.id].is_first for each in written(made)] == [True]
    changed = planned(snapshot({"replicas": 9}, release=released({})))
    assert [each.is_first for each in changed.writes.values()] == [False]


def going(live):
    live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"


def of_the_one_before(live):
    live["metadata"]["ownerReferences"] = [{**live["metadata"]["ownerReferences"][0], "uid": "uid-former"}]


@pytest.mark.parametrize("change", [going, of_the_one_before])
def test_a_release_that_is_going_is_waited_for(change):
    live = released({})
    change(live)
    made = planned(snapshot({}, release=live))
    assert (made.actions, refusals(made)) == ([], [Reason.RELEASE_PENDING])


# refusals


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (snapshot(app=application({}, deletionTimestamp="2026-01-01T00:00:00Z")), Reason.DELETING),
        (snapshot({}, is_release_served=False), Reason.HELM_RELEASE_NOT_SERVED),
        (snapshot({}, definition=definition(chart=None)), Reason.INVALID_DEFINITION),
        (snapshot({"_scheduling": {"nodeSelector": {}}}), Reason.RESERVED_KEY),
        (snapshot(app=application({}, name="9lives")), Reason.BAD_NAME),
        (snapshot(app=application({}, name="a.b")), Reason.BAD_NAME),
        (snapshot(app=application({}, name="n" * 45)), Reason.BAD_NAME),
        (snapshot({"affinityClass": "dc9"}), Reason.AFFINITY_CLASS_NOT_FOUND),
        (snapshot({"affinityClass": "dc3"}, policy=policy("", ("dc1",))), Reason.AFFINITY_CLASS_NOT_ALLOWED),
        (snapshot({}, policy=policy("dc3", ("dc1",), "no")), Reason.DEFAULT_NOT_ALLOWED),
    ],
    ids=lambda given: given.value if isinstance(given, Reason) else "",
)
def test_nothing_is_applied_while_the_release_is_refused(given, reason):
    made = planned(given)
    assert (made.actions, refusals(made)) == ([], [reason])


def test_a_name_of_53_letters_with_its_prefix_is_released():
    assert body_of(snapshot(app=application({}, name="n" * 44)))["metadata"]["name"] == f"postgres-{'n' * 44}"


def test_a_withdrawn_class_leaves_the_release_as_it_is():
    live = released({"affinityClass": "dc1"})
    made = planned(snapshot({"affinityClass": "dc1"}, policy=policy("", ("dc2",)), release=live))
    assert (made.actions, refusals(made)) == ([], [Reason.AFFINITY_CLASS_WITHDRAWN])


def test_a_withdrawn_class_does_not_keep_an_application_from_being_scaled():
    live = released({"affinityClass": "dc1", "replicas": 1})
    allowed = policy("", ("dc2",))
    body = body_of(snapshot({"affinityClass": "dc1", "replicas": 5}, policy=allowed, release=live))
    assert body["spec"]["values"]["replicas"] == 5
    assert body["spec"]["values"]["_scheduling"]["affinityClass"] == "dc1"


def test_a_missing_class_leaves_the_release_as_it_is():
    live = released({"affinityClass": "dc1"})
    classes = {name: each for name, each in CLASSES.items() if name != "dc1"}
    made = planned(snapshot({"affinityClass": "dc1", "replicas": 5}, classes=classes, release=live))
    assert (made.actions, refusals(made)) == ([], [Reason.AFFINITY_CLASS_NOT_FOUND])
