"""Every result of an action; a failure affects no other object."""

import msgspec
import pytest

from nodeyard.apply.outcome import Result
from nodeyard.client.resources import NODES
from nodeyard.client.transport import Response
from nodeyard.plan.model import ObjectRef, Verb, Write

from ...builders.plans import action, config_ref, node_ref, planned, pod_ref
from .worlds import patch, status

ZERO = "00000000-0000-0000-0000-000000000000"


def only(outcome):
    (result,) = outcome.results
    return result


async def test_an_object_that_has_moved_on_is_a_conflict(world):
    made = await world.node("n1")
    await world.client.patch(NODES, "n1", {"metadata": {"labels": {"theirs": "1"}}})
    write = patch(resource_version=made["metadata"]["resourceVersion"])
    result = only(await world.apply(planned((action("n1"), write))))
    assert result.result is Result.CONFLICT
    assert "has been modified" in result.message


@pytest.mark.parametrize("form", ["merge", "json", "apply", "delete"])
async def test_another_object_by_the_same_name_is_a_conflict(world, form):
    await world.node("n1", metadata={"name": "n1", "labels": {"a": "1"}})
    steps = {
        "merge": (Verb.PATCH, patch()),
        "json": (Verb.PATCH, patch([{"op": "remove", "path": "/metadata/labels/a"}], json_patch=True)),
        "apply": (Verb.APPLY, patch()),
        "delete": (Verb.DELETE, Write()),
    }
    verb, write = steps[form]
    result = only(await world.apply(planned((action("n1", verb, node_ref("n1", ZERO)), write))))
    assert result.result is Result.CONFLICT
    assert "a" in (await world.client.get(NODES, "n1"))["metadata"]["labels"]


async def test_a_real_servers_refusal_to_change_a_uid_is_a_conflict_too(world):
    await world.node("n1")
    cause = {"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "field is immutable"}
    answer = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "no", "details": {"causes": [cause]}}
    world.transport.watch_error["PATCH"] = [Response(422, {}, msgspec.json.encode(answer))]
    result = only(await world.apply(planned((action("n1", object=node_ref("n1", ZERO)), patch()))))
    assert result.result is Result.CONFLICT


async def test_an_object_that_is_gone_cannot_be_patched(world):
    result = only(await world.apply(planned((action("n1"), patch()))))
    assert (result.result, result.message) == (Result.CONFLICT, 'nodes "n1" not found')


async def test_a_policys_denial_names_the_policy(world):
    await world.policy("no-blue", "!('blue' in object.data)", "blue is out")
    write = Write(body={"data": {"blue": "1"}})
    result = only(await world.apply(planned((action("a", Verb.CREATE, config_ref("c")), write))))
    assert (result.result, result.denied_by) == (Result.DENIED, "no-blue")
    assert "blue is out" in result.message
    assert world.transport.count("POST") == 1


async def test_an_admission_denial_has_the_text_of_the_plan(world):
    await world.policy("no-blue", "!('blue' in object.data)", "blue is out")
    refused = action("a", Verb.CREATE, config_ref("c")), Write(body={"data": {"blue": "1"}})
    free = action("b", Verb.CREATE, config_ref("d")), Write(body={"data": {"red": "1"}})
    (blocked,) = (await world.apply(planned(refused, free))).denied
    assert (blocked.object, blocked.reason, blocked.facts.by) == (config_ref("c"), "AdmissionDenied", "no-blue")
    assert blocked.facts.text().startswith("admission denied the write (no-blue): ")


@pytest.mark.parametrize("code", [400, 403, 422, 429, 500])
async def test_a_webhooks_denial_is_one_whatever_its_code(world, code):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [
        status(code, message='admission webhook "guard.example.com" denied the request: no')
    ]
    result = only(await world.apply(planned((action("n1"), patch()))))
    assert (result.result, result.denied_by) == (Result.DENIED, "guard.example.com")
    assert world.transport.count("PATCH") == 1


async def test_an_invalid_object_fails_with_the_message_of_the_server(world):
    await world.node("n1")
    write = patch({"metadata": {"labels": {"a": "not valid!"}}})
    result = only(await world.apply(planned((action("n1"), write))))
    assert result.result is Result.FAILED
    assert "metadata.labels" in result.message
    assert world.transport.count("PATCH") == 1


async def test_a_request_forbidden_by_rbac_fails_and_is_no_denial(world):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(403, "Forbidden", 'nodes "n1" is forbidden: User "x" cannot patch')]
    result = only(await world.apply(planned((action("n1"), patch()))))
    assert (result.result, result.denied_by) == (Result.FAILED, "")


async def test_a_budget_that_refuses_an_eviction_is_quoted_and_is_no_overload(world):
    await world.node("n1")
    await world.pod("p", app="web")
    await world.budget("web", 0, app="web")
    result = only(await world.apply(planned((action("a", Verb.EVICT, pod_ref("p")), Write()))))
    assert result.result is Result.FAILED
    assert "web" in result.message
    assert "disruption budget" in result.message
    assert result.retry_after == 10
    assert world.transport.count("POST") == 1


async def test_an_eviction_rejected_by_flow_control_is_retried(world):
    await world.node("n1")
    await world.pod("p")
    world.transport.watch_error["POST"] = [status(429, "TooManyRequests", retry_after=1)]
    result = only(await world.apply(planned((action("a", Verb.EVICT, pod_ref("p")), Write()))))
    assert result.result is Result.DONE
    assert world.transport.count("POST") == 2


async def test_a_kind_that_is_not_served_fails(world):
    ref = ObjectRef(api_version="example.com/v1", kind="Gone", name="g")
    result = only(await world.apply(planned((action("a", object=ref), patch()))))
    assert result.result is Result.FAILED
    assert "does not serve Gone of example.com/v1" in result.message
    assert world.transport.sent == []


async def test_one_failing_object_never_stops_the_others(world):
    for name in ("n1", "n3"):
        await world.node(name)
    broken = action("broken", Verb.CREATE, config_ref("c")), Write(body="no object at all")
    missing = action("n2"), patch()
    outcome = await world.apply(planned((action("n1"), patch()), missing, broken, (action("n3"), patch())))
    results = {each.action.id: each.result for each in outcome.results}
    assert results == {
        "n1": Result.DONE,
        "n2": Result.CONFLICT,
        "broken": Result.FAILED,
        "n3": Result.DONE,
    }
    assert not outcome.is_complete


async def test_a_plan_without_actions_is_complete(world):
    assert (await world.apply(planned())).results == ()
