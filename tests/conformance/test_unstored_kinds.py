"""Kinds that are never stored (Scale, Binding, Eviction, TokenRequest, reviews): decoded and checked like any other."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import JSON_PATCH

AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
MAY = {"resourceAttributes": {"verb": "get", "resource": "pods"}}


@pytest.fixture
def scale(http, namespace) -> str:
    """The scale of a deployment with one replica."""
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    assert http.post(deployments, {"metadata": {"name": "d"}, "spec": spec}).status == 201
    return f"{deployments}/d/scale"


@pytest.fixture
def pod(http, namespace) -> str:
    """A pod that nobody has bound yet."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert http.post(pods, body).status == 201
    return f"{pods}/p"


@pytest.fixture
def token(http, namespace) -> str:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert http.post(accounts, {"metadata": {"name": "robot"}}).status == 201
    return f"{accounts}/robot/token"


@pytest.mark.parametrize(
    "change",
    [
        {"spec": "x"},
        {"spec": {"replicas": "x"}},
        {"spec": {"replicas": 1.5}},
        {"spec": {"replicas": 2**40}},
        {"metadata": "x"},
        {"metadata": {"name": "d", "labels": {"a": 5}}},
        {"status": "x"},
        {"apiVersion": "v9"},
        {"apiVersion": "autoscaling/v2"},
        {"apiVersion": 5},
        {"kind": "Deployment", "apiVersion": "apps/v1"},
        {"kind": 5},
    ],
    ids=str,
)
def test_a_scale_of_the_wrong_type_is_refused(http, scale, change):
    put = http.put(scale, {"metadata": {"name": "d"}, **change})
    patch = http.patch(scale, change)

    assert (put.status, patch.status) == (400, 422)
    assert 'patch: Invalid value: "{' in patch.message
    assert http.get(scale).json["spec"] == {"replicas": 1}


def test_a_patch_that_changes_the_kind_of_a_scale_is_refused(http, scale):
    answer = http.patch(scale, [{"op": "replace", "path": "/spec", "value": "x"}], JSON_PATCH)

    assert answer.status == 422
    assert answer.message.endswith("json: cannot unmarshal string into Go struct field Scale.spec of type v1.ScaleSpec")


@pytest.mark.parametrize("metadata", [{"name": "other"}, {"name": "d", "namespace": "other"}], ids=str)
def test_a_scale_is_that_of_its_url(http, scale, metadata):
    assert http.put(scale, {"metadata": metadata}).status == 400
    assert http.patch(scale, {"metadata": metadata}).status == 400


def test_no_replicas_are_zero(http, scale):
    put = http.put(scale, {"metadata": {"name": "d"}, "spec": {"replicas": None}})

    assert (put.status, put.json["spec"]) == (200, {})


def test_no_replicas_in_a_patch_are_zero(http, scale):
    patch = http.patch(scale, {"spec": {"replicas": None}})

    assert (patch.status, patch.json["spec"]) == (200, {})


@pytest.mark.parametrize(
    "change",
    [
        {"target": "x"},
        {"target": {"name": 5}},
        {"target": {"name": "n", "kind": 5}},
        {"metadata": "x"},
        {"metadata": {"name": "p", "annotations": {"x": 5}}},
        {"metadata": {"name": "p", "uid": 5}},
        {"apiVersion": 5},
        {"apiVersion": "v9"},
        {"kind": 5},
    ],
    ids=str,
)
def test_a_binding_of_the_wrong_type_is_refused(http, namespace, pod, change):
    body = {"metadata": {"name": "p"}, "target": {"name": "n"}, **change}

    assert http.post(f"{pod}/binding", body).status == 400
    assert http.post(f"/api/v1/namespaces/{namespace}/bindings", body).status == 400
    assert "nodeName" not in http.get(pod).json["spec"]


