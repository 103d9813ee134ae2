"""Custom resources: their definition, validation, defaults, pruning, versions and subresources."""

from __future__ import annotations

import json

import pytest

from nodeyard.testing.session import APPLY, JSON_PATCH, STRATEGIC, TABLE
from nodeyard.testing.webhooks import patch, webhook

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "replicas": {"type": "integer", "default": 1},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "default": 10}},
            },
        },
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "frozen": {
            "type": "string",
            "maxLength": 20,
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "frozen cannot change"}],
        },
        "knot": {"type": "string", "pattern": "^(a+)+$"},
        "low": {"type": "integer"},
        "high": {"type": "integer"},
    },
    "x-kubernetes-validations": [
        {
            "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
            "messageExpression": "'low is above high' + (self.high == 4 ? ', which is four' : '')",
            "reason": "FieldValueForbidden",
            "fieldPath": ".low",
        }
    ],
}
STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}}}


def definition(group: str, **version) -> dict:
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]},
            "versions": [{**first, **version}, {**first, "name": "v1beta1", "storage": False}],
        },
    }


def established(http, eventually, group: str) -> None:
    def check() -> bool:
        found = http.get(f"{DEFINITIONS}/widgets.{group}").json.get("status", {}).get("conditions") or ()
        return any(c["type"] == "Established" and c["status"] == "True" for c in found) and (
            http.get(f"/apis/{group}/v1/widgets").status == 200
        )

    eventually(check, f"widgets.{group} is established")


@pytest.fixture(scope="session")
def group(api, eventually) -> str:
    from nodeyard.testing.session import Session

    http = Session(api.url, api.authority.pem, api.admin_token)
    name = "conformance.example"
    assert http.post(DEFINITIONS, definition(name)).status == 201
    established(http, eventually, name)
    return name


@pytest.fixture
def widgets(group, namespace) -> str:
    return f"/apis/{group}/v1/namespaces/{namespace}/widgets"


def widget(name: str, **spec) -> dict:
    body = {"size": 3, **spec}
    return {"apiVersion": "conformance.example/v1", "kind": "Widget", "metadata": {"name": name}, "spec": body}


def test_defaults_are_set_and_unknown_fields_pruned(http, widgets):
    answer = http.post(widgets, widget("a", extra=1, parts=[{"name": "x", "odd": True}], free={"any": {"thing": 1}}))

    assert answer.status == 201
    assert answer.json["spec"] == {
        "size": 3,
        "color": "red",
        "replicas": 1,
        "parts": [{"name": "x", "weight": 10}],
        "free": {"any": {"thing": 1}},
    }
    assert answer.json["metadata"]["generation"] == 1
    assert sorted(answer.warnings) == [
        '299 - "unknown field \\"spec.extra\\""',
        '299 - "unknown field \\"spec.parts[0].odd\\""',
    ]


def test_unknown_fields_are_refused_when_strict(http, widgets):
    answer = http.post(widgets, widget("a", extra=1), query={"fieldValidation": "Strict"})

    assert answer.status == 400
    assert answer.message.endswith('strict decoding error: unknown field "spec.extra"')


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"size": None}, ("FieldValueRequired", "spec.size", "Required value")),
        ({"size": "3"}, ("FieldValueTypeInvalid", "spec.size", 'must be of type integer: "string"')),
        ({"size": 0}, ("FieldValueInvalid", "spec.size", "should be greater than or equal to 1")),
        ({"size": 10}, ("FieldValueInvalid", "spec.size", "should be less than or equal to 9")),
        ({"color": "green"}, ("FieldValueNotSupported", "spec.color", 'supported values: "red", "blue"')),
        ({"tags": ["a", "a"]}, ("FieldValueDuplicate", "spec.tags[1]", "Duplicate value")),
        ({"parts": [{"name": "x"}, {"name": "x"}]}, ("FieldValueDuplicate", "spec.parts[1]", "Duplicate value")),
        ({"port": True}, ("FieldValueTypeInvalid", "spec.port", "must be of type")),
        ({"low": 5, "high": 4}, ("FieldValueForbidden", "spec.low", "low is above high, which is four")),
    ],
    ids=["missing", "type", "small", "large", "enum", "set", "map", "int or string", "rule"],
)
def test_a_violation_is_named_with_its_field(http, widgets, spec, cause):
    body = widget("bad", **spec)
    body["spec"] = {name: value for name, value in body["spec"].items() if value is not None}

    answer = http.post(widgets, body)

    assert (answer.status, answer.reason) == (422, "Invalid")
    reason, field, words = cause
    found = [c for c in answer.causes if c["field"] == field]
    assert found, answer.causes
    assert found[0]["reason"] == reason
    assert words in found[0]["message"]


