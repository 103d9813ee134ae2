"""AdmissionReview on the wire."""

import base64
import json

import pytest
from tests.builders.nested_json import with_nested
from tests.builders.reviews import question

from nodeyard.admission import review_codec
from nodeyard.runtime.webhooks import allowed, denied, patched


def answered(response, **request):
    review = review_codec.read(question(**request))
    return json.loads(review_codec.encode(review, response))


def test_a_review_is_decoded_as_the_api_server_sends_it():
    review = review_codec.read(
        question(
            operation="UPDATE",
            name="a",
            namespace="ns",
            subResource="status",
            dryRun=True,
            object={"a": 1},
            oldObject={"a": 0},
        )
    )

    assert (review.operation, review.name, review.namespace, review.subresource) == ("UPDATE", "a", "ns", "status")
    assert (review.object, review.old_object, review.dry_run) == ({"a": 1}, {"a": 0}, True)
    assert (review.user.username, review.user.groups) == ("jane", ("devs",))
    assert (review.resource.resource, review.kind.kind) == ("labelrules", "LabelRule")


def test_a_review_nested_too_deeply_is_named_as_such():
    body = with_nested(question(name="a", object={"metadata": {"name": "a"}, "spec": "NESTED"}), 5_000)

    with pytest.raises(RecursionError):
        review_codec.read(body)
    with pytest.raises(review_codec.TooDeep) as refused:
        review_codec.read_deep(body)

    assert (refused.value.review.uid, refused.value.review.name) == ("u-1", "a")


@pytest.mark.parametrize(
    "after", [{"operation": "DELETE", "object": None}, {"operation": "UPDATE", "object": {"a": 1}}]
)
def test_stored_objects_may_have_any_depth(after):
    body = with_nested(question(**after, oldObject={"metadata": {"name": "a"}, "spec": "NESTED"}), 5_000)

    review = review_codec.read_deep(body)

    assert review.object == after["object"]
    assert review.old_object["metadata"] == {"name": "a"}


def test_a_body_that_decodes_too_slowly_is_refused_before_decoding():
    lists = b"[" + b"[]," * review_codec.MAX_CONTAINERS + b"[]]"

    with pytest.raises(review_codec.TooLarge, match="more than 250000 lists and objects"):
        review_codec.read(question(object={"spec": "LISTS"}).replace(b'"LISTS"', lists))


def test_more_floats_than_any_object_has_are_refused():
    """Floats take long to decode, most of all near the limits of a double."""
    floats = b"[" + b"1.5e300," * review_codec.MAX_FLOATS + b"1.5e300]"

    with pytest.raises(review_codec.TooLarge, match="more than 100000 floats"):
        review_codec.read(question(object={"spec": "FLOATS"}).replace(b'"FLOATS"', floats))


def test_objects_of_a_delete_collection_are_named_by_their_object():
    review = review_codec.read(
        question(operation="DELETE", name="", object=None, oldObject={"metadata": {"name": "a"}})
    )

    assert review.name == "a"


def test_an_object_with_generate_name_has_no_name_yet():
    assert (
        review_codec.read(question(operation="CREATE", name="", object={"metadata": {"generateName": "a-"}})).name == ""
    )


def test_nulls_are_what_is_absent():
    review = review_codec.read(
        question(operation="DELETE", object=None, oldObject={"a": 0}, options=None, userInfo={"groups": None})
    )

    assert review.object is None
    assert review.subject == {"a": 0}
    assert review.user.groups == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        question(operation="EAT"),
        question().replace(b"/v1", b"/v1beta1"),
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
    ],
    ids=["nothing", "a-list", "an-object", "an-unknown-operation", "an-old-version", "no-request"],
)
def test_a_body_that_is_no_review_is_rejected(body):
    with pytest.raises(review_codec.NotAReview):
        review_codec.read(body)


def test_an_allowing_response_is_short():
    assert answered(allowed()) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


def test_a_denial_has_message_code_and_reason():
    response = answered(denied("no", code=422, reason="Invalid"))["response"]

    assert response["allowed"] is False
    assert response["status"] == {"status": "Failure", "message": "no", "code": 422, "reason": "Invalid"}


def test_a_change_is_sent_as_json_patch():
    response = answered(patched({"a": 1, "b": 2}), object={"a": 1})["response"]

    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [{"op": "add", "path": "/b", "value": 2}]


def test_a_change_that_changes_nothing_is_no_patch():
    assert "patch" not in answered(patched({"a": 1}), object={"a": 1})["response"]


def test_warnings_and_audit_annotations_come_along():
    response = answered(allowed("one").with_warnings("two").with_audit_annotations(rule="a"))["response"]

    assert response["warnings"] == ["one", "two"]
    assert response["auditAnnotations"] == {"rule": "a"}


def test_a_long_message_is_truncated():
    assert len(answered(denied("x" * 100_000))["response"]["status"]["message"]) == review_codec.MAX_MESSAGE
