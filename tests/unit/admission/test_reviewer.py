"""One webhook answers in every case."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from tests.builders.guards import guarded, mutating, validating
from tests.builders.reviews import question

from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.admission.reviewer import Reviewer
from nodeyard.process.metrics import Metrics


@dataclass
class Controlled:
    capability: Any
    view: Any = None
    is_synced: bool = True


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def ask(metrics):
    def ask(webhook, body=None, *, is_synced=True, **spec):
        reviewer = Reviewer(Controlled(guarded(webhook), is_synced=is_synced), webhook, AdmissionMetrics(metrics))
        return reviewer.answer(question(object={"spec": spec}) if body is None else body)

    return ask


@pytest.fixture
def counted(metrics):
    """How often a verdict was given."""

    def count(verdict, webhook="rules"):
        labels = {"webhook": f"{webhook}.labels.nodeyard.dev", "verdict": verdict}
        return metrics.registry.get_sample_value("nodeyard_webhook_reviews_total", labels)

    return count


def response(answer):
    assert answer.status == 200
    return json.loads(answer.body)["response"]


@pytest.mark.parametrize(
    ("webhook", "team", "verdict"),
    [
        (validating(), "blue", "allowed"),
        (validating(), "forbidden", "denied"),
        (mutating(), "", "patched"),
        (mutating(), "blue", "allowed"),
    ],
    ids=["allowed", "denied", "patched", "complete"],
)
def test_each_verdict_is_counted_and_timed(ask, counted, metrics, webhook, team, verdict):
    response(ask(webhook, team=team))

    assert counted(verdict, webhook.name) == 1
    name = {"webhook": webhook.full_name("labels")}
    assert metrics.registry.get_sample_value("nodeyard_webhook_review_seconds_count", name) == 1


def test_a_review_that_raises_is_answered_with_the_error(ask, counted):
    answer = ask(validating(), team="broken")

    assert answer.status == 500
    assert answer.body == b"rules.labels.nodeyard.dev: ValueError: the reviewer cannot bear this team"
    assert counted("error") == 1


def test_a_verdict_that_cannot_be_written_is_an_error_too(ask, counted):
    assert ask(mutating(), question(object={"spec": None})).status == 500
    assert counted("error", "teams") == 1


def test_what_is_no_review_is_a_bad_request(ask, counted):
    answer = ask(validating(), b"{}")

    assert answer.status == 400
    assert b"AdmissionReview" in answer.body
    assert counted("malformed") == 1


def test_before_the_caches_are_full_it_answers_as_its_failure_policy_says(ask, counted):
    ignored = response(ask(validating(), is_synced=False, team="forbidden"))
    assert ignored["allowed"]
    assert "not checked" in ignored["warnings"][0]
    assert counted("not_synced") == 1


def test_before_the_caches_are_full_a_webhook_that_must_not_be_missed_denies(ask):
    failed = response(ask(validating(failure_policy="Fail"), is_synced=False, team="blue"))

    assert not failed["allowed"]
    assert (failed["status"]["code"], failed["status"]["reason"]) == (503, "ServiceUnavailable")