def test_a_pattern_cannot_keep_the_server_busy(http, widgets):
    refused = http.post(widgets, widget("a", knot="a" * 50 + "!"))
    taken = http.post(widgets, widget("a", knot="a" * 50))

    assert (refused.status, refused.causes[0]["field"]) == (422, "spec.knot")
    assert "should match '^(a+)+$'" in refused.message
    assert taken.status == 201


def test_a_printer_column_cannot_keep_the_server_busy(http, fresh):
    name, group = fresh("knot"), f"{fresh('knots')}.example.com"
    body = definition(group)
    body["metadata"]["name"] = f"{name}s.{group}"
    body["spec"]["names"] = {"plural": f"{name}s", "kind": name.capitalize()}
    for version in body["spec"]["versions"]:
        path = ".spec[?(@.a" + r"\a" * 1000 + " "
        version["additionalPrinterColumns"] = [{"name": "Knot", "type": "string", "jsonPath": path}]

    answer = http.post(DEFINITIONS, body)

    # kube-apiserver stores a path that it cannot read.
    assert answer.status in (201, 422)
    assert http.delete(f"{DEFINITIONS}/{name}s.{group}").status in (200, 404)


def test_a_transition_rule_compares_with_the_old_object(http, widgets):
    http.post(widgets, widget("a", frozen="x"))

    answer = http.patch(f"{widgets}/a", {"spec": {"frozen": "y"}})

    assert answer.status == 422
    assert answer.causes[0]["message"].endswith("frozen cannot change")
    assert http.patch(f"{widgets}/a", {"spec": {"size": 4}}).status == 200


def test_generation_counts_changes_of_spec_alone(http, widgets):
    http.post(widgets, widget("a"))
    labelled = http.patch(f"{widgets}/a", {"metadata": {"labels": {"x": "y"}}})
    changed = http.patch(f"{widgets}/a", {"spec": {"size": 5}})
    reported = http.patch(f"{widgets}/a/status", {"status": {"phase": "Up"}})

    assert [a.json["metadata"]["generation"] for a in (labelled, changed, reported)] == [1, 2, 2]


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), (True, 1), (False, 0)])
def test_a_number_and_a_boolean_are_two_values(http, widgets, before, after):
    http.post(widgets, widget("a", free={"on": [{"x": before}]}))
    patched = http.patch(f"{widgets}/a", {"spec": {"free": {"on": [{"x": after}]}}}).json
    replaced = http.put(f"{widgets}/a", {**patched, "spec": {**patched["spec"], "free": {"on": [{"x": before}]}}}).json
    operation = {"op": "replace", "path": "/spec/free/on/0/x", "value": after}
    operated = http.patch(f"{widgets}/a", [operation], JSON_PATCH).json
    status = http.patch(f"{widgets}/a/status", {"status": {"phase": "Up"}}).json

    seen = [obj["spec"]["free"]["on"][0]["x"] for obj in (patched, replaced, operated, status)]
    assert [json.dumps(value) for value in seen] == [json.dumps(value) for value in (after, before, after, after)]
    assert [obj["metadata"]["generation"] for obj in (patched, replaced, operated, status)] == [2, 3, 4, 4]


def test_a_mutating_webhook_may_turn_a_number_into_a_boolean(http, hooks, gadgets, namespace, fresh, eventually):
    name = fresh("hooks")
    rule = {"apiGroups": [gadgets], "apiVersions": ["v1"], "resources": ["gadgets"], "operations": ["CREATE"]}
    entry = webhook(hooks, namespace, path="/mutate", rules=[rule])
    hooks.answer("/mutate", patch({"op": "replace", "path": "/on", "value": True}))
    http.post(f"{ADMISSION}/mutatingwebhookconfigurations", {"metadata": {"name": name}, "webhooks": [entry]})
    path = f"/apis/{gadgets}/v1/namespaces/{namespace}/gadgets"
    body = {"apiVersion": f"{gadgets}/v1", "kind": "Gadget", "on": 1}

    def told() -> bool:
        http.post(path, {**body, "metadata": {"generateName": "a-"}})
        return bool(hooks.requests)

    eventually(told, "the webhook is called")
    made = http.post(path, {**body, "metadata": {"name": "b"}})
    http.delete(f"{ADMISSION}/mutatingwebhookconfigurations/{name}")

    assert json.dumps(made.json["on"]) == "true"


