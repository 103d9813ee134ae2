"""The time at which a key is requeued."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.builders.plans import action

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.runtime.reconcile.result import Ending, result_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def outcome(*results, retry_after=0.0):
    ref = ObjectRef(api_version="v1", kind="Node", name="n")
    actions = [action(str(number), object=ref) for number in range(len(results))]
    return Outcome(
        results=tuple(
            ActionResult(action=action, result=result, retry_after=retry_after)
            for action, result in zip(actions, results, strict=True)
        )
    )


def plan(requeue_after=None):
    wake_at = None if requeue_after is None else NOW + timedelta(seconds=requeue_after)
    return Plan(capability="c", key="k", wake_at=wake_at)


def judge(*results, requeue_after=None, retry_after=0.0):
    return result_of(plan(requeue_after), outcome(*results, retry_after=retry_after), NOW, 300.0)


@pytest.mark.parametrize(
    ("results", "ending"),
    [
        ((), Ending.SETTLED),
        ((Result.DONE, Result.DONE), Ending.SETTLED),
        ((Result.DONE, Result.CONFLICT), Ending.CONFLICT),
        ((Result.CONFLICT, Result.FAILED), Ending.FAILED),
        ((Result.UNKNOWN,), Ending.FAILED),
        ((Result.DENIED, Result.DONE), Ending.DENIED),
        ((Result.DENIED, Result.CONFLICT), Ending.CONFLICT),
        ((Result.HELD,), Ending.HELD),
        ((Result.FAILED, Result.SKIPPED), Ending.FAILED),
    ],
)
def test_the_worst_decides(results, ending):
    assert judge(*results).ending is ending


def test_a_denial_is_retried_slowly_or_at_wake_at():
    assert judge(Result.DENIED).requeue_after == 300
    assert judge(Result.DENIED, requeue_after=10).requeue_after == 10
    assert judge(Result.DENIED, requeue_after=1000).requeue_after == 300


def test_a_moment_that_is_over_is_now():
    assert judge(requeue_after=-5).requeue_after == 0


def test_retry_after_of_the_server_is_kept():
    assert judge(Result.FAILED, retry_after=7.0).retry_after == 7
