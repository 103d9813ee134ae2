"""Reviews sent to a webhook, and the effect of each possible answer."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from nodeyard.apiserver.errors import ApiError

# the question


async def test_a_webhook_gets_the_whole_request(cluster, server) -> None:
    cluster.hook(url=server.on("/ok", {}))
    attributes = await cluster.admit()
    [(url, headers, review)] = server.asked
    request = review["request"]
    assert url == "/ok?timeout=5s"
    assert headers["user-agent"] == "kube-apiserver-admission"
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert len(request.pop("uid")) == 36
    assert request == {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "c",
        "namespace": "ns",
        "operation": "CREATE",
        "userInfo": {"username": "alice", "uid": "a-1", "groups": ["dev"], "extra": {"scopes": ["x"]}},
        "object": attributes.object,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


async def test_a_deletion_shows_the_old_object_alone(cluster, server) -> None:
    cluster.hook(url=server.on("/ok", {}))
    attributes = await cluster.admit(operation="DELETE")
    [(_, _, review)] = server.asked
    assert review["request"]["object"] is None
    assert review["request"]["oldObject"] == attributes.old


# the answer


async def test_warnings_and_audit_annotations_come_back(cluster, server) -> None:
    cluster.hook(url=server.on("/warn", {"warnings": ["careful"], "auditAnnotations": {"k": "v"}}))
    attributes = await cluster.admit()
    assert attributes.warnings == ["careful"]
    assert attributes.audit == {"h.example.com/k": "v"}


DENIED = 'admission webhook "h.example.com" denied the request'


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        (None, 400, "", f"{DENIED} without explanation"),
        ({"message": "no way"}, 400, "", f"{DENIED}: no way"),
        ({"reason": "Foo"}, 400, "Foo", f"{DENIED}: Foo"),
        ({"message": "m", "code": 200, "status": "Success"}, 400, "", f"{DENIED}: m"),
        ({"message": "m", "code": 402, "reason": "Bar", "details": {"name": "z"}}, 402, "Bar", f"{DENIED}: m"),
    ],
)
async def test_a_denial_is_passed_on(
    cluster, server, status: dict[str, Any] | None, code: int, reason: str, message: str
) -> None:
    cluster.hook(url=server.on("/deny", {"allowed": False} | ({"status": status} if status else {})))
    error = await cluster.refusal()
    assert (error.code, error.reason, error.message) == (code, reason, message)
    assert error.details == (status or {}).get("details")


async def test_the_warnings_of_a_denial_are_kept(cluster, server) -> None:
    cluster.hook(url=server.on("/deny", {"allowed": False, "warnings": ["told you"]}))
    attributes = cluster.write()
    with pytest.raises(ApiError):
        await cluster.validating.validate(attributes)
    assert attributes.warnings == ["told you"]


FAILED = 'failed calling webhook "h.example.com": '


def raw(body: object = None, **more: Any) -> web.Response:
    return web.json_response(body, **more)


UNUSABLE: dict[str, tuple[dict[str, Any] | web.StreamResponse, str]] = {
    "a server error": (
        web.Response(status=500, text="boom"),
        'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding',
    ),
    "a server error with a status": (
        raw({"kind": "Status", "message": "inner"}, status=500),
        "failed to call webhook: inner",
    ),
    "not found": (
        web.Response(status=404, text="nf"),
        "failed to call webhook: the server could not find the requested resource",
    ),
    "a redirect": (
        web.Response(status=302, headers={"location": "/ok"}),
        "failed to call webhook: the server responded with the status code 302",
    ),
    "text": (web.Response(text="hello"), "failed to call webhook: couldn't get version/kind; json parse error"),
    "no response": (raw({}), "received invalid webhook response: webhook response was absent"),
    "another uid": ({"uid": "zz"}, 'received invalid webhook response: expected response.uid="'),
    "another version": (
        raw({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {}}),
        "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    ),
    "another kind": (
        raw({"apiVersion": "v1", "kind": "Pod"}),
        'failed to call webhook: no kind "Pod" is registered for version "v1" in scheme',
    ),
    "a patch": (
        {"patchType": "JSONPatch", "patch": "W10="},
        "received invalid webhook response: validating webhook may not return response.patch",
    ),
    "a patch type": (
        {"patchType": "JSONPatch"},
        "received invalid webhook response: validating webhook may not return response.patchType",
    ),
}


@pytest.mark.parametrize(("answer", "message"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_answer_that_cannot_be_used_refuses_the_write(
    cluster, server, answer: dict[str, Any] | web.StreamResponse, message: str
) -> None:
    cluster.hook(url=server.on("/bad", answer))
    error = await cluster.refusal()
    assert (error.code, error.reason) == (500, "InternalError")
    assert error.message.startswith(f"Internal error occurred: {FAILED}{message}")
    assert error.details == {"causes": [{"message": error.message.removeprefix("Internal error occurred: ")}]}


async def test_an_answer_that_cannot_be_used_is_ignored_where_the_policy_says_so(cluster, server) -> None:
    cluster.hook(url=server.on("/bad", web.Response(status=500)), failurePolicy="Ignore")
    await cluster.admit()
    assert len(server.asked) == 1


# dry run


async def test_a_dry_run_is_marked_in_the_review(cluster, server) -> None:
    cluster.hook(url=server.on("/ok", {}), sideEffects="NoneOnDryRun")
    await cluster.admit(dry_run=True)
    assert server.asked[0][2]["request"]["dryRun"] is True


async def test_a_webhook_with_side_effects_forbids_a_dry_run(cluster, server) -> None:
    cluster.hook(url=server.on("/ok", {}), sideEffects="Some")
    error = await cluster.refusal(dry_run=True)
    message = 'admission webhook "h.example.com" does not support dry run'
    assert (error.code, error.reason, error.message) == (400, "BadRequest", message)
    assert server.asked == []


# several at once


async def test_validating_webhooks_are_called_at_the_same_time(cluster, server) -> None:
    arrived = asyncio.Barrier(2)

    async def meet(review: dict[str, Any]) -> dict[str, Any]:
        await arrived.wait()
        return {}

    for name in ("a", "b"):
        cluster.hook(url=server.on(f"/{name}", meet), at=f"{name}.example.com")
    await cluster.admit()
    assert len(server.asked) == 2


async def test_the_first_of_several_denials_by_name_is_returned(cluster, server) -> None:
    for name in ("b", "a"):
        cluster.hook(url=server.on(f"/{name}", {"allowed": False}), at=f"{name}.example.com")
    assert 'webhook "a.example.com" denied' in (await cluster.refusal()).message