def test_a_whole_number_is_shown_without_a_fraction(http, widgets):
    created = http.post(widgets, {**widget("a", free={"x": 0}), "spec": {"size": 3.0, "free": {"x": [2.0, 1e3, 0.5]}}})
    patched = http.patch(f"{widgets}/a", {"spec": {"free": {"y": 4.0}}})
    dry = http.patch(f"{widgets}/a", {"spec": {"size": 5.0}}, query={"dryRun": "All"})

    stored = http.get(f"{widgets}/a").json
    shown = [created.json["spec"]["size"], stored["spec"]["free"], dry.json["spec"]["size"]]
    assert json.dumps(shown, sort_keys=True) == '[3, {"x": [2, 1000, 0.5], "y": 4}, 5]'
    assert patched.json["metadata"]["generation"] == 2


def test_status_is_written_through_its_own_path_alone(http, widgets):
    created = http.post(widgets, {**widget("a"), "status": {"phase": "Early"}})
    through_main = http.patch(f"{widgets}/a", {"status": {"phase": "Main"}})
    through_status = http.patch(
        f"{widgets}/a/status", {"status": {"phase": "Up"}, "spec": {"size": 9}, "metadata": {"labels": {"x": "y"}}}
    )

    assert "status" not in created.json
    assert "status" not in through_main.json
    assert through_status.json["status"] == {"phase": "Up"}
    assert through_status.json["spec"]["size"] == 3
    assert "labels" not in through_status.json["metadata"]


