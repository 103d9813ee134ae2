"""Bad input of every kind: the server answers with the status code of the real one and stays up."""

from __future__ import annotations

import base64
import json

import pytest

from nodeyard.testing.session import APPLY, MERGE, TABLE, Session


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/gadgets", 404),
        ("/api/v1/namespaces/default/gadgets", 404),
        ("/api/v2", 404),
        ("/api/v2/nodes", 404),
        ("/apis/policy/v3", 404),
        ("/apis/nope.example", 404),
        ("/apis/nope.example/v1/things", 404),
        ("/nope", 404),
        ("/api/v1/namespaces/default/nodes", 404),
        ("/api/v1/configmaps/a", 404),
        ("/api/v1/namespaces/default/configmaps/a/status", 404),
        ("/openapi/v3/apis/nope.example/v1", 404),
    ],
)
def test_an_unknown_path_is_not_found(http, path, status):
    assert http.get(path).status == status


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/default/configmaps/a"),
        ("PUT", "/api/v1/namespaces/default/configmaps"),
        ("PATCH", "/api/v1/namespaces/default/configmaps"),
        ("POST", "/api/v1/configmaps"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ],
)
def test_an_unknown_method_is_not_allowed(http, method, path):
    body = None if method == "GET" else {}
    kind = MERGE if method == "PATCH" else "application/json"

    answer = http.request(method, path, body, content_type=kind)

    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"metadata": {"name": "a"',
        b'[{"a": 1}]',
        b'"text"',
        b"{'single': 'quotes'}",
        b"\xff\xfe",
    ],
    ids=["empty", "open brace", "word", "cut off", "list", "string", "single quotes", "not utf-8"],
)
def test_malformed_json_is_a_bad_request(http, configmaps, body):
    answer = http.post(configmaps, body)

    assert (answer.status, answer.reason) == (400, "BadRequest")


def test_malformed_yaml_is_a_bad_request(http, configmaps):
    assert http.post(configmaps, b"a: [1, 2\nb: }", content_type="application/yaml").status == 400


def test_malformed_yaml_in_an_apply_is_a_bad_request(http, configmaps):
    answer = http.patch(f"{configmaps}/a", b"a: [1, 2\nb: }", APPLY, query={"fieldManager": "m"})

    assert answer.status == 400


@pytest.mark.parametrize(
    ("key", "text"), [("1", "1"), ("-3", "-3"), ("1.50", "1.5"), ("true", "true"), ("0x10", "16"), (".inf", ".inf")]
)
def test_keys_in_yaml_are_text_whatever_they_look_like(http, configmaps, key, text):
    data = f"data: {{{key}: x}}".encode()
    made = http.post(configmaps, b"metadata: {name: a}\n" + data, content_type="application/yaml")
    applied = http.patch(
        f"{configmaps}/b",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n" + data,
        APPLY,
        query={"fieldManager": "m"},
    )

    assert (made.status, made.json.get("data")) == (201, {text: "x"})
    assert (applied.status, applied.json.get("data")) == (201, {text: "x"})


@pytest.mark.parametrize("key", ["null", "9223372036854775808"])
def test_a_key_in_yaml_that_cannot_be_text_is_a_bad_request(http, configmaps, key):
    body = f"metadata: {{name: a}}\ndata: {{{key}: x}}".encode()

    assert http.post(configmaps, body, content_type="application/yaml").status == 400


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/jsonp"])
def test_a_body_of_unknown_format_is_unsupported(http, configmaps, kind):
    answer = http.post(configmaps, b"{}", content_type=kind)

    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")
    assert answer.message.startswith("the body of the request was in an unknown format - accepted media types include:")


@pytest.mark.parametrize("accept", ["text/plain", "application/xml", "application/json;as=Carpet;g=meta.k8s.io;v=v1"])
def test_an_unsupported_media_type_is_not_acceptable(http, configmaps, accept):
    answer = http.get(configmaps, accept=accept)

    assert (answer.status, answer.reason) == (406, "NotAcceptable")


def test_a_body_above_three_megabytes_is_too_large(http, configmaps):
    body = json.dumps({"metadata": {"name": "big"}, "data": {"k": "x" * (3 * 1024 * 1024 + 10)}}).encode()

    answer = http.post(configmaps, body)

    assert (answer.status, answer.reason) == (413, "RequestEntityTooLarge")


def test_a_configmap_above_a_megabyte_is_invalid(http, configmaps):
    answer = http.post(configmaps, {"metadata": {"name": "big"}, "data": {"k": "x" * (1024 * 1024 + 10)}})

    assert (answer.status, answer.reason) == (422, "Invalid")


def test_deep_nesting_is_refused_and_harmless(http, configmaps):
    deep = b'{"metadata":{"name":"deep"},"data":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}"

    assert http.post(configmaps, deep).status == 400
    assert http.get(configmaps).status == 200


