"""The class of an application: choices and refusals."""

from dataclasses import replace

import pytest

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.applications import ClassNotAllowed
from nodeyard.capabilities.affinity.planning.application_plan import release_object
from nodeyard.capabilities.affinity.planning.choice import choose
from nodeyard.capabilities.affinity.planning.class_record import previous_classes, previous_label
from nodeyard.capabilities.affinity.reasons import Reason

from ....builders.applications import (
    CLASSES,
    affinity_class,
    application,
    as_applied,
    policy,
    snapshot,
    with_ready,
    with_record,
)


def released(name="", source=names.DEFAULT, previous=None, **given):
    """Build a release with a class and its source."""
    base = snapshot({})
    body = release_object(base, choose(base))
    labels = dict(body["metadata"]["labels"].items())
    if name:
        labels[names.AFFINITY_CLASS] = name
    if previous is not None:
        labels[names.PREVIOUS_CLASS] = previous
    annotations = {names.CLASS_SOURCE: source} if source else {}
    metadata = {**body["metadata"], "labels": labels, "annotations": annotations}
    values = {**body["spec"]["values"], **({names.SCHEDULING_VALUES: {"affinityClass": name}} if name else {})}
    return as_applied({**body, "metadata": metadata, "spec": {**body["spec"], "values": values}}, generation=3, **given)


def spec(name):
    return {} if name is None else {"affinityClass": name}


ANY = policy()
DEFAULT = policy("dc1")
SOME = policy("dc1", ("dc1", "dc2"))
BROKEN = policy("dc3", ("dc1",), fault="dc3 is not allowed")
BELOW = replace(policy("", ("dc1",)), needs_class_above=True)

FREE = [
    # spec, tenant, release -> name, source, reason
    ("explicit", "dc2", SOME, None, "dc2", names.EXPLICIT, Reason.CHOSEN_BY_APPLICATION),
    ("explicit outside tenants", "dc3", ANY, None, "dc3", names.EXPLICIT, Reason.CHOSEN_BY_APPLICATION),
    ("explicit over a sticky default", "dc2", SOME, released("dc1"), "dc2", names.EXPLICIT,
     Reason.CHOSEN_BY_APPLICATION),
    ("explicit though the default is broken", "dc1", BROKEN, None, "dc1", names.EXPLICIT, Reason.CHOSEN_BY_APPLICATION),
    ("the default", None, SOME, None, "dc1", names.DEFAULT, Reason.TENANT_DEFAULT),
    ("sticky while the default is another", None, SOME, released("dc2"), "dc2", names.DEFAULT,
     Reason.KEPT_FROM_DEFAULT),
    ("sticky without a default", None, ANY, released("dc2"), "dc2", names.DEFAULT, Reason.KEPT_FROM_DEFAULT),
    ("sticky though the default is broken", None, BROKEN, released("dc1"), "dc1", names.DEFAULT,
     Reason.KEPT_FROM_DEFAULT),
    ("adopted with a class", None, SOME, released("dc2", ""), "dc2", names.DEFAULT, Reason.KEPT_FROM_DEFAULT),
    ("not explicit any more", None, SOME, released("dc2", names.EXPLICIT), "dc1", names.DEFAULT, Reason.TENANT_DEFAULT),
    ("none without a default", None, ANY, None, "", names.NONE, Reason.NO_CLASS),
    ("none stays none", None, DEFAULT, released("", names.NONE), "", names.NONE, Reason.NO_CLASS),
    ("adopted without a class", None, DEFAULT, released("", ""), "", names.NONE, Reason.NO_CLASS),
    ("declined", "", DEFAULT, None, "", names.EXPLICIT, Reason.NO_CLASS),
    ("declined where there is no default", "", policy("", ("dc1",)), None, "", names.EXPLICIT, Reason.NO_CLASS),
    ("declined and then not said", None, DEFAULT, released("", names.EXPLICIT), "dc1", names.DEFAULT,
     Reason.TENANT_DEFAULT),
    ("withdrawn", "dc3", SOME, released("dc3", names.EXPLICIT), "dc3", names.EXPLICIT, Reason.AFFINITY_CLASS_WITHDRAWN),
    ("a sticky default withdrawn", None, SOME, released("dc3"), "dc3", names.DEFAULT, Reason.AFFINITY_CLASS_WITHDRAWN),
    ("no class withdrawn", "", SOME, released("", names.EXPLICIT), "", names.EXPLICIT, Reason.AFFINITY_CLASS_WITHDRAWN),
    ("no class withdrawn, default broken", "", BROKEN, released("", names.EXPLICIT), "", names.EXPLICIT,
     Reason.AFFINITY_CLASS_WITHDRAWN),
    ("no class withdrawn by a tenant above", "", BELOW, released("", names.EXPLICIT), "", names.EXPLICIT,
     Reason.AFFINITY_CLASS_WITHDRAWN),
    ("none stays none below a tenant that restricts", None, BELOW, released("", names.NONE), "", names.NONE,
     Reason.NO_CLASS),
    ("a sticky default named", "dc2", SOME, released("dc2"), "dc2", names.EXPLICIT, Reason.CHOSEN_BY_APPLICATION),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "tenant", "release", "name", "source", "reason"), [each[1:] for each in FREE],
                         ids=[each[0].replace(" ", "-") for each in FREE])  # fmt: skip
