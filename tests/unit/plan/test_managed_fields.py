"""Fields that a manager owns, and fields that a smaller apply would remove."""

from nodeyard.plan.managed_fields import fields_of, owners, owns, preview_apply, transfer_fields


def entry(manager, fields, operation="Apply", **more):
    return {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def obj(*entries, **content):
    return {"metadata": {"name": "x", "managedFields": list(entries)}, **content}


def test_an_apply_of_existing_fields_changes_nothing():
    live = obj(entry("us", {"f:spec": {"f:a": {}}}), spec={"a": 1, "b": 2})
    assert preview_apply(live, {"spec": {"a": 1}}, "us") is live


def test_a_field_that_we_own_and_drop_is_removed():
    live = obj(entry("us", {"f:spec": {"f:a": {}, "f:b": {}}}), spec={"a": 1, "b": 2, "c": 3})
    assert preview_apply(live, {"spec": {"a": 1}}, "us")["spec"] == {"a": 1, "c": 3}


def test_a_field_that_another_owns_too_stays():
    live = obj(
        entry("us", {"f:spec": {"f:a": {}, "f:b": {}}}),
        entry("them", {"f:spec": {"f:b": {}}}, operation="Update"),
        spec={"a": 1, "b": 2},
    )
    assert preview_apply(live, {"spec": {"a": 1}}, "us") is live


def test_a_field_that_is_kept_is_not_worth_an_apply():
    live = obj(entry("us", {"f:spec": {"f:a": {}, "f:replicas": {}}}), spec={"a": 1, "replicas": 0})
    assert preview_apply(live, {"spec": {"a": 1}}, "us", [("spec", "replicas")]) is live


def test_a_dropped_label_is_removed_and_foreign_ones_stay():
    live = obj(entry("us", {"f:metadata": {"f:labels": {".": {}, "f:a": {}, "f:b": {}}}}))
    live["metadata"]["labels"] = {"a": "1", "b": "2", "theirs": "3"}
    after = preview_apply(live, {"metadata": {"labels": {"a": "1"}}}, "us")
    assert after["metadata"]["labels"] == {"a": "1", "theirs": "3"}


def test_an_emptied_map_is_removed():
    live = obj(entry("us", {"f:spec": {"f:deletion": {".": {}, "f:seconds": {}}, "f:a": {}}}), spec={"a": 1})
    live["spec"]["deletion"] = {"seconds": 3}
    assert preview_apply(live, {"spec": {"a": 1}}, "us")["spec"] == {"a": 1}


def test_named_items_and_set_members_go_one_by_one():
    fields = {"f:spec": {"f:taints": {'k:{"effect":"NoSchedule","key":"a"}': {}}, "f:sets": {'v:"x"': {}}}}
    live = obj(
        entry("us", fields), spec={"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b"}], "sets": ["x", "y"]}
    )
    assert preview_apply(live, {"spec": {}}, "us")["spec"] == {"taints": [{"key": "b"}], "sets": ["y"]}


def test_an_applied_field_of_an_item_keeps_the_item():
    fields = {"f:spec": {"f:args": {'k:{"name":"v"}': {"f:name": {}, "f:value": {}}}}}
    live = obj(entry("us", fields), spec={"args": [{"name": "v", "value": "1"}]})
    assert preview_apply(live, {"spec": {"args": [{"name": "v", "value": "1"}]}}, "us") is live


def test_an_object_never_applied_by_us_loses_nothing():
    live = obj(entry("us", {"f:spec": {"f:a": {}}}, operation="Update"), spec={"a": 1})
    assert preview_apply(live, {"spec": {}}, "us") is live


def test_a_subresource_entry_is_not_the_objects_own():
    live = obj(entry("us", {"f:spec": {"f:replicas": {}}}, subresource="scale"), spec={"replicas": 1})
    assert fields_of(live, "us") == {}
    assert owners(live, "spec", "replicas") == {"us"}


def test_ownership_of_a_field_is_found_by_path():
    live = obj(entry("us", {"f:spec": {"f:replicas": {}}}), entry("them", {"f:spec": {}}))
    assert owns(live, "us", "spec", "replicas")
    assert not owns(live, "them", "spec", "replicas")
    assert not owns(live, "nobody", "spec")


def test_an_item_of_which_we_say_less_than_we_own_is_kept():
    fields = {"f:spec": {"f:args": {'k:{"name":"v"}': {"f:name": {}, "f:value": {}}}, "f:a": {}}}
    live = obj(entry("us", fields), spec={"a": 1, "args": [{"name": "v", "value": "1"}]})
    assert preview_apply(live, {"spec": {"a": 1, "args": [{"name": "v"}]}}, "us") is live


def test_a_dropped_field_below_an_atomic_one_is_removed():
    live = obj(entry("us", {"f:spec": {"f:a": {"f:b": {}, "f:c": {}}}}), spec={"a": {"b": 1, "c": 2}})
    assert preview_apply(live, {"spec": {"a": {"b": 1}}}, "us")["spec"] == {"a": {"b": 1}}


# transfer of ownership


def moved(fields, *entries, **content):
    return obj(entry("mover", fields, operation="Update"), *entries, **content)


def test_fields_moved_by_clusterctl_become_ours_when_applied():
    live = moved({"f:spec": {"f:a": {}, "f:theirs": {}}}, spec={"a": 1, "theirs": 2})

    fields = transfer_fields(live, {"spec": {"a": 1}}, "us", "mover")

    assert fields == [
        entry("us", {"f:spec": {"f:a": {}}}),
        entry("mover", {"f:spec": {"f:theirs": {}}}, operation="Update"),
    ]


def test_fields_owned_by_us_are_merged_and_others_untouched():
    ours, other = entry("us", {"f:spec": {"f:a": {}}}), entry("them", {"f:spec": {"f:b": {}}})
    live = moved({"f:spec": {"f:b": {}}}, ours, other, spec={"a": 1, "b": 2})

    fields = transfer_fields(live, {"spec": {"a": 1, "b": 2}}, "us", "mover")

    assert fields == [entry("us", {"f:spec": {"f:a": {}, "f:b": {}}}), other]


def test_a_map_has_no_other_owner_when_all_in_it_is_ours_and_an_item_is_removed_with_its_fields():
    item = {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:value": {}}}
    live = moved({"f:spec": {".": {}, "f:args": item}}, spec={"args": [{"name": "x", "value": "1"}]})

    assert transfer_fields(live, {"spec": {"args": [{"name": "x", "value": "1"}]}}, "us", "mover") == [
        entry("us", {"f:spec": {"f:args": item}})
    ]


def test_fields_of_other_managers_or_versions_are_not_taken_over_twice():
    ours = entry("us", {"f:spec": {"f:a": {}}}, apiVersion="x/v1")
    body = {"spec": {"a": 1}}
    assert transfer_fields(obj(ours, spec={"a": 1}), body, "us", "mover") is None
    assert transfer_fields(moved({"f:spec": {"f:theirs": {}}}, spec={"a": 1}), body, "us", "mover") is None
    assert transfer_fields(moved({"f:spec": {"f:a": {}}}, ours, spec={"a": 1}), body, "us", "mover") is None
    later = {"apiVersion": "x/v2", **body}
    assert transfer_fields(moved({"f:spec": {"f:a": {}}}, spec={"a": 1}), later, "us", "mover") is None
