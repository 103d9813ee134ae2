"""Webhooks of a capability, called by the API server over TLS, on both servers."""

import json

import pytest
from tests.builders import labels
from tests.builders.reviews import question
from tests.builders.rule_webhooks import (
    GUARDED,
    MUTATING,
    NAME,
    RULES,
    VALIDATING,
    ask,
    discard,
    discard_webhooks,
    guarded,
    registered_path,
    validating,
)

from nodeyard.testing.operators import LOCAL_WEBHOOKS
from nodeyard.testing.rest import RestError


@pytest.fixture
def registrations(api):
    """Delete the webhooks after the test. Request it before `operator`, which would restore them."""
    yield
    discard_webhooks(api.rest)


@pytest.fixture
def rules(api):
    """LabelRules of this test; deleted after it."""
    made = []

    def create(name, team=None):
        made.append(name)
        spec = {} if team is None else {"team": team}
        body = {"apiVersion": labels.API_VERSION, "kind": "LabelRule", "metadata": {"name": name}, "spec": spec}
        return api.rest.call("POST", RULES, body)

    yield create
    discard(api.rest, *(f"{RULES}/{name}" for name in made))


@pytest.fixture
def guard(registrations, operator, rules, api, eventually):
    """Start an operator with webhooks, and wait until the API server calls each of them."""

    def start(capability=GUARDED, **options):
        running = operator(capability, webhooks=LOCAL_WEBHOOKS, **options)
        eventually(lambda: is_asked(api, running, capability), "the API server asks")
        return running

    return start


def is_asked(api, running, capability=GUARDED):
    def counts():
        names = [each.full_name(capability.name) for each in capability.admission.webhooks]
        return [running.metric("nodeyard_webhook_reviews_total", webhook=name) for name in names]

    before = counts()
    body = {"apiVersion": labels.API_VERSION, "kind": "LabelRule", "metadata": {"name": "probe"}, "spec": {"team": "a"}}
    api.rest.call("POST", f"{RULES}?dryRun=All", body)
    return all(after > known for after, known in zip(counts(), before, strict=True))


MANIFEST = """
apiVersion: labels.test/v1
kind: LabelRule
metadata: {{name: {name}}}
spec: {{team: {team}}}
"""


def test_kubectl_shows_the_message_of_a_denial(guard, kubectl):
    running = guard()

    done = kubectl("apply", "-f", "-", stdin=MANIFEST.format(name="bad", team="forbidden"), check=False)

    assert done.returncode == 1
    assert (
        'admission webhook "rules.labels.nodeyard.dev" denied the request: '
        'LabelRule bad: spec.team: "forbidden" is not a team; choose another'
    ) in done.stderr
    assert running.metric("nodeyard_webhook_reviews_total", response="denied") == 1


def test_kubectl_shows_a_warning_and_the_object_is_stored(guard, kubectl, rules):
    guard()
    rules("odd-one", "blue")

    done = kubectl("patch", "labelrule", "odd-one", "--type=merge", "-p", '{"spec": {"team": "odd"}}')

    assert "Warning: spec.team: odd is an odd team" in done.stderr
    assert kubectl("get", "labelrule", "odd-one", "-o", "jsonpath={.spec.team}").stdout == "odd"


def test_a_mutating_webhook_completes_what_is_stored(guard, rules):
    guard()

    assert rules("empty")["spec"] == {"team": "unset"}


def test_a_review_reads_the_caches(guard, rules, api, eventually):
    guard()
    rules("full", "crowded")
    api.rest.create({"apiVersion": "v1", "kind": "Node", **labels.node("guarded-1", "full")})

    def is_refused():
        try:
            api.rest.call("DELETE", f"{RULES}/full?dryRun=All")
        except RestError as error:
            return error.message
        return ""

    message = eventually(is_refused, "the deletion is denied")

    assert message == 'admission webhook "rules.labels.nodeyard.dev" denied the request: 1 nodes follow full'
    api.rest.call("DELETE", "/api/v1/nodes/guarded-1")
    eventually(lambda: not is_refused(), "the deletion is admitted")


def test_a_review_that_raises_is_ignored_or_fails_as_the_webhook_says(guard, rules):
    running = guard()
    assert rules("ignored", "broken")["spec"] == {"team": "broken"}
    running.stop()
    running = guard(guarded(validating(failure_policy="Fail")))

    with pytest.raises(RestError) as refused:
        rules("failed", "broken")

    assert refused.value.status == 500
    assert "rules.labels.nodeyard.dev: ValueError: the reviewer cannot bear this team" in refused.value.message
    assert running.metric("nodeyard_webhook_reviews_total", response="error") == 1


def test_a_follower_answers_and_is_registered_once_it_leads(guard, operator, rules, api, eventually):
    leader = guard(identity="leader").wait_until_leading()
    follower = operator(GUARDED, webhooks=LOCAL_WEBHOOKS, identity="follower")
    eventually(lambda: served(api) == {leader.ports["webhooks"]}, "the leader is registered")
    assert not follower.leads
    assert "is not a team" in asked_directly(api, follower, team="forbidden")["status"]["message"]
    leader.stop()
    eventually(lambda: served(api) == {follower.ports["webhooks"]}, "the follower is registered")
    eventually(lambda: is_asked(api, follower), "the API server asks the follower")

    with pytest.raises(RestError, match="is not a team"):
        rules("bad", "forbidden")


def asked_directly(api, running, **spec):
    status, answer = ask(running.ports["webhooks"], registered_path(api.rest), question(object={"spec": spec}))
    assert status == 200
    return json.loads(answer)["response"]


def test_a_request_to_an_unregistered_path_is_not_found_and_not_counted(guard, api):
    running = guard()
    port = running.ports["webhooks"]
    before = running.metric("nodeyard_webhook_reviews_total")
    forged = question(object={"spec": {"team": "forbidden"}})
    for path in ("/validate/labels/rules", "/validate/labels/rules/guessed", "/mutate/labels/teams"):
        assert ask(port, path, forged) == (404, b"not found")
    assert running.metric("nodeyard_webhook_reviews_total") == before

    assert "is not a team" in asked_directly(api, running, team="forbidden")["status"]["message"]


def served(api):
    """Return the ports in the registered URLs."""
    entries = api.rest.get(f"{VALIDATING}/{NAME}")["webhooks"] + api.rest.get(f"{MUTATING}/{NAME}")["webhooks"]
    return {int(entry["clientConfig"]["url"].split(":")[2].split("/")[0]) for entry in entries}