def test_an_application_has_a_class(wanted, tenant, release, name, source, reason):
    choice = choose(snapshot(spec(wanted), policy=tenant, release=release))
    assert (choice.name, choice.source, choice.message.reason, choice.is_blocking) == (name, source, reason, False)


@pytest.mark.parametrize("tenant", [BROKEN, BELOW], ids=["a broken default", "no default"])
@pytest.mark.parametrize("release", [None, released("", names.EXPLICIT)], ids=["new", "kept"])
def test_a_default_that_cannot_be_used_is_never_suggested(tenant, release):
    message = choose(snapshot(spec(""), policy=tenant, release=release)).message.text()

    assert "et spec.affinityClass to an allowed class" in message
    assert "emove" not in message


def test_the_default_is_named_when_an_application_declines_a_class():
    for release in (None, released("", names.EXPLICIT)):
        message = choose(snapshot(spec(""), policy=SOME, release=release)).message.text()
        assert "to get the default dc1" in message


REFUSED = [
    ("missing", "dc9", ANY, None, Reason.AFFINITY_CLASS_NOT_FOUND),
    ("missing of a release", "dc9", ANY, released("dc9", names.EXPLICIT), Reason.AFFINITY_CLASS_NOT_FOUND),
    ("a default that is missing", None, policy("dc9"), None, Reason.AFFINITY_CLASS_NOT_FOUND),
    ("a sticky default that is missing", None, ANY, released("dc9"), Reason.AFFINITY_CLASS_NOT_FOUND),
    ("not allowed", "dc3", SOME, None, Reason.AFFINITY_CLASS_NOT_ALLOWED),
    ("none is allowed", "dc1", policy("", ()), None, Reason.AFFINITY_CLASS_NOT_ALLOWED),
    ("changed to one that is not allowed", "dc3", SOME, released("dc1"), Reason.AFFINITY_CLASS_NOT_ALLOWED),
    ("declined in a tenant that restricts", "", SOME, None, Reason.AFFINITY_CLASS_NOT_ALLOWED),
    ("declined after a class", "", SOME, released("dc1"), Reason.AFFINITY_CLASS_NOT_ALLOWED),
    ("declined where the default is broken", "", BROKEN, None, Reason.AFFINITY_CLASS_NOT_ALLOWED),
    ("a default that is not allowed", None, BROKEN, None, Reason.DEFAULT_NOT_ALLOWED),
    ("declined below a tenant that restricts", "", BELOW, None, Reason.AFFINITY_CLASS_NOT_ALLOWED),
    ("not said below a tenant that restricts", None, BELOW, None, Reason.AFFINITY_CLASS_NOT_ALLOWED),
]


@pytest.mark.parametrize(("wanted", "tenant", "release", "reason"), [each[1:] for each in REFUSED],
                         ids=[each[0].replace(" ", "-") for each in REFUSED])  # fmt: skip
def test_a_class_is_refused(wanted, tenant, release, reason):
    choice = choose(snapshot(spec(wanted), policy=tenant, release=release))
    assert (choice.message.reason, choice.is_blocking) == (reason, True)


