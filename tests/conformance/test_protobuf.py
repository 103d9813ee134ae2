"""Requests whose body is in protocol buffers, as Go's typed clients send them; the answers are JSON."""

from __future__ import annotations

import pytest

from ..builders.protobuf import MAGIC, envelope, field, tag

PROTOBUF = "application/vnd.kubernetes.protobuf"
METADATA = field(1, field(1, "a"))


@pytest.fixture
def send(http):
    """`send("POST", path, body)`, answered in JSON."""
    return lambda method, path, body: http.request(method, path, body, content_type=PROTOBUF)


def metadata(**fields: str) -> bytes:
    numbers = {"name": 1, "uid": 5, "resourceVersion": 6}
    return field(1, b"".join(field(numbers[name], value) for name, value in fields.items()))


def test_create_and_update(send, http, configmaps):
    data = field(2, field(1, "x") + field(2, "1")) + field(3, field(1, "y") + field(2, b"\x00\xff"))
    made = send("POST", configmaps, envelope("v1", "ConfigMap", METADATA + data))

    assert made.status == 201
    assert made.json["data"] == {"x": "1"}
    assert made.json["binaryData"] == {"y": "AP8="}
    version = made.json["metadata"]["resourceVersion"]
    changed = envelope("v1", "ConfigMap", metadata(name="a", resourceVersion=version) + field(4, 1))
    assert send("PUT", f"{configmaps}/a", changed).status == 200
    assert http.get(f"{configmaps}/a").json["immutable"] is True
    assert "data" not in http.get(f"{configmaps}/a").json
    assert send("PUT", f"{configmaps}/a", changed).status == 409


def test_a_status_of_its_own(send, http, fresh):
    name = fresh("node")
    http.post("/api/v1/nodes", {"metadata": {"name": name}})
    capacity = field(3, field(1, field(1, "cpu") + field(2, field(1, "4000m"))))

    answer = send("PUT", f"/api/v1/nodes/{name}/status", envelope("v1", "Node", metadata(name=name) + capacity))

    assert answer.status == 200
    assert answer.json["status"]["capacity"] == {"cpu": "4"}
    http.delete(f"/api/v1/nodes/{name}")


def test_the_path_gives_the_kind_that_the_envelope_omits(send, configmaps):
    assert send("POST", configmaps, MAGIC + field(2, METADATA)).status == 201


def test_fields_of_a_newer_client_are_passed_over_even_strictly(send, configmaps):
    body = envelope("v1", "ConfigMap", METADATA + field(99, "new") + field(100, 5))

    assert send("POST", f"{configmaps}?fieldValidation=Strict", body).status == 201


def test_objects_are_validated_like_any_other(send, configmaps):
    answer = send("POST", configmaps, envelope("v1", "ConfigMap", field(1, field(1, "No_Name"))))

    assert answer.status == 422
    assert answer.causes[0]["field"] == "metadata.name"


def test_access_reviews(send):
    attributes = field(1, "default") + field(2, "list") + field(5, "nodes")
    body = envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", field(2, field(1, attributes)))

    answer = send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)

    assert answer.status == 201
    assert answer.json["status"]["allowed"] is True


