"""Statuses become exceptions by their reaction."""

import msgspec
import pytest
from tests.builders.nested_json import nested

from nodeyard.client import errors
from nodeyard.client.errors import error_from_answer


def answer(code, reason="", message="", details=None, headers=None):
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    if reason:
        status["reason"] = reason
    if details:
        status["details"] = details
    return error_from_answer(code, headers or {}, msgspec.json.encode(status))


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
        (405, "MethodNotAllowed", errors.ApiError),
    ],
)
def test_code_and_reason_choose_the_exception(code, reason, kind):
    error = answer(code, reason, "why")
    assert type(error) is kind
    assert (error.code, error.reason, error.message, str(error)) == (code, reason, "why", "why")


def test_a_refusal_in_a_namespace_that_is_being_deleted_is_recognised_by_its_cause_and_not_by_its_message():
    words = 'events "e" is forbidden: unable to create new content in namespace n because it is being terminated'
    cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
    assert type(answer(403, "Forbidden", words)) is errors.Forbidden
    assert type(answer(403, "Forbidden", words, {"causes": [cause]})) is errors.NamespaceTerminating
    assert type(answer(409, "Conflict", words, {"causes": [cause]})) is errors.Conflict


def test_already_exists_is_a_conflict_too():
    assert isinstance(answer(409, "AlreadyExists"), errors.Conflict)


def test_a_webhooks_denial_is_recognised_by_its_message_whatever_the_code():
    text = 'admission webhook "pods.example.com" denied the request: not on this node'
    for code in (400, 403, 422):
        error = answer(code, "Forbidden", text)
        assert isinstance(error, errors.AdmissionDenied)
        assert error.denied_by == "pods.example.com"


def test_a_policys_denial_names_the_policy():
    text = "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'one-zone' with binding 'everywhere' denied request: no"
    error = answer(422, "Invalid", text)
    assert isinstance(error, errors.AdmissionDenied)
    assert error.denied_by == "one-zone"


@pytest.mark.parametrize(
    "quoted",
    [
        "nodes \"n\" is forbidden: ValidatingAdmissionPolicy 'guard' with binding 'guard' denied request: no",
        'admission webhook "pods.example.com" denied the request: no',
    ],
)
def test_an_error_that_quotes_a_denial_is_no_denial(quoted):
    text = f'NodeTemplate.nyallocator.cybozu.io "web" is invalid: patch: Invalid value: "map[message:{quoted}]": strict'
    cause = {"reason": "FieldValueInvalid", "message": text, "field": "patch"}
    assert type(answer(422, "Invalid", text, {"causes": [cause]})) is errors.Invalid
    assert type(answer(500, "InternalError", f"Internal error occurred: {quoted}")) is errors.ServerError


@pytest.mark.parametrize(
    "text",
    [
        "pods is forbidden: ValidatingAdmissionPolicy 'one-zone' denied request: no",
        "forbidden: ValidatingAdmissionPolicy 'one-zone' with binding 'b' denied request: no",
    ],
)
def test_a_policys_denial_is_recognised_for_an_object_without_a_name_too(text):
    assert answer(403, "Forbidden", text).denied_by == "one-zone"


def test_a_webhook_that_cannot_be_called_is_a_server_error():
    text = 'Internal error occurred: failed calling webhook "pods.example.com": connection refused'
    assert type(answer(500, "InternalError", text)) is errors.ServerError


def test_causes_are_kept():
    causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.replicas"}]
    error = answer(422, "Invalid", "x", {"name": "n", "kind": "Widget", "causes": causes})
    assert error.details.name == "n"
    assert error.causes[0].field == "spec.replicas"
    assert error.has_cause("FieldValueRequired")


def test_a_budget_is_distinguished_from_flow_control():
    budget = answer(429, "TooManyRequests", "x", {"causes": [{"reason": "DisruptionBudget", "message": "needs 1"}]})
    assert budget.is_budget
    assert not answer(429, "TooManyRequests", "slow down").is_budget


def test_retry_after_comes_from_the_header_or_the_details():
    assert answer(429, headers={"retry-after": "3"}).retry_after == 3
    assert answer(429, details={"retryAfterSeconds": 10}).retry_after == 10
    assert answer(429).retry_after is None
    assert answer(429, headers={"retry-after": "²"}).retry_after is None
    assert answer(503, headers={"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}).retry_after is None


def test_a_body_that_is_no_status_is_quoted():
    error = error_from_answer(502, {}, b"<html>bad gateway</html>")
    assert isinstance(error, errors.ServerError)
    assert error.code == 502
    assert error.message == "<html>bad gateway</html>"


def test_a_body_that_is_nested_too_deeply_is_quoted():
    assert error_from_answer(500, {}, f'{{"x":{nested(5_000)}}}'.encode()).message.startswith('{"x":{"a":')


def test_an_empty_body_still_has_a_message():
    assert error_from_answer(404, {}, b"").message == "the server answered 404 Not Found"


def test_everything_raised_on_purpose_has_one_root():
    assert issubclass(errors.ConfigError, errors.ClientError)
    assert issubclass(errors.TransportTimeout, errors.TransportError)
    assert issubclass(errors.ApiError, errors.ClientError)