@pytest.mark.parametrize(
    "change",
    [
        {"deleteOptions": "x"},
        {"deleteOptions": {"gracePeriodSeconds": "x"}},
        {"deleteOptions": {"preconditions": "x"}},
        {"deleteOptions": {"preconditions": {"uid": 5}}},
        {"deleteOptions": {"dryRun": "All"}},
        {"apiVersion": "policy/v1beta1", "kind": "Eviction", "deleteOptions": "x"},
        {"metadata": "x"},
        {"metadata": {"name": "p", "labels": {"a": 5}}},
        {"apiVersion": 5},
        {"kind": 5},
    ],
    ids=str,
)
def test_an_eviction_of_the_wrong_type_is_refused(http, pod, change):
    assert http.post(f"{pod}/eviction", {"metadata": {"name": "p"}, **change}).status == 400
    assert http.get(pod).status == 200


@pytest.mark.parametrize(
    "body",
    [
        [1],
        "x",
        {"spec": "x"},
        {"spec": {"expirationSeconds": "x"}},
        {"spec": {"expirationSeconds": 10**30}},
        {"spec": {"audiences": "x"}},
        {"spec": {"audiences": [5]}},
        {"spec": {"boundObjectRef": "x"}},
        {"spec": {"boundObjectRef": {}}},
        {"metadata": "x"},
        {"metadata": {"namespace": "other"}},
        {"status": "x"},
        {"apiVersion": "v9"},
        {"apiVersion": 5},
        {"kind": "Pod", "apiVersion": "v1"},
        {"kind": 5},
    ],
    ids=str,
)
def test_a_token_request_of_the_wrong_type_is_refused(http, token, body):
    assert http.post(token, body).status == 400


def test_a_token_request_may_be_null(http, token):
    answer = http.post(token, b"null")

    assert (answer.status, answer.json["spec"]["expirationSeconds"]) == (201, 3600)


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        (f"{AUTHORIZATION}/selfsubjectaccessreviews", "x"),
        (f"{AUTHORIZATION}/selfsubjectaccessreviews", {"resourceAttributes": "x"}),
        (f"{AUTHORIZATION}/selfsubjectaccessreviews", {"resourceAttributes": {"verb": 1}}),
        (f"{AUTHORIZATION}/selfsubjectaccessreviews", {"resourceAttributes": {"verb": "list", "fieldSelector": 5}}),
        (f"{AUTHORIZATION}/selfsubjectaccessreviews", {"nonResourceAttributes": {"path": 5}}),
        (f"{AUTHORIZATION}/subjectaccessreviews", {**MAY, "user": 5}),
        (f"{AUTHORIZATION}/subjectaccessreviews", {**MAY, "groups": "x"}),
        (f"{AUTHORIZATION}/subjectaccessreviews", {**MAY, "user": "u", "extra": {"a": "x"}}),
        (f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews", {**MAY, "user": 5}),
        (f"{AUTHORIZATION}/selfsubjectrulesreviews", "x"),
        (f"{AUTHORIZATION}/selfsubjectrulesreviews", {"namespace": ["a"]}),
        (f"{AUTHENTICATION}/tokenreviews", "x"),
        (f"{AUTHENTICATION}/tokenreviews", {"token": 5}),
        (f"{AUTHENTICATION}/tokenreviews", {"token": "x", "audiences": "x"}),
    ],
    ids=str,
)
def test_a_review_of_the_wrong_type_is_refused(http, path, spec):
    answer = http.post(path, {"spec": spec})

    assert answer.status == 400
    assert "json: cannot unmarshal " in answer.message


@pytest.mark.parametrize("body", [{"apiVersion": 5}, {"kind": 5}, {"metadata": "x"}, {"status": "x"}], ids=str)
def test_even_an_empty_review_has_a_type(http, body):
    assert http.post(f"{AUTHENTICATION}/selfsubjectreviews", body).status == 400


def test_a_review_of_oneself_has_no_name(http):
    answer = http.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"metadata": {"name": "a"}, "spec": MAY})

    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata")


def test_a_local_review_is_in_the_namespace_of_its_url(http):
    body = {"metadata": {"namespace": "other"}, "spec": {**MAY, "user": "u"}}

    assert http.post(f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews", body).status == 400