@pytest.fixture
def account(http, namespace):
    """The path of a service account."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    http.post(accounts, {"metadata": {"name": "robot"}})
    return f"{accounts}/robot"


@pytest.mark.parametrize(("spec", "expected"), [(b"", 3600), (field(4, 1200), 1200)], ids=["an hour", "as asked"])
def test_tokens(send, account, spec, expected):
    """Go sends the empty metadata field by field."""
    empty = b"".join(field(number, "") for number in range(1, 7))

    answer = send(
        "POST",
        f"{account}/token",
        envelope("authentication.k8s.io/v1", "TokenRequest", field(1, empty) + field(2, spec)),
    )

    assert answer.status == 201
    assert answer.json["spec"]["expirationSeconds"] == expected
    assert answer.json["status"]["token"]


def test_tokens_in_json_may_have_empty_fields_too(http, account):
    answer = http.post(f"{account}/token", {"metadata": {"name": "", "uid": ""}, "spec": {"expirationSeconds": None}})

    assert answer.status == 201
    assert answer.json["spec"]["expirationSeconds"] == 3600


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "meta.k8s.io/v1", "example.dev/v7"])
def test_delete_options(send, http, configmaps, api_version):
    http.post(configmaps, {"metadata": {"name": "a"}})

    wrong = send("DELETE", f"{configmaps}/a", envelope(api_version, "DeleteOptions", field(2, field(1, "other"))))
    dry_run = send("DELETE", f"{configmaps}/a", envelope(api_version, "DeleteOptions", field(5, "All")))

    assert wrong.status == 409
    assert dry_run.status == 200
    assert http.get(f"{configmaps}/a").status == 200
    assert send("DELETE", f"{configmaps}/a", envelope(api_version, "DeleteOptions", b"")).status == 200
    assert http.get(f"{configmaps}/a").status == 404


def test_evictions(send, http, namespace):
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = http.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}).json
    named = field(1, field(1, "p") + field(3, namespace))

    def evict(uid: str):
        options = field(1, 0) + field(2, field(1, uid))
        return send("POST", f"{pods}/p/eviction", envelope("policy/v1", "Eviction", named + field(2, options)))

    assert evict("other").status == 409
    assert evict(pod["metadata"]["uid"]).status == 201
    assert http.get(f"{pods}/p").status == 404


def test_scales(send, http, namespace):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    http.post(deployments, {"metadata": {"name": "d"}, "spec": spec})
    named = field(1, field(1, "d") + field(3, namespace))

    answer = send("PUT", f"{deployments}/d/scale", envelope("autoscaling/v1", "Scale", named + field(2, field(1, 5))))

    assert answer.status == 200
    assert http.get(f"{deployments}/d").json["spec"]["replicas"] == 5


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
UNHANDLED = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
NO_MESSAGE = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", f"{UNRECOGNIZED}empty data (<empty>)"),
        (b"abc", f"{UNRECOGNIZED}{NO_MESSAGE} (616263)"),
        (b'{"a":1}', f'{UNRECOGNIZED}{NO_MESSAGE} ({{"a":1}})'),
        (MAGIC, f"{UNRECOGNIZED}empty body (6b387300)"),
        (
            envelope("v1", "ConfigMap", METADATA)[:-1],
            f"{UNRECOGNIZED}unexpected EOF (6b3873000a0f0a0276311209436f6e6669674d617012050a030a01611a00 ...)",
        ),
        (envelope("v1", "ConfigMap", METADATA[:-1]), f"{UNHANDLED}unexpected EOF"),
        (envelope("v1", "ConfigMap", b"\xff" * 11), f"{UNHANDLED}proto: integer overflow"),
        (envelope("v1", "ConfigMap", field(1, 1)), f"{UNHANDLED}proto: wrong wireType = 0 for field ObjectMeta"),
        (envelope("v1", "ConfigMap", field(2, 1)), f"{UNHANDLED}proto: wrong wireType = 0 for field Data"),
        (envelope("v1", "ConfigMap", field(0, "a")), f"{UNHANDLED}proto: ConfigMap: illegal tag 0 (wire type 2)"),
        (envelope("v1", "ConfigMap", tag(9, 4)), f"{UNHANDLED}proto: ConfigMap: wiretype end group for non-group"),
        (
            envelope("foo/v1", "ConfigMap", METADATA),
            f'{UNHANDLED}no kind "ConfigMap" is registered for version "foo/v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            envelope("v1", "Foo", METADATA),
            'Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1" in '
            'scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_broken_bodies_are_refused(send, configmaps, body, message):
    answer = send("POST", configmaps, body)

    assert (answer.status, answer.message) == (400, message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"abc", NO_MESSAGE),
        (envelope("v1", "DeleteOptions", b"\x08"), "unexpected EOF"),
        (
            envelope("v1", "Foo", b""),
            'no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_broken_delete_options_are_refused(send, http, configmaps, body, message):
    http.post(configmaps, {"metadata": {"name": "a"}})

    answer = send("DELETE", f"{configmaps}/a", body)

    assert (answer.status, answer.message) == (400, message)
