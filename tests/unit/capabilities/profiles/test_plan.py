"""Plan of one node: created objects, changes, and faults that keep the deployed state."""

from dataclasses import replace
from datetime import timedelta

import pytest

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.plan import plan
from nodeyard.capabilities.profiles.planning.rollout import limit
from nodeyard.capabilities.profiles.snapshot import Budget, Profile, Service
from nodeyard.plan.model import Disruption

from ....builders.profiles import (
    DEDICATED,
    DPDK,
    NODE,
    NOVA,
    NOW,
    SEED_NODE_ANNOTATIONS,
    SEED_ROLE_ANNOTATIONS,
    SHARED,
    compute_body,
    node,
    profile,
    role,
    snapshot,
)

COMPUTE = [profile("dell-r740-shared-cpus", SHARED), profile("dell-r740-dedicated-cpus", DEDICATED)]
NETWORK = [profile("dpdk", DPDK)]
TELEMETRY = [profile("collector", "[a]\nb = c\n")]
CUSTOM = "[DEFAULT]\ndebug = true\n"


def world(own=None, inherited=SEED_ROLE_ANNOTATIONS, **given):
    return snapshot(
        node(annotations=own or {}),
        role(annotations=inherited),
        nova=COMPUTE,
        neutron=NETWORK,
        telemetry=TELEMETRY,
        **given,
    )


def done(each, now=NOW):
    return [(action.reason, action.object.kind) for action in plan(each, now).plan.actions]


def blocked(each, now=NOW):
    return {every.reason: every.facts for every in plan(each, now).plan.blocked}


def bodies(each, now=NOW):
    """Return the applied bodies by kind."""
    planned = plan(each, now)
    return {action.object.kind: planned.writes[action.id].body for action in planned.plan.actions}


def applied(each, now=NOW, *, reported=True):
    """Return the snapshot after the plan was applied and the service operators reported."""
    objects, configurations = dict(each.objects), dict(each.configurations)
    for body in (write.body for write in plan(each, now).writes.values()):
        stored = _stored(body)
        service = body["metadata"]["labels"][names.SERVICE_LABEL]
        if body["kind"] in ("ConfigMap", "Secret"):
            configurations[service] = (stored,)
        else:
            hash = body["metadata"]["annotations"][names.HASH]
            told = {"hash": {names.REPORTED_HASH: hash}, "conditions": [{"type": "Ready", "status": "True"}]}
            objects[service] = {**stored, "status": told if reported else {}}
    return replace(each, objects=objects, configurations=configurations)


def customised(each):
    """Return the snapshot after its user added configuration to the compute."""
    compute = each.objects["nova"]
    return replace(each, objects={"nova": {**compute, "spec": {**compute["spec"], "customServiceConfig": CUSTOM}}})


