"""One review registered twice, with Fail for tenants and Ignore elsewhere, under faults; on both servers."""

import http.client
import itertools
import ssl
from base64 import b64decode
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from tests.builders import labels
from tests.builders.background_load import Load
from tests.builders.reviews import question
from tests.builders.rule_webhooks import NAME, SECRET, VALIDATING, discard, discard_webhooks, look

from nodeyard.admission.certificates import RotationPolicy
from nodeyard.runtime.capability import Admission
from nodeyard.runtime.webhooks import MatchCondition, Webhook, WebhookRule, allowed, denied
from nodeyard.testing.operators import LOCAL_WEBHOOKS
from nodeyard.testing.rest import RestError

MAPS = "/api/v1/namespaces/{}/configmaps"
LABEL = "faults.test/asked"
TENANT, OTHER = "tenant-faults-{}", "faults-other-{}"
_numbers = itertools.count(1)
RESTLESS = RotationPolicy(
    valid=timedelta(days=90), renew_before=timedelta(days=90) - timedelta(seconds=4), interval=0.2, settle=2.0
)
"""Rotate certificates every few seconds, slowly enough for clients that connect with the previous bundle."""


def judge(review, _view):
    is_bad = review.object.get("data", {}).get("bad") == "yes"
    return denied(f"{review.namespace}/{review.name} is bad") if is_bad else allowed()


def entry(name, policy, condition):
    rule = WebhookRule("", ("configmaps",), operations=("CREATE",))
    return Webhook(
        name,
        rules=(rule,),
        review=judge,
        failure_policy=policy,
        object_selector={"matchLabels": {LABEL: "yes"}},
        match_conditions=(MatchCondition("tenants", condition),),
    )


IS_TENANT = 'request.namespace.startsWith("tenant-")'
PAIR = replace(
    labels.LABELS,
    admission=Admission((entry("maps-tenants", "Fail", IS_TENANT), entry("maps", "Ignore", f"!{IS_TENANT}"))),
)


def a_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {LABEL: "yes"}}, "data": data}


class Place:
    """Namespaces of one test: a tenant's, and another."""

    def __init__(self, rest):
        self._rest = rest
        self._number = next(_numbers)

    def name(self, namespace):
        return namespace.format(self._number)

    def write(self, namespace, name="a", **data):
        """Return the refusal, or None."""
        try:
            self._rest.call("POST", f"{MAPS.format(self.name(namespace))}?dryRun=All", a_map(name, **data))
        except RestError as error:
            return error.message
        return ""


@pytest.fixture
def place(api):
    discard_webhooks(api.rest)
    place = Place(api.rest)
    names = [place.name(each) for each in (TENANT, OTHER)]
    for name in names:
        api.rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield place
    discard_webhooks(api.rest)
    discard(api.rest, SECRET, *(f"/api/v1/namespaces/{name}" for name in names))


@pytest.fixture
def start(operator, place, eventually):
    def start(rotation=LOCAL_WEBHOOKS.rotation, **options):
        return operator(PAIR, webhooks=replace(LOCAL_WEBHOOKS, rotation=rotation), **options)

    return start


@pytest.fixture
def asked(place, eventually):
    """Wait until the API server calls both entries."""

    def wait():
        for namespace in (TENANT, OTHER):
            eventually(
                lambda place_=namespace: "is bad" in place.write(place_, bad="yes"), f"{namespace} is asked about"
            )

    return wait


def test_each_request_is_reviewed_once_by_the_matching_webhook(start, asked, place):
    running = start()
    asked()
    counts = [
        running.metric("nodeyard_webhook_reviews_total", webhook=f"{name}.labels.nodeyard.dev", response="allowed")
        for name in ("maps-tenants", "maps")
    ]

    assert (place.write(TENANT), place.write(OTHER)) == ("", "")

    assert [
        running.metric("nodeyard_webhook_reviews_total", webhook=f"{name}.labels.nodeyard.dev", response="allowed")
        for name in ("maps-tenants", "maps")
    ] == [count + 1 for count in counts]


def test_with_no_replica_left_what_must_not_be_missed_is_refused_and_the_rest_admitted(start, asked, place, eventually):
    running = start()
    asked()

    running.stop()

    refused = place.write(TENANT)
    assert 'failed calling webhook "maps-tenants.labels.nodeyard.dev"' in refused
    assert place.write(OTHER, bad="yes") == ""
    assert place.write("kube-system", bad="yes") == ""
    start()
    eventually(lambda: place.write(TENANT) == "", "it is asked again")


def test_another_replica_answers_when_one_stops(start, asked, place, eventually):
    first = start(identity="first").wait_until_leading()
    asked()
    second = start(identity="second")

    first.stop()
    eventually(lambda: second.leads, "the second takes over")

    eventually(lambda: "is bad" in place.write(TENANT, bad="yes"), "the second is asked")


def test_certificates_rotate_under_load_and_no_call_fails(api, start, asked, place, eventually):
    """Calls of the API server, which keeps its connections, and of clients that open a new one for each call and trust
    the bundle registered just before; to the leader and to a follower."""
    leader, follower = start(RESTLESS, identity="leader").wait_until_leading(), start(RESTLESS, identity="follower")
    asked()
    load = Load()
    for _ in range(4):
        load.repeat(lambda: place.write(TENANT))
    for running in (leader, follower):
        load.repeat(lambda port=running.ports["webhooks"]: connect(port, registered(api)))

    with load:
        seen = set()
        eventually(lambda: len(seen.add(stored(api)) or seen) >= 4, "three rotations", timeout=60)

    assert load.faults == []
    assert min(load.counts) > 5


def registered(api):
    (tenants, _) = look(api.rest, f"{VALIDATING}/{NAME}")["webhooks"]
    client = tenants["clientConfig"]
    return b64decode(client["caBundle"]).decode(), urlsplit(client["url"]).path


def connect(port, registered):
    """Open a connection that trusts the bundle and call its registered path; return the error, or an empty text."""
    trusted, path = registered
    context = ssl.create_default_context(cadata=trusted)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
    try:
        connection.request("POST", path, question(object=a_map("a"), dryRun=True))
        answer = connection.getresponse()
        answer.read()
        return "" if answer.status == 200 else f"answered {answer.status}"
    finally:
        connection.close()


def stored(api):
    return api.rest.get(SECRET)["data"]["tls.crt"]