def test_scale_reads_and_writes_the_replicas(http, widgets):
    http.post(widgets, widget("a"))
    http.patch(f"{widgets}/a/status", {"status": {"replicas": 1}})

    before = http.get(f"{widgets}/a/scale").json
    after = http.patch(f"{widgets}/a/scale", {"spec": {"replicas": 4}}).json

    assert (before["kind"], before["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (before["spec"], before["status"]["replicas"]) == ({"replicas": 1}, 1)
    assert after["spec"] == {"replicas": 4}
    assert http.get(f"{widgets}/a").json["spec"]["replicas"] == 4


def test_scale_refuses_negative_replicas(http, widgets):
    http.post(widgets, widget("a"))

    answer = http.patch(f"{widgets}/a/scale", {"spec": {"replicas": -1}})

    assert (answer.status, answer.reason) == (422, "Invalid")


@pytest.mark.parametrize(
    "change", [{"spec": "x"}, {"spec": {"replicas": "x"}}, {"metadata": "x"}, {"kind": 5}], ids=str
)
def test_scale_is_of_its_own_type(http, widgets, change):
    http.post(widgets, widget("a"))

    put = http.put(f"{widgets}/a/scale", {"metadata": {"name": "a"}, **change})
    patch = http.patch(f"{widgets}/a/scale", change)

    assert (put.status, patch.status) == (400, 422)


@pytest.mark.parametrize("replicas", [-1, 2**31])
def test_replicas_that_nobody_can_scale_to_are_invalid(http, widgets, replicas):
    answer = http.post(widgets, widget("a", replicas=replicas))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert ".spec.replicas" in [cause["field"] for cause in answer.causes]


def test_an_update_without_revision_is_refused(http, widgets):
    http.post(widgets, widget("a"))

    answer = http.put(f"{widgets}/a", widget("a", size=4))

    assert answer.status == 422
    assert answer.causes[0]["field"] == "metadata.resourceVersion"


def test_a_strategic_patch_is_unsupported(http, widgets):
    http.post(widgets, widget("a"))

    assert http.patch(f"{widgets}/a", {}, STRATEGIC).status == 415


def test_every_version_shows_the_same_object(http, widgets, group, namespace):
    http.post(widgets, widget("a"))

    other = http.get(f"/apis/{group}/v1beta1/namespaces/{namespace}/widgets/a").json
    listed = http.get(f"/apis/{group}/v1beta1/namespaces/{namespace}/widgets").json

    assert other["apiVersion"] == f"{group}/v1beta1"
    assert other["spec"]["size"] == 3
    assert [item["apiVersion"] for item in listed["items"]] == [f"{group}/v1beta1"]


def test_printer_columns_make_the_table(http, widgets):
    http.post(widgets, widget("a"))

    table = http.get(widgets, accept=TABLE).json

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size", "Phase", "Age"]
    assert table["rows"][0]["cells"][:3] == ["a", 3, None]
    assert table["columnDefinitions"][2]["priority"] == 1


def test_applies_of_two_managers_merge_keyed_lists(http, widgets):
    def apply(manager: str, **spec):
        return http.patch(f"{widgets}/a", widget("a", **spec), APPLY, query={"fieldManager": manager})

    assert apply("one", parts=[{"name": "x", "weight": 1}]).status == 201
    answer = apply("two", parts=[{"name": "y", "weight": 2}])

    assert sorted(part["name"] for part in answer.json["spec"]["parts"]) == ["x", "y"]


def test_an_object_of_the_wrong_version_or_kind_is_a_bad_request(http, widgets):
    wrong_version = http.post(widgets, {**widget("a"), "apiVersion": "v1"})
    without_kind = http.post(widgets, {"metadata": {"name": "a"}})

    assert wrong_version.status == 400
    assert "does not match the expected API version" in wrong_version.message
    assert without_kind.status == 400
    assert "Object 'Kind' is missing" in without_kind.message


def test_a_new_definition_is_accepted_established_and_served(http, fresh, eventually):
    group = f"{fresh('g')}.example"
    answer = http.post(DEFINITIONS, definition(group))
    established(http, eventually, group)
    status = http.get(f"{DEFINITIONS}/widgets.{group}").json["status"]

    assert answer.json["spec"]["names"] == {
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert answer.json["spec"]["conversion"] == {"strategy": "None"}
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"]["kind"] == "Widget"
    assert {(c["type"], c["status"]) for c in status["conditions"]} == {
        ("NamesAccepted", "True"),
        ("Established", "True"),
    }
    http.delete(f"{DEFINITIONS}/widgets.{group}")


def test_deleting_a_definition_deletes_its_objects(http, fresh, eventually, namespace):
    group = f"{fresh('g')}.example"
    http.post(DEFINITIONS, definition(group))
    established(http, eventually, group)
    path = f"/apis/{group}/v1/namespaces/{namespace}/widgets"
    body = {**widget("a"), "apiVersion": f"{group}/v1"}
    assert http.post(path, body).status == 201

    marked = http.delete(f"{DEFINITIONS}/widgets.{group}")

    assert marked.json["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    eventually(lambda: http.get(f"{DEFINITIONS}/widgets.{group}").status == 404, "the definition is gone")
    eventually(lambda: http.get(path).status == 404, "the kind is no longer served")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "other.bad.example"}}, "metadata.name"),
        ({"spec": {"scope": "Galaxy"}}, "spec.scope"),
        ({"spec": {"group": "nodots"}}, "spec.group"),
        ({"spec": {"versions": []}}, "spec.versions"),
        ({"spec": {"names": {"kind": "1st", "plural": "widgets"}}}, "spec.names.kind"),
        ({"spec": {"preserveUnknownFields": True}}, "spec.preserveUnknownFields"),
    ],
    ids=["name", "scope", "group", "versions", "kind", "preserve"],
)
def test_a_faulty_definition_is_refused_with_the_field(http, change, field):
    body = definition("bad.example")
    for part, values in change.items():
        body[part] = {**body[part], **values}

    answer = http.post(DEFINITIONS, body)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert field in [cause["field"] for cause in answer.causes]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {"a": {}}}, "must not be empty for specified object fields"),
        ({"type": "object", "x-kubernetes-validations": [{"rule": "self.nope > 1"}]}, "undefined field 'nope'"),
        ({"type": "object", "x-kubernetes-validations": [{"rule": "self."}]}, "Syntax error"),
        (
            {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}},
            "must be of type integer",
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
            "x-kubernetes-list-map-keys",
        ),
    ],
    ids=["no type", "unknown field in rule", "broken rule", "bad default", "map without keys"],
)
def test_a_schema_that_is_not_structural_is_refused(http, schema, words):
    root = {"type": "object", "properties": {"spec": schema}}

    answer = http.post(DEFINITIONS, definition("bad.example", schema={"openAPIV3Schema": root}))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert words in answer.message


def test_the_scope_and_kind_of_an_established_definition_stay(http, group):
    scope = http.patch(f"{DEFINITIONS}/widgets.{group}", {"spec": {"scope": "Cluster"}})
    kind = http.patch(f"{DEFINITIONS}/widgets.{group}", {"spec": {"names": {"kind": "Gadget"}}})

    assert [scope.causes[0]["field"], kind.causes[0]["field"]] == ["spec.scope", "spec.names.kind"]
