"""Bodies that do not fit their endpoint, with the exact messages of the real server."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import APPLY, JSON_PATCH, MERGE, STRATEGIC

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
YAML = "application/yaml"


def body(kind: str | None, api_version: str | None = None) -> dict:
    told = {"kind": kind, "apiVersion": api_version}
    return {name: value for name, value in told.items() if value} | {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("path", "sent", "message"),
    [
        (
            "configmaps",
            body("Secret", "v1"),
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): '
            "unknown conversion",
        ),
        (
            "configmaps",
            body("Deployment", "apps/v1"),
            'Deployment in version "v1" cannot be handled as a ConfigMap: converting (v1.Deployment) to '
            "(core.ConfigMap): unknown conversion",
        ),
        (
            ROLES,
            body("ClusterRoleBinding"),
            'ClusterRoleBinding in version "v1" cannot be handled as a ClusterRole: converting (v1.ClusterRoleBinding) '
            "to (rbac.ClusterRole): unknown conversion",
        ),
        (
            "configmaps",
            body("Nope"),
            f'Nope in version "v1" cannot be handled as a ConfigMap: no kind "Nope" is registered for version "v1" '
            f"{SCHEME}",
        ),
        (
            "configmaps",
            body(None, "apps/v1"),
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version '
            f'"apps/v1" {SCHEME}',
        ),
        (
            DEPLOYMENTS,
            body("Deployment", "extensions/v1beta1"),
            "the API version in the data (extensions/v1beta1) does not match the expected API version (apps/v1)",
        ),
        (
            REVIEWS,
            body("Secret", "v1"),
            'Secret in version "v1" cannot be handled as a SelfSubjectAccessReview: converting (v1.Secret) to '
            "(authorization.SelfSubjectAccessReview): unknown conversion",
        ),
        (
            "pods/p/eviction",
            body("Secret", "v1"),
            'Secret in version "v1" cannot be handled as a Eviction: converting (v1.Secret) to (policy.Eviction): '
            "unknown conversion",
        ),
        (
            "configmaps",
            {"kind": 3, "apiVersion": "v1"},
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse "
            "error: json: cannot unmarshal number into Go struct field .kind of type string "
            '({"kind": 3, "apiVersion": "v1" ...)',
        ),
        (
            "configmaps",
            {"apiVersion": [], "kind": "ConfigMap"},
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse "
            "error: json: cannot unmarshal array into Go struct field .apiVersion of type string "
            '({"apiVersion": [], "kind": "Co ...)',
        ),
    ],
    ids=[
        "kind",
        "group",
        "same group",
        "unknown",
        "no kind",
        "retired version",
        "review",
        "eviction",
        "number",
        "list",
    ],
)
def test_an_object_of_another_kind_is_refused(http, namespace, path, sent, message):
    where = path if path.startswith("/") else f"/api/v1/namespaces/{namespace}/{path}"

    answer = http.post(where, sent)

    assert (answer.status, answer.reason, answer.message) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"apiVersion": "v1"},
        {"kind": "ConfigMap"},
        {"apiVersion": "", "kind": ""},
        {"apiVersion": None, "kind": None},
    ],
    ids=["nothing", "version", "kind", "empty", "null"],
)
def test_the_endpoint_completes_what_a_body_omits(http, configmaps, told):
    dry = http.post(configmaps, {**told, "metadata": {"name": "a"}}, query={"dryRun": "All"})
    answer = http.post(configmaps, {**told, "metadata": {"name": "a"}})

    for each in (dry, answer):
        assert (each.status, each.json["kind"], each.json["apiVersion"]) == (201, "ConfigMap", "v1")


@pytest.mark.parametrize(
    ("sent", "kind"), [(b"null", "application/json"), (b"null", YAML), (b"", YAML)], ids=["null", "yaml null", "empty"]
)
def test_a_body_without_a_value_is_an_object_without_a_name(http, configmaps, sent, kind):
    answer = http.post(configmaps, sent, content_type=kind)

    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.name")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a":1', "unexpected end of JSON input"),
        (b"nonsense", "invalid character 'o' in literal null (expecting 'u')"),
        (b"nul", "invalid character ' ' in literal null (expecting 'l')"),
        (b"text", "invalid character 'e' in literal true (expecting 'r')"),
        (b"{'a': 1}", "invalid character '\\'' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a": }', "invalid character '}' looking for beginning of value"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b'{"a":[1 2]}', "invalid character '2' after array element"),
        (b'{"a":1}}', "invalid character '}' after top-level value"),
        (b'{"a":"\\q"}', "invalid character 'q' in string escape code"),
        (b'{"a":"\\u12g4"}', "invalid character 'g' in \\u hexadecimal character escape"),
        (b'{"a":"\n"}', "invalid character '\\n' in string literal"),
        (b'{"a":-x}', "invalid character 'x' in numeric literal"),
        (b'{"a":1.x}', "invalid character 'x' after decimal point in numeric literal"),
        (b'{"a":1ex}', "invalid character 'x' in exponent of numeric literal"),
        (b'{"a":01}', "invalid character '1' after object key:value pair"),
        (b"\xff\xfe", "invalid character '\xff' looking for beginning of value"),
        (b"[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
)
def test_malformed_json_says_where(http, configmaps, text, problem):
    answer = http.post(configmaps, text)

    assert answer.status == 400
    expected = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; "
    assert answer.message.startswith(f"{expected}json parse error: {problem} (")


def test_invalid_utf_8_is_replaced(http, configmaps):
    answer = http.post(configmaps, b'{"metadata":{"name":"a"},"data":{"k":"x\xffy"}}')

    assert (answer.status, answer.json["data"]) == (201, {"k": "x\ufffdy"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"a: [1, 2\nb: }", "line 1: did not find expected ',' or ']'"),
        (b"a: b: c", "mapping values are not allowed in this context"),
        (b"\tx: 1", "found character that cannot start any token"),
        (b"x: 1\ny: @", "line 2: found character that cannot start any token"),
        (b"a: 'x", "found unexpected end of stream"),
        (b"a: &x 1\nb: *y", "unknown anchor 'y' referenced"),
        (b"a:\n  - b\n c: d", "line 2: did not find expected key"),
        (b"x: 1\ny: 'z", "line 2: found unexpected end of stream"),
    ],
    ids=["flow", "colon", "tab", "later line", "quote", "anchor", "indent", "later quote"],
)
def test_malformed_yaml_says_where(http, configmaps, text, problem):
    posted = http.post(configmaps, text, content_type=YAML)
    applied = http.patch(f"{configmaps}/a", text, APPLY, query={"fieldManager": "m"})

    assert posted.status == applied.status == 400
    assert posted.message == (
        f"the object provided is unrecognized (must be of type ConfigMap): yaml: {problem} ({text.hex()})"
    )
    assert applied.message == f"error decoding YAML: error converting YAML to JSON: yaml: {problem}"


def test_the_first_of_several_yaml_documents_is_used(http, configmaps):
    answer = http.post(configmaps, b"metadata: {name: a}\n---\nmetadata: [", content_type=YAML)

    assert (answer.status, answer.json["metadata"]["name"]) == (201, "a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"apiVersion: v1\nkind: Secret\nmetadata: {name: a}", "invalid object type: /v1, Kind=Secret"),
        (b"apiVersion: v2\nkind: ConfigMap\nmetadata: {name: a}", "invalid object type: /v2, Kind=ConfigMap"),
        (b"metadata: {name: a}", "invalid object type: /, Kind="),
        (b"", "invalid object type: /, Kind="),
        (
            b"- a",
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go "
            "value of type map[string]interface {}",
        ),
    ],
    ids=["kind", "version", "neither", "empty", "list"],
)
def test_an_apply_of_something_else_is_refused(http, configmaps, text, message):
    answer = http.patch(f"{configmaps}/a", text, APPLY, query={"fieldManager": "m"})

    assert (answer.status, answer.message) == (400, message)


def test_a_custom_object_of_another_kind_is_invalid(gadgets, make_gadget, http, namespace):
    assert make_gadget("v1", "known").status == 201
    sent = {"apiVersion": f"{gadgets}/v1", "kind": "Other", "metadata": {"name": "a"}}

    answer = http.post(f"/apis/{gadgets}/v1/namespaces/{namespace}/gadgets", sent)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message == f'Other.{gadgets} "a" is invalid: kind: Invalid value: "Other": must be Gadget'


def test_a_custom_object_is_applied_in_the_version_of_its_endpoint(gadgets, make_gadget, http, namespace):
    assert make_gadget("v1", "known").status == 201
    sent = {"apiVersion": f"{gadgets}/v1", "kind": "Gadget", "metadata": {"name": "known"}}
    path = f"/apis/{gadgets}/v2/namespaces/{namespace}/gadgets/known"

    answer = http.patch(path, sent, APPLY, query={"fieldManager": "m"})

    assert (answer.status, answer.message) == (400, f"invalid object type: {gadgets}/v1, Kind=Gadget")


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 6)
)


def test_yaml_aliases_cannot_expand_without_bounds(http, configmaps):
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{LAUGHS}".encode()

    created = http.post(configmaps, text, content_type=YAML)
    applied = http.patch(f"{configmaps}/a", text, APPLY, query={"fieldManager": "m"})

    assert (created.status, applied.status) == (400, 400)
    assert "yaml: document contains excessive aliasing" in created.message
    assert "yaml: document contains excessive aliasing" in applied.message


def test_an_anchor_that_contains_itself_is_refused(http, configmaps):
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &a {x: *a}\n"

    answer = http.post(configmaps, text, content_type=YAML)

    assert answer.status == 400
    assert "contains itself" in answer.message


def test_an_alias_stands_for_its_anchor(http, configmaps):
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &n a, labels: &l {x: *n}, annotations: *l}\n"

    metadata = http.post(configmaps, text, content_type=YAML).json["metadata"]

    assert (metadata["name"], metadata["labels"], metadata["annotations"]) == ("a", {"x": "a"}, {"x": "a"})


TWICE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: v, k: w}\n"
LINE = 'line 4: key "k" already set in map'


def test_yaml_is_validated_as_asked(http, configmaps):
    text = TWICE + b"odd: 1\n"
    strict, warned, ignored = (
        http.post(configmaps, text, content_type=YAML, query={"fieldValidation": how, "dryRun": "All"})
        for how in ("Strict", "Warn", "Ignore")
    )

    assert strict.status == 400
    assert strict.message.endswith(f': strict decoding error: yaml: unmarshal errors:\n  {LINE}, unknown field "odd"')
    assert (warned.status, warned.json["data"]) == (201, {"k": "w"})
    assert warned.warnings == [f'299 - "{text}"' for text in (LINE.replace('"', '\\"'), 'unknown field \\"odd\\"')]
    assert (ignored.status, ignored.warnings) == (201, [])


def test_an_apply_is_validated_as_asked(http, configmaps):
    as_json = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"},\n\n"data": {"k": "v", "k": "w"}}'
    for text in (TWICE, as_json):
        line = LINE if text is TWICE else LINE.replace("4", "3")
        strict, warned, ignored = (
            http.patch(f"{configmaps}/b", text, APPLY, query={"fieldManager": "m", "fieldValidation": how})
            for how in ("Strict", "Warn", "Ignore")
        )

        assert strict.status == 400
        assert strict.message == (
            f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {line}"
        )
        escaped = line.replace('"', '\\"')
        assert warned.warnings == [f'299 - "{escaped}"']
        assert (ignored.json["data"], ignored.warnings) == ({"k": "w"}, [])


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
def test_a_patch_is_validated_as_asked(http, configmaps, kind):
    http.post(configmaps, {"metadata": {"name": "b"}, "data": {"k": "v"}})
    patch = b'{"data":{"k":"v","k":"w"},"odd":1}'
    strict, warned, ignored = (
        http.patch(f"{configmaps}/b", patch, kind, query={"fieldValidation": how, "dryRun": "All"})
        for how in ("Strict", "Warn", "Ignore")
    )

    assert (strict.status, strict.causes[0]["field"]) == (422, "patch")
    assert strict.message.endswith('strict decoding error: duplicate field "data.k", unknown field "odd"')
    if kind == STRATEGIC:
        assert 'Invalid value: "map[data:map[k:w] odd:1]"' in strict.message
    assert warned.warnings == [f'299 - "{word} field \\"{path}\\""' for word, path in PATCH_FAULTS]
    assert (ignored.json["data"], ignored.warnings) == ({"k": "w"}, [])


PATCH_FAULTS = (("duplicate", "data.k"), ("unknown", "odd"))


def test_a_json_patch_is_validated_as_asked(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "b"}, "data": {"k": "v"}})
    patch = (
        b'[{"op":"add","path":"/data/x","value":"1","value":"2","odd":1},{"op":"test","path":"/data/k","value":"v"},'
        b'{"op":"add","path":"/odd","value":1,"path":"/odd"}]'
    )
    strict, warned, ignored = (
        http.patch(f"{configmaps}/b", patch, JSON_PATCH, query={"fieldValidation": how, "dryRun": "All"})
        for how in ("Strict", "Warn", "Ignore")
    )

    faults = [
        'json patch duplicate field "[0].value"',
        'json patch unknown field "[0].odd"',
        'json patch duplicate field "[2].path"',
        'unknown field "odd"',
    ]
    assert (strict.status, strict.causes[0]["field"]) == (422, "patch")
    assert strict.message.endswith(f"strict decoding error: {', '.join(faults)}")
    assert [each.replace("\\", "") for each in warned.warnings] == [f'299 - "{fault}"' for fault in faults]
    assert (ignored.json["data"], ignored.warnings) == ({"k": "v", "x": "2"}, [])


def test_warnings_beyond_4_kb_are_cut_short_and_the_rest_is_left_out(http, configmaps):
    unknown = {f"f{number:02d}" + "x" * 300: 1 for number in range(40)}

    answer = http.post(f"{configmaps}?fieldValidation=Warn", {"metadata": {"name": "warned"}, **unknown})

    texts = [each.removeprefix('299 - "').removesuffix('"').replace("\\", "") for each in answer.warnings]
    assert answer.status == 201
    assert [len(text) for text in texts] == [256] * 16