def test_a_class_that_is_being_deleted_gets_no_new_users_and_keeps_the_old():
    going = affinity_class("dc1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    classes = {**CLASSES, "dc1": going}
    assert choose(snapshot(spec("dc1"), classes=classes)).message.reason is Reason.AFFINITY_CLASS_NOT_FOUND
    kept = choose(snapshot(spec("dc1"), classes=classes, release=released("dc1", names.EXPLICIT)))
    assert (kept.message.reason, kept.is_blocking) == (Reason.CHOSEN_BY_APPLICATION, False)


def test_a_release_of_another_application_does_not_count():
    other = released("dc2")
    other["metadata"]["labels"][names.APPLICATION_NAME] = "other"
    assert choose(unrecorded({}, policy=DEFAULT, release=other)).name == "dc1"


def unrecorded(spec, **given):
    """Build an application without a record: it adopts its release, or an earlier version made it."""
    found = snapshot(spec, **given)
    metadata = {**found.application["metadata"], "annotations": {}}
    return replace(found, application={**found.application, "metadata": metadata})


def test_a_release_that_is_adopted_counts_as_far_as_the_application_could_choose_its_class():
    adopted = choose(unrecorded({}, policy=SOME, release=released("dc2", names.DEFAULT)))
    assert (adopted.name, adopted.previous) == ("dc2", ())
    assert choose(unrecorded({}, policy=SOME, release=released("dc3", names.DEFAULT))).name == "dc1"
    assert choose(unrecorded(spec("dc3"), policy=SOME, release=released("dc3"))).is_blocking
    # No class where the tenant requires one: it is not kept, and does not admit pods anywhere until it is ready.
    bare = choose(unrecorded({}, policy=SOME, release=released("", names.NONE)))
    assert (bare.name, bare.previous) == ("dc1", ())


def test_a_release_that_is_adopted_admits_no_pods_of_another_class():
    """Labels of a release are a claim: it could have been created before the application by anyone with the right."""
    for shown in ("", "dc1"):
        chosen = choose(unrecorded(spec("dc2"), policy=DEFAULT, release=released(shown, names.NONE)))
        assert (chosen.name, chosen.previous) == ("dc2", ())


@pytest.mark.parametrize("previous", ["", "dc3"])
def test_the_record_wins_over_the_labels_of_the_release(previous):
    shown = released("dc1", names.DEFAULT)
    recorded = with_record(snapshot({}).application, shown)
    shown["metadata"]["labels"] = {
        **{key: value for key, value in shown["metadata"]["labels"].items() if key != names.AFFINITY_CLASS},
        names.PREVIOUS_CLASS: previous,
    }

    kept = choose(snapshot(app=recorded, policy=SOME, release=shown))

    assert (kept.name, kept.source, kept.previous) == ("dc1", names.DEFAULT, ())


def test_a_change_that_is_recorded_and_not_released_yet_keeps_the_class_before():
    """The pass was interrupted in between: the release is ready with the previous class."""
    before = with_ready(released("dc1", names.EXPLICIT))
    app = with_record(application(spec("dc2")), released("dc2", names.EXPLICIT, previous="dc1"))

    again = choose(snapshot(app=app, policy=SOME, release=before))

    assert (again.name, again.previous) == ("dc2", ("dc1",))


def test_a_record_of_another_object_does_not_count():
    app = with_record(snapshot({}).application, released("dc3", names.DEFAULT))
    copied = {**app, "metadata": {**app["metadata"], "uid": "another"}}

    assert choose(snapshot(app=copied, policy=SOME)).name == "dc1"


def test_a_refusal_names_the_application_the_class_and_what_is_allowed():
    world = snapshot(spec("dc3"), policy=SOME)
    assert choose(world).message == ClassNotAllowed(
        object=world.ref, affinity_class="dc3", tenant="acme", allowed=("dc1", "dc2")
    )


def test_a_class_that_is_no_text_is_one_that_does_not_exist():
    assert choose(snapshot(app=application({"affinityClass": 7}))).message.reason is Reason.AFFINITY_CLASS_NOT_FOUND


# previous classes


def previous(wanted, release):
    return choose(snapshot(spec(wanted), release=release)).previous


def test_there_is_no_previous_class_before_the_first_release():
    assert previous("dc1", None) == ()


def test_a_changed_class_is_kept_as_the_one_before():
    assert previous("dc2", released("dc1")) == ("dc1",)


def test_no_class_before_is_kept_as_none():
    assert previous("dc1", released("", names.NONE)) == ("",)


def test_removing_the_class_leaves_no_previous_class():
    assert previous("", released("dc1", names.EXPLICIT, previous="dc2")) == ()


def test_the_class_before_stays_until_the_release_is_ready_at_its_generation():
    release = released("dc2", names.EXPLICIT, previous="dc1")
    assert previous("dc2", release) == ("dc1",)
    assert previous("dc2", with_ready(release, generation=2)) == ("dc1",)
    assert previous("dc2", with_ready(release, "False")) == ("dc1",)
    assert previous("dc2", with_ready(release)) == ()


def test_changing_back_during_a_rollout_keeps_the_intermediate_class():
    assert previous("dc1", released("dc2", names.EXPLICIT, previous="dc1")) == ("dc2",)


def test_a_third_class_midway_keeps_all_that_may_be_running():
    release = released("dc2", names.EXPLICIT, previous="dc1")
    assert previous("dc3", with_ready(release, "Unknown", lastAttemptedGeneration=2)) == ("dc1",)
    assert previous("dc3", with_ready(release, "False", lastAttemptedGeneration=3)) == ("dc2", "dc1")
    assert previous("dc3", with_ready(release, lastAttemptedGeneration=3)) == ("dc2",)


def test_a_third_class_among_the_previous_ones_is_no_longer_previous():
    release = released("dc2", names.EXPLICIT, previous="dc3_dc1")
    assert previous("dc1", with_ready(release, "False", lastAttemptedGeneration=3)) == ("dc2", "dc3")


def test_pods_may_run_anywhere_after_a_rollout_without_a_class():
    release = released("dc2", names.EXPLICIT, previous="")
    assert previous("dc3", with_ready(release, "False", lastAttemptedGeneration=3)) == ("",)


def test_the_label_has_as_many_as_there_is_room_for_the_latest_first():
    long = [f"{letter * 30}" for letter in "abc"]
    assert previous_label(long) == f"{long[0]}_{long[1]}"
    assert previous_classes({names.PREVIOUS_CLASS: previous_label(long)}) == tuple(long[:2])
    assert previous_label(["x" * 63, "y"]) == "x" * 63
    assert previous_label(["dc1", ""]) == ""
