"""Responses of one webhook in every case."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.builders.nested_json import with_nested
from tests.builders.reviews import question
from tests.builders.rule_webhooks import guarded, mutating, validating

from nodeyard.admission import review_codec
from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.admission.reviewer import MAX_LOOKUPS, MAX_ROUNDS, Reviewer
from nodeyard.kube.objects import ObjectMeta, PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.webhooks import (
    Cause,
    Found,
    Lookup,
    Missing,
    Unreadable,
    Webhook,
    WebhookRule,
    allowed,
    denied,
)


@dataclass
class Controlled:
    capability: Any
    view: Any = None
    is_synced: bool = True
    told: list[Any] = field(default_factory=list)

    def record_review(self, review, response):
        self.told.append((review, response))


class Searched:
    """Fake lookups with given results; records the deadlines."""

    def __init__(self, **found):
        self.found, self.asked, self.deadlines, self.trials = found, [], [], []

    async def find(self, refs, deadline, *, is_trial=False):
        self.trials.append(is_trial)
        self.asked.append([ref.name for ref in refs])
        self.deadlines.append(deadline)
        return {ref: self.found.get(ref.name, Missing()) for ref in refs}


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def ask(metrics):
    def ask(webhook, body=None, *, is_synced=True, **spec):
        controlled = Controlled(guarded(webhook), is_synced=is_synced)
        reviewer = Reviewer(controlled, webhook, AdmissionMetrics(metrics), Searched())
        return reviewer.answer(question(object={"spec": spec}) if body is None else body)

    return ask


@pytest.fixture
def counted(metrics):
    """Return how often an outcome was counted."""

    def count(response, webhook="rules"):
        labels = {"webhook": f"{webhook}.labels.nodeyard.dev", "response": response}
        return metrics.registry.get_sample_value("nodeyard_webhook_reviews_total", labels)

    return count


def response(answer):
    assert answer.status == 200
    return json.loads(answer.body)["response"]


@pytest.mark.parametrize(
    ("webhook", "team", "outcome"),
    [
        (validating(), "blue", "allowed"),
        (validating(), "forbidden", "denied"),
        (mutating(), "", "patched"),
        (mutating(), "blue", "allowed"),
    ],
    ids=["allowed", "denied", "patched", "complete"],
)
def test_each_response_is_counted_and_timed(ask, counted, metrics, webhook, team, outcome):
    response(ask(webhook, team=team))

    assert counted(outcome, webhook.name) == 1
    name = {"webhook": webhook.full_name("labels")}
    assert metrics.registry.get_sample_value("nodeyard_webhook_review_seconds_count", name) == 1


def test_a_review_that_raises_is_answered_with_the_error(ask, counted):
    answer = ask(validating(), team="broken")

    assert answer.status == 500
    assert answer.body == b"rules.labels.nodeyard.dev: ValueError: the reviewer cannot bear this team"
    assert counted("error") == 1


def test_a_response_that_cannot_be_encoded_is_an_error_too(ask, counted):
    assert ask(mutating(), question(object={"spec": None})).status == 500
    assert counted("error", "teams") == 1


def test_a_body_that_is_no_review_is_a_bad_request(ask, counted):
    answer = ask(validating(), b"{}")

    assert answer.status == 400
    assert b"AdmissionReview" in answer.body
    assert counted("malformed") == 1


def test_before_the_caches_are_synced_it_answers_as_its_failure_policy_says(ask, counted):
    ignored = response(ask(validating(), is_synced=False, team="forbidden"))
    assert ignored["allowed"]
    assert "not checked" in ignored["warnings"][0]
    assert counted("not_synced") == 1


def test_before_the_caches_are_synced_a_webhook_with_failure_policy_fail_denies(ask):
    failed = response(ask(validating(failure_policy="Fail"), is_synced=False, team="blue"))

    assert not failed["allowed"]
    assert (failed["status"]["code"], failed["status"]["reason"]) == (503, "ServiceUnavailable")


# lookups


@pytest.fixture
def searched():
    return Searched()


@pytest.fixture
def controlled():
    return Controlled(guarded(validating()))


@pytest.fixture
def look(metrics, searched, controlled):
    """Call a webhook with this review function; return the response."""

    async def look(review, **request):
        webhook = Webhook("rules", rules=(WebhookRule("labels.test", ("labelrules",)),), review=review)
        answer = Reviewer(controlled, webhook, AdmissionMetrics(metrics), searched).answer(question(**request))
        return answer if not asyncio.iscoroutine(answer) else await answer

    return look


def ref(name):
    return ObjectRef(api_version="v1", kind="ConfigMap", namespace="shop", name=name)


def found(name):
    return Found(PartialObject(metadata=ObjectMeta(name=name)))


async def test_a_review_runs_again_with_its_lookups(look, searched):
    searched.found = {"a": found("a")}

    def judge(review, _view):
        if ref("a") not in review.answers:
            return Lookup((ref("a"),))
        if ref("b") not in review.answers:
            return Lookup((ref("a"), ref("b"), ref("b")))
        return denied(f"{review.answers[ref('a')].object.metadata.name} and {type(review.answers[ref('b')]).__name__}")

    answer = response(await look(judge))

    assert answer["status"]["message"] == "a and Missing"
    assert searched.asked == [["a"], ["b"]]


async def test_all_rounds_together_end_well_before_the_api_server_gives_up(look, searched):
    began = asyncio.get_running_loop().time()

    await look(
        lambda review, _view: allowed() if len(review.answers) > 1 else Lookup((ref(f"r{len(review.answers)}"),))
    )

    assert searched.deadlines[0] == searched.deadlines[1]
    assert 3 < searched.deadlines[0] - began < 4.5


async def test_lookups_are_counted_by_what_became_of_them(look, searched, metrics):
    searched.found = {"a": found("a"), "c": Unreadable("no right", Cause.FORBIDDEN)}

    await look(lambda review, _view: allowed() if review.answers else Lookup((ref("a"), ref("b"), ref("c"))))

    counts = {
        result: metrics.registry.get_sample_value(
            "nodeyard_webhook_lookups_total", {"webhook": "rules.labels.nodeyard.dev", "result": result}
        )
        for result in ("found", "missing", "forbidden")
    }
    assert counts == {"found": 1, "missing": 1, "forbidden": 1}


async def test_an_object_with_very_many_owners_does_not_make_as_many_requests(look, searched):
    def judged(review, _view):
        if not review.answers:
            return Lookup(tuple(ref(f"r{number}") for number in range(MAX_LOOKUPS + 5)))
        return allowed(*[each.reason for each in review.answers.values() if isinstance(each, Unreadable)])

    answer = response(await look(judged))

    assert [len(each) for each in searched.asked] == [MAX_LOOKUPS]
    assert answer["warnings"] == [f"not looked up: the review needs more than {MAX_LOOKUPS} objects"] * 5


@pytest.mark.parametrize(
    ("judge", "text"),
    [
        (lambda _review, _view: Lookup((ref("a"),)), b"looks up ConfigMap shop/a again"),
        (
            lambda review, _view: Lookup((ref(f"r{len(review.answers)}"),)),
            f"has not decided after {MAX_ROUNDS} rounds".encode(),
        ),
        (lambda review, _view: 1 / 0 if review.answers else Lookup((ref("a"),)), b"ZeroDivisionError"),
    ],
    ids=["the same again", "without end", "raises"],
)
async def test_a_review_that_does_not_come_to_an_end_is_an_error(look, counted, judge, text):
    answer = await look(judge)

    assert answer.status == 500
    assert text in answer.body
    assert counted("error") == 1


# metrics, events and logs


async def test_a_response_is_recorded_by_the_capability_with_the_final_review(look, controlled):
    response = allowed().with_facts(decision="unknown")

    await look(lambda review, _view: response if review.answers else Lookup((ref("a"),)))

    ((review, told),) = controlled.told
    assert told is response
    assert review.answers == {ref("a"): Missing()}


@pytest.mark.parametrize(("is_dry", "told"), [(True, 0), (False, 1)], ids=["a dry run", "in earnest"])
async def test_a_dry_run_is_not_recorded_and_its_lookups_are_trial_lookups(look, controlled, searched, is_dry, told):
    await look(lambda review, _view: allowed() if review.answers else Lookup((ref("a"),)), dryRun=is_dry)

    assert (len(controlled.told), searched.trials) == (told, [is_dry])


async def test_an_error_while_recording_does_not_change_the_response(look, controlled, monkeypatch):
    monkeypatch.setattr(controlled, "record_review", lambda _review, _response: 1 / 0)

    assert response(await look(lambda _review, _view: allowed()))["allowed"]


async def test_a_deeply_nested_object_is_denied_with_the_remedy(ask, counted):
    body = with_nested(question(name="a", namespace="ns", object={"spec": "NESTED"}), 5_000)

    answer = response(await ask(validating(), body))

    assert (answer["allowed"], answer["status"]["code"], answer["status"]["reason"]) == (False, 422, "Invalid")
    assert answer["status"]["message"].startswith("LabelRule ns/a: it is nested more than 500 levels deep")
    assert "reduce the nesting" in answer["status"]["message"]
    assert counted("denied") == 1


async def test_endless_nesting_delays_no_other_review(ask, counted):
    body = question(object={"spec": "X"}).replace(b'"X"', b"[" * 200_000)
    longest = 0.0

    async def tick():
        nonlocal longest
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - began)

    ticking = asyncio.create_task(tick())
    answer = await ask(validating(), body)
    ticking.cancel()

    assert answer.status == 400
    assert counted("malformed") == 1
    assert longest > 0, "the loop ran meanwhile"


def test_a_review_that_decodes_too_slowly_is_refused_at_once(ask):
    lists = b"[" + b"[]," * review_codec.MAX_CONTAINERS + b"[]]"

    answer = ask(validating(), question(object={"spec": "X"}).replace(b'"X"', lists))

    assert (answer.status, answer.body) == (413, b"the review has more than 250000 lists and objects")