def test_a_value_of_the_wrong_type_says_where(http, namespace):
    body = {"metadata": {"name": "d"}, "spec": {"replicas": "three"}}

    answer = http.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", body)

    assert answer.status == 400
    assert "json: cannot unmarshal string into Go struct field" in answer.message
    assert answer.message.endswith("spec.replicas of type int32")


def test_an_object_of_another_kind_is_a_bad_request(http, configmaps):
    answer = http.post(configmaps, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})

    assert answer.status == 400
    assert answer.message.startswith('Secret in version "v1" cannot be handled as a ConfigMap')


@pytest.mark.parametrize("value", ["Sometimes", "strict"])
def test_an_unknown_field_validation_is_invalid(http, configmaps, value):
    answer = http.post(configmaps, {"metadata": {"name": "a"}}, query={"fieldValidation": value})

    assert (answer.status, answer.causes[0]["field"]) == (422, "fieldValidation")


@pytest.mark.parametrize("manager", ["x" * 129, "tab\there"])
def test_a_field_manager_that_cannot_be_recorded_is_invalid(http, configmaps, manager):
    answer = http.post(configmaps, {"metadata": {"name": "a"}}, query={"fieldManager": manager})

    assert (answer.status, answer.causes[0]["field"]) == (422, "fieldManager")


@pytest.mark.parametrize("token", ["é", base64.urlsafe_b64encode(b'{"v":"\xff"}').decode()], ids=["letter", "json"])
def test_a_continue_token_that_is_no_text_is_a_bad_request(http, configmaps, token):
    answer = http.get(configmaps, query={"continue": token})

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith("invalid continue token: continue key is not valid: ")


def test_a_continue_token_of_the_future_is_too_large(http, configmaps):
    token = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":99999999999,"start":"a"}').decode().rstrip("=")

    answer = http.get(configmaps, query={"continue": token})

    assert (answer.status, answer.causes[0]["reason"]) == (504, "ResourceVersionTooLarge")


@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_of_thousands_of_digits_is_out_of_range(http, configmaps, name, sign):
    answer = http.get(configmaps, query={name: f"{sign}{'9' * 5000}"})

    assert answer.status == 400
    assert answer.message.endswith("value out of range")


def test_a_revision_of_thousands_of_digits_is_out_of_range(http, configmaps):
    answer = http.get(configmaps, query={"resourceVersion": "9" * 5000})

    assert answer.status == 400
    assert answer.message.endswith("value out of range")


def test_leading_zeros_of_a_number_are_ignored(http, configmaps):
    assert http.get(configmaps, query={"limit": f"{'0' * 5000}1"}).status == 200


@pytest.mark.parametrize("watch", ["1", "0"])
def test_a_table_that_includes_something_else_is_a_bad_request(http, configmaps, watch):
    answer = http.get(configmaps, accept=TABLE, query={"watch": watch, "includeObject": "bad", "timeoutSeconds": 1})

    assert answer.status == 400
    assert answer.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "bad": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


@pytest.mark.parametrize("rest", [b".a.\xff", b".\xff.a", b".\xc3\xa9.a"])
def test_a_token_that_is_no_text_is_unauthorized(api, rest):
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=")

    answer = Session(api.url, api.authority.pem).get("/version", headers={"Authorization": b"Bearer " + header + rest})

    assert answer.status == 401


def test_a_wrong_token_is_unauthorized(api):
    answer = Session(api.url, api.authority.pem, "wrong").get("/version")

    assert (answer.status, answer.reason) == (401, "Unauthorized")


@pytest.mark.parametrize("page", ["healthz", "livez", "readyz"])
def test_health_is_reported_by_check(http, page):
    told = http.get(f"/{page}", query={"verbose": "", "exclude": ["ping", "nothing"]})
    lines = told.content.decode().splitlines()

    assert (told.status, http.get(f"/{page}").content) == (200, b"ok")
    assert {"[+]ping excluded: ok", "[+]log ok", "[+]etcd ok"} <= set(lines)
    assert lines[-2:] == [
        'warn: some health checks cannot be excluded: no matches for "nothing"',
        f"{page} check passed",
    ]
    for check in ("ping", "etcd", "poststarthook/rbac/bootstrap-roles"):
        assert (http.get(f"/{page}/{check}").content, f"[+]{check} ok" in lines) == (b"ok", check != "ping")
    assert http.get(f"/{page}/nothing").status == 404


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_health_and_version_are_open_to_everybody(api, path):
    assert Session(api.url, api.authority.pem).get(path).status == 200


@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1/nodes", "/openapi/v3"])
def test_anonymous_users_are_forbidden_other_paths(api, path):
    answer = Session(api.url, api.authority.pem).get(path)

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert 'User "system:anonymous"' in answer.message