def _stored(body):
    fields = {f"f:{key}": _fields(value) for key, value in body.items() if key not in ("apiVersion", "kind")}
    entry = {"manager": names.MANAGER, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {**body, "metadata": {**body["metadata"], "uid": "u", "resourceVersion": "1", "managedFields": [entry]}}


def _fields(value):
    return {f"f:{key}": _fields(each) for key, each in value.items()} if isinstance(value, dict) else {}


# the design's story


def test_a_node_has_what_its_role_chose():
    body = bodies(world())["NovaExternalCompute"]
    assert body["metadata"]["name"] == NODE
    assert body["spec"]["dataplaneNodeName"] == NODE
    assert body["spec"]["computeProfileName"] == "dell-r740-shared-cpus"
    assert body["spec"]["cellName"] == "nova-cell1"
    assert "OVNMetadataAgent" not in bodies(world())


def test_a_node_that_chooses_for_itself_keeps_the_rest_from_its_role():
    found = bodies(world(SEED_NODE_ANNOTATIONS))
    assert found["NovaExternalCompute"]["spec"]["computeProfileName"] == "dell-r740-dedicated-cpus"
    assert found["OVNMetadataAgent"]["spec"]["networkProfileName"] == "dpdk"


def test_without_a_cell_no_compute_is_made():
    assert done(world(inherited={names.COMPUTE_PROFILE: "dell-r740-shared-cpus"})) == []


def test_with_a_cell_and_no_profile_a_compute_is_made_without_one():
    body = bodies(world(inherited={names.CELL: "nova-cell1"}))["NovaExternalCompute"]
    assert "computeProfileName" not in body["spec"]


def test_an_empty_choice_opts_out_of_the_roles_profile_and_keeps_the_compute():
    body = bodies(world({names.COMPUTE_PROFILE: ""}))["NovaExternalCompute"]
    assert "computeProfileName" not in body["spec"]


# steady state


def test_a_node_that_is_as_it_should_be_needs_nothing():
    assert done(applied(world())) == []
    assert blocked(applied(world())) == {}


def test_the_configuration_is_written_before_the_object_that_names_it():
    first, second = plan(world(), NOW).plan.actions
    assert (first.object.kind, second.object.kind) == ("ConfigMap", "NovaExternalCompute")
    assert first.id in second.after


def test_a_hand_edit_of_the_profile_name_is_reverted():
    after = applied(world())
    compute = after.objects["nova"]
    edited = {**compute, "spec": {**compute["spec"], "computeProfileName": "other"}}
    assert done(replace(after, objects={"nova": edited})) == [("ServiceObjectUpdated", "NovaExternalCompute")]


def test_user_fields_of_the_object_are_rendered_last_and_never_written():
    found = bodies(customised(applied(world())))
    assert found["ConfigMap"]["data"]["03-nova-custom.conf"] == CUSTOM
    assert "customServiceConfig" not in found["NovaExternalCompute"]["spec"]


def test_the_compute_is_deleted_when_the_cell_is_removed():
    after = applied(world())
    gone = replace(after, role=role(annotations={names.COMPUTE_PROFILE: "dell-r740-shared-cpus"}))
    assert done(gone) == [("ServiceObjectDeleted", "NovaExternalCompute"), ("ConfigurationDeleted", "ConfigMap")]
    compute, configuration = plan(gone, NOW).plan.actions
    assert (compute.disruption, compute.disrupts) == (Disruption.DELETES, (NODE,))
    assert configuration.disruption is Disruption.NONE


def test_a_compute_that_its_operator_still_tidies_up_after_is_not_deleted_again():
    after = applied(world())
    compute = after.objects["nova"]
    going = {**compute, "metadata": {**compute["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    gone = replace(after, role=role(), objects={"nova": going}, configurations={})
    assert done(gone) == []


def test_a_profile_that_nothing_requests_is_cleared_and_the_compute_stays():
    after = replace(applied(world()), role=role(annotations={names.CELL: "nova-cell1"}))
    assert "computeProfileName" not in bodies(after)["NovaExternalCompute"]["spec"]


# faults that keep the deployed state


def test_a_cell_cannot_change_once_there_is_a_compute():
    after = applied(world())
    moved = replace(after, role=role(annotations={**SEED_ROLE_ANNOTATIONS, names.CELL: "nova-cell2"}))
    assert done(moved) == []
    facts = blocked(moved)["CellImmutable"]
    assert (facts.from_, facts.to) == ("nova-cell1", "nova-cell2")


def test_no_compute_is_made_in_a_cell_that_cannot_be():
    wrong = replace(world(), role=role(annotations={**SEED_ROLE_ANNOTATIONS, names.CELL: "Nova cell1"}))
    assert "NovaExternalCompute" not in bodies(wrong)
    facts = blocked(wrong)["CellInvalid"]
    assert (facts.cell, facts.source) == ("Nova cell1", "Role")


def test_a_missing_profile_keeps_the_deployed_one():
    after = replace(applied(world()), profiles={"nova": {}, "neutron": {}, "telemetry": {}})
    assert done(after) == []
    assert "ProfileNotFound" in blocked(after)


def test_no_object_is_created_for_a_missing_profile():
    assert done(world({names.NETWORK_PROFILE: "nowhere"}, {})) == []


def test_a_missing_role_is_reported_and_the_nodes_own_choices_count():
    alone = replace(world(SEED_NODE_ANNOTATIONS), role=None)
    assert "RoleNotFound" in blocked(alone)
    assert ("ServiceObjectCreated", "OVNMetadataAgent") in done(alone)


def test_a_deleted_role_keeps_what_is_deployed():
    own = {names.COMPUTE_PROFILE: "dell-r740-dedicated-cpus"}
    after = replace(applied(world(own)), role=None)
    assert done(after) == []
    assert "RoleNotFound" in blocked(after)


def test_a_nodes_own_choice_is_applied_while_its_role_is_missing():
    own = {names.NETWORK_PROFILE: "dpdk"}
    after = replace(applied(world(own)), role=None)
    other = replace(after, node=node(annotations={names.NETWORK_PROFILE: "sriov"}))
    profiles = {**other.profiles, "neutron": {"dpdk": NETWORK[0], "sriov": profile("sriov", "[ovs]\na = b\n")}}
    assert done(replace(other, profiles=profiles)) == [
        ("ConfigurationWritten", "ConfigMap"),
        ("ServiceReconfigured", "OVNMetadataAgent"),
    ]


def test_a_profile_change_waits_while_the_role_is_missing():
    after = replace(applied(world({names.NETWORK_PROFILE: "dpdk"})), role=None)
    assert done(replace(after, profiles={**after.profiles, "neutron": {"dpdk": profile("dpdk", "[a]\nb = c\n")}})) == []


def test_a_configuration_that_does_not_parse_is_not_deployed():
    broken = {"dell-r740-shared-cpus": Profile("dell-r740-shared-cpus", config="no section = here\n")}
    after = replace(applied(world()), profiles={"nova": broken, "neutron": {}, "telemetry": {}})
    assert done(after) == []
    assert "ConfigurationInvalid" in blocked(after)


def test_an_object_of_another_node_is_not_touched():
    theirs = {
        "apiVersion": names.NOVA_API_VERSION,
        "kind": "NovaExternalCompute",
        "metadata": {"name": NODE, "namespace": "openstack"},
        "spec": {"dataplaneNodeName": "other"},
    }
    assert done(replace(world(), objects={"nova": theirs})) == []
    assert "OwnedByAnotherNode" in blocked(replace(world(), objects={"nova": theirs}))


# rollouts


def changed(each, text=DEDICATED, generation=2):
    """Return the snapshot after a change of the role's profile."""
    profiles = {"dell-r740-shared-cpus": Profile("dell-r740-shared-cpus", "u", generation, text)}
    return replace(each, profiles={"nova": profiles, "neutron": {}, "telemetry": {"collector": TELEMETRY[0]}})


def test_a_changed_profile_reconfigures_its_nodes():
    after = changed(applied(world()))
    assert done(after) == [("ConfigurationWritten", "ConfigMap"), ("ServiceReconfigured", "NovaExternalCompute")]
    action = plan(after, NOW).plan.actions[1]
    assert (action.disruption, action.disrupts) == (Disruption.REPLACES, (NODE,))
    assert bodies(after)["NovaExternalCompute"]["metadata"]["annotations"][names.GENERATION] == "2"


def test_another_generation_of_the_same_content_is_written_and_reconfigures_nothing():
    after = changed(applied(world()), SHARED, generation=9)
    assert done(after) == [("ServiceObjectUpdated", "NovaExternalCompute")]
    assert plan(after, NOW).plan.actions[0].disruption is Disruption.NONE
    before = applied(world()).objects["nova"]["metadata"]["annotations"]
    told = bodies(after)["NovaExternalCompute"]["metadata"]["annotations"]
    assert told == {**before, names.GENERATION: "9"}


def test_a_node_without_room_in_the_budget_waits():
    waiting = replace(changed(applied(world())), budgets={"nova": Budget(name="b", total=8, limit=2, unavailable=2)})
    assert done(waiting) == []
    assert blocked(waiting)["MaxUnavailable"].limit == 2
    planned = plan(waiting, NOW)
    assert (planned.reserves, planned.waits_for) == ({}, ("b",))


def test_a_node_that_takes_from_the_budget_reserves_it_with_the_hash_that_it_writes():
    allowed = replace(changed(applied(world())), budgets={"nova": Budget(name="b", total=8, limit=3, unavailable=2)})
    planned = plan(allowed, NOW)
    hash = bodies(allowed)["NovaExternalCompute"]["metadata"]["annotations"][names.HASH]
    assert (planned.reserves, planned.waits_for) == ({"b": hash}, ())


@pytest.mark.parametrize("is_ready", [True, False])
def test_a_compute_from_before_us_waits_its_turn_too_where_it_works(is_ready):
    status = {"conditions": [{"type": "Ready", "status": str(is_ready)}]}
    before = {**compute_body(spec={"cellName": "nova-cell1"}), "status": status}
    found = replace(world(), objects={"nova": before}, budgets={"nova": Budget(total=8, unavailable=1)})
    assert ("MaxUnavailable" in blocked(found)) is is_ready
    assert (done(found) == []) is is_ready


def test_a_rollout_past_its_deadline_stops_for_the_others():
    budget = Budget(total=8, stalled="edpm-compute-7")
    stopped = replace(changed(applied(world())), budgets={"nova": budget})
    assert done(stopped) == []
    assert blocked(stopped)["ProgressDeadlineExceeded"].object == "edpm-compute-7"


def test_an_object_that_does_not_run_gets_another_configuration_at_once():
    failing = applied(world(), reported=False)
    budget = Budget(total=8, unavailable=8, stalled="edpm-compute-7")
    assert ("ServiceReconfigured", "NovaExternalCompute") in done(replace(changed(failing), budgets={"nova": budget}))


def test_an_object_that_does_not_report_in_time_is_reported():
    failing = applied(world(), reported=False)
    assert plan(failing, NOW).plan.wake_at == NOW + timedelta(seconds=600)
    late = NOW + timedelta(seconds=601)
    assert "ProgressDeadlineExceeded" in blocked(failing, late)


def test_a_node_that_does_not_follow_keeps_the_profile_as_it_has_it():
    pinned = replace(changed(applied(world())), node=node(profileUpdatePolicy="Manual"))
    assert done(pinned) == []
    assert "PinnedByPolicy" in blocked(pinned)


def test_a_hand_edit_of_a_pinned_configuration_is_reverted_to_the_pin():
    pinned = replace(applied(world()), node=node(profileUpdatePolicy="Manual"))
    edited = configured(pinned, {"02-nova-profile.conf": "[DEFAULT]\nmine = 1\n"})
    assert done(edited) == [("ConfigurationWritten", "ConfigMap")]
    assert bodies(edited)["ConfigMap"]["data"] == {"02-nova-profile.conf": SHARED}


def test_a_hand_edit_next_to_a_pinned_configuration_is_reverted_and_the_pin_stays():
    pinned = replace(
        changed(customised(applied(customised(applied(world()))))), node=node(profileUpdatePolicy="Manual")
    )
    edited = configured(pinned, {"02-nova-profile.conf": SHARED, "03-nova-custom.conf": "[DEFAULT]\nmine = 1\n"})
    assert bodies(edited)["ConfigMap"]["data"] == {"02-nova-profile.conf": SHARED, "03-nova-custom.conf": CUSTOM}
    assert "PinnedByPolicy" in blocked(edited)


def test_user_fields_are_rendered_with_a_pinned_configuration():
    pinned = replace(changed(applied(world())), node=node(profileUpdatePolicy="Manual"))
    found = bodies(customised(pinned))["ConfigMap"]["data"]
    assert found == {"02-nova-profile.conf": SHARED, "03-nova-custom.conf": CUSTOM}


def configured(each, data):
    """Return the snapshot after a manual edit of the configuration."""
    (present,) = each.configurations["nova"]
    return replace(each, configurations={"nova": ({**present, "data": data},)})


def test_a_node_that_does_not_follow_goes_over_to_another_profile():
    own = node(annotations={names.COMPUTE_PROFILE: "dell-r740-dedicated-cpus"}, profileUpdatePolicy="Manual")
    switched = replace(applied(world()), node=own)
    assert ("ServiceReconfigured", "NovaExternalCompute") in done(switched)


def test_a_secret_takes_the_place_of_a_config_map():
    after = applied(world())
    secret = replace(COMPUTE[0], render_as="Secret")
    moved = replace(after, profiles={"nova": {secret.name: secret}, "neutron": {}, "telemetry": {}})
    written, deleted = plan(moved, NOW).plan.actions[:2]
    assert (written.reason, written.object.kind) == ("ConfigurationWritten", "Secret")
    assert (deleted.reason, deleted.object.kind) == ("ConfigurationDeleted", "ConfigMap")
    assert deleted.after == (written.id,)


def test_a_config_map_left_over_next_to_the_secret_is_deleted():
    secret = replace(COMPUTE[0], render_as="Secret")
    before = applied(world())
    after = applied(replace(world(), profiles={**world().profiles, "nova": {secret.name: secret}}))
    both = replace(after, configurations={"nova": (*before.configurations["nova"], *after.configurations["nova"])})
    assert done(both) == [("ConfigurationDeleted", "ConfigMap")]


def test_a_configuration_of_another_node_is_neither_written_nor_deleted():
    (present,) = applied(world()).configurations["nova"]
    owner = {**present["metadata"]["ownerReferences"][0], "name": "edpm", "uid": "other"}
    theirs = {**present, "metadata": {**present["metadata"], "ownerReferences": [owner]}}
    taken = replace(world(), configurations={"nova": (theirs,)})
    assert done(taken) == []
    assert "OwnedByAnotherNode" in blocked(taken)
    assert done(replace(taken, role=role())) == []


@pytest.mark.parametrize("text", ["²", "²%", "9" * 5000, "-1", "x%", ""])
def test_a_budget_that_is_no_number_is_as_good_as_none(text):
    assert limit(Service("s", "k", "a/v1", "K"), Profile("p", max_unavailable=text), 8) == 2


@pytest.mark.parametrize("text", ["²", "9" * 5000])
def test_a_malformed_generation_is_ignored(text):
    pinned = replace(changed(applied(world())), node=node(profileUpdatePolicy="Manual"))
    compute = pinned.objects["nova"]
    malformed = {**compute["metadata"], "annotations": {**compute["metadata"]["annotations"], names.GENERATION: text}}
    assert "PinnedByPolicy" in blocked(replace(pinned, objects={"nova": {**compute, "metadata": malformed}}))


def test_the_budget_is_a_number_or_a_share_and_at_least_one():
    service = Service("s", "k", "a/v1", "K")
    assert limit(service, None, 8) == 2
    assert limit(service, Profile("p", max_unavailable="50%"), 8) == 4
    assert limit(service, Profile("p", max_unavailable=3), 8) == 3
    assert limit(service, Profile("p", max_unavailable="1%"), 8) == 1
    assert limit(replace(service, max_unavailable="100%"), Profile("p"), 8) == 8
    assert limit(NOVA, Profile("p", max_unavailable="nonsense"), 8) == 2
