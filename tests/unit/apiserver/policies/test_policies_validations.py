"""Validations of a policy and their effect on a write."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from nodeyard.apiserver.admission import conditions
from nodeyard.apiserver.admission.policies import evaluation
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.worker_thread import Work, WorkerThread


def rule(expression: str, **more: str) -> dict[str, Any]:
    return {"expression": expression, **more}


NO = rule("false", message="no")

# messages


async def test_a_write_that_holds_up_is_let_through(cluster) -> None:
    cluster.policy(rule("object.data.a == 'b'"))
    attributes = await cluster.judge()
    assert attributes.warnings == []


async def test_a_write_that_does_not_is_refused_as_invalid(cluster) -> None:
    cluster.policy(rule("object.data.a == 'c'", message="want c"))
    error = await cluster.refusal()
    denied = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: want c"
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message == f'configmaps "c" is forbidden: {denied}'
    assert error.details == {"name": "c", "kind": "configmaps", "causes": [{"message": denied}]}


@pytest.mark.parametrize(
    ("reason", "code"), [("Forbidden", 403), ("Unauthorized", 401), ("RequestEntityTooLarge", 413), ("Invalid", 422)]
)
async def test_a_validation_may_have_a_reason_of_its_own(cluster, reason: str, code: int) -> None:
    cluster.policy(rule("false", reason=reason))
    error = await cluster.refusal()
    assert (error.code, error.reason) == (code, reason)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        (rule(" object.data.a == 'c' "), "failed expression: object.data.a == 'c'"),
        (rule("false", message=" want c "), "want c"),
        (rule("false", message="want c", messageExpression="'got ' + object.data.a"), "got b"),
        (rule("false", message="want c", messageExpression="'got ' + object.data.zz"), "want c"),
        (rule("false", message="want c", messageExpression="'two\\nlines'"), "want c"),
        (rule("false", message="want c", messageExpression="'  '"), "want c"),
        (
            rule("object.data.nope == 'c'", message="want c"),
            "expression 'object.data.nope == 'c'' resulted in error: no such key: nope",
        ),
        (rule("oldObject != null"), "failed expression: oldObject != null"),
        (rule("request.operation == 'X'", messageExpression="request.userInfo.username"), "alice"),
        (
            rule("namespaceObject.metadata.labels.team == 'b'", messageExpression="namespaceObject.metadata.name"),
            "ns",
        ),
        (
            rule("request.subResource == ''"),
            "expression 'request.subResource == ''' resulted in error: no such key: subResource",
        ),
    ],
)
async def test_the_denial_has_the_message_of_the_validation(cluster, validation: dict[str, Any], message: str) -> None:
    cluster.policy(validation)
    assert await cluster.denial() == message


async def test_the_first_of_several_failures_is_returned(cluster) -> None:
    cluster.policy(rule("true"), rule("false", message="one"), rule("false", message="two"))
    assert await cluster.denial() == "one"


async def test_where_failure_is_ignored_only_a_false_validation_denies(cluster) -> None:
    cluster.policy(rule("object.data.nope == 'c'"), failurePolicy="Ignore")
    await cluster.judge()
    cluster.policy(rule("object.data.nope == 'c'"), NO, failurePolicy="Ignore")
    assert await cluster.denial() == "no"


async def test_a_name_still_to_be_generated_is_shown_by_its_beginning(cluster) -> None:
    cluster.policy(NO)
    error = await cluster.refusal(name="", object={"metadata": {"generateName": "web-"}})
    assert error.message.startswith('configmaps "web-" is forbidden: ')


# variables, conditions


async def test_variables_build_on_one_another(cluster) -> None:
    variables = [rule("object.data.a", name="x"), rule("variables.x + '!'", name="y")]
    cluster.policy(rule("variables.y == 'c'", messageExpression="'y is ' + variables.y"), variables=variables)
    assert await cluster.denial() == "y is b!"


async def test_a_variable_that_fails_is_named_where_it_is_used(cluster) -> None:
    variables = [rule("object.data.nope", name="x")]
    cluster.policy(rule("true"), variables=variables)
    await cluster.judge()
    cluster.policy(rule("variables.x == 'c'"), variables=variables)
    assert await cluster.denial() == (
        "expression 'variables.x == 'c'' resulted in error: composited variable \"x\" fails to evaluate: no such key: "
        "nope"
    )


async def test_a_policy_does_not_apply_where_its_conditions_do_not_hold(cluster) -> None:
    cluster.policy(NO, matchConditions=[rule("object.data.a == 'z'", name="z")])
    await cluster.judge()
    cluster.policy(NO, matchConditions=[rule("object.data.a == 'b'", name="z")])
    assert await cluster.denial() == "no"


async def test_a_condition_that_fails_refuses(cluster) -> None:
    cluster.policy(NO, matchConditions=[rule("object.data.nope == 'a'", name="z")])
    assert await cluster.denial() == "expression 'object.data.nope == 'a'' resulted in error: no such key: nope"


async def test_an_expression_that_never_compiled_fails_every_time(cluster) -> None:
    cluster.policy(rule("object.data.a =="))
    assert "resulted in error: compilation failed: " in await cluster.denial()


# actions


async def test_a_warning_lets_the_write_through(cluster) -> None:
    cluster.policy(NO, bind=False)
    cluster.bind(validationActions=["Warn", "Audit"])
    attributes = await cluster.judge()
    assert attributes.warnings == ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"]
    [failure] = json.loads(attributes.audit["validation.policy.admission.k8s.io/validation_failure"])
    assert failure == {
        "message": "no",
        "policy": "p",
        "binding": "b",
        "expressionIndex": 0,
        "validationActions": ["Warn", "Audit"],
    }


async def test_audit_annotations_are_collected(cluster) -> None:
    annotations = [
        {"key": "who", "valueExpression": "request.userInfo.username"},
        {"key": "none", "valueExpression": "null"},
        {"key": "empty", "valueExpression": "' '"},
    ]
    cluster.policy(rule("true"), auditAnnotations=annotations)
    cluster.bind(name="another")
    assert (await cluster.judge()).audit == {"p/who": "alice"}


async def test_an_annotation_that_fails_refuses_unless_failure_is_ignored(cluster) -> None:
    annotations = [{"key": "k", "valueExpression": "string(object.data.nope)"}]
    cluster.policy(rule("true"), auditAnnotations=annotations)
    assert "no such key: nope" in await cluster.denial()
    cluster.policy(rule("true"), auditAnnotations=annotations, failurePolicy="Ignore")
    assert (await cluster.judge()).audit == {}


# cost

LONG = "lists.range(300).all(i, lists.range(300).all(j, i + j >= 0))"
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


@pytest.fixture
def worker_thread() -> Iterator[WorkerThread]:
    thread = WorkerThread()
    yield thread
    thread.close()


async def test_a_costly_policy_is_evaluated_off_the_event_loop(cluster, worker_thread) -> None:
    cluster.policy(rule(f"{LONG} && object.data.a == 'c'", message="want c"))
    threads: list[str] = []
    work = worker_thread.work()
    run = work.run

    async def noted(is_large: bool, call: Callable[[], Any]) -> Any:
        return await run(is_large, lambda: threads.append(threading.current_thread().name) or call())

    with patch.object(Work, "run", lambda self, is_large, call: noted(is_large, call)):
        error = await cluster.refusal(work=work)

    assert error.message.endswith("denied request: want c")
    assert [name.startswith("apiserver-large") for name in threads] == [True]


async def test_a_policy_that_spends_its_budget_is_a_failure_of_the_policy(cluster, worker_thread, monkeypatch) -> None:
    monkeypatch.setattr(evaluation, "Budget", lambda: Budget(1_000_000))
    cluster.policy(rule(LONG), rule(LONG), rule("true"))
    error = await cluster.refusal(work=worker_thread.work())
    assert error.message.endswith(f"denied request: {OUT_OF_BUDGET}")

    cluster.policy(rule(LONG), rule(LONG), rule("true"), failurePolicy="Ignore")
    await cluster.judge(work=worker_thread.work())


async def test_match_conditions_have_a_budget(cluster, worker_thread, monkeypatch) -> None:
    monkeypatch.setattr(conditions, "PER_MATCH", 1_000_000)
    matching = [{"name": f"c{number}", "expression": LONG} for number in range(3)]
    cluster.policy(rule("true"), matchConditions=matching)
    error = await cluster.refusal(work=worker_thread.work())
    assert error.message.endswith(f"denied request: {OUT_OF_BUDGET}")
