"""Reviews that need uncached objects: lookups, watches on their kinds from then on, and missing rights."""

import itertools
import json
from dataclasses import replace

import pytest
from tests.builders import declared_kinds, owner_lookup
from tests.builders.reviews import question as posed
from tests.builders.rule_webhooks import MUTATING, VALIDATING, ask, discard, look, registered_path

from nodeyard.process.certificates import Authority
from nodeyard.runtime import rbac
from nodeyard.testing import third_party_crds
from nodeyard.testing.faults import HalfOpen, Status
from nodeyard.testing.operators import LOCAL_WEBHOOKS
from nodeyard.testing.rest import RestError

MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
READING = ("get", "list", "watch")
_numbers = itertools.count(1)


class Family:
    """A kind of one test: its objects, the rights on it, and reviews that look them up."""

    def __init__(self, api, eventually):
        self.rest, self.eventually = api.rest, eventually
        number = next(_numbers)
        self.group, self.kind, self.plural = f"kin{number}.test", f"Widget{number}", f"widget{number}s"
        self._role = f"kinships-{number}"
        self._names = itertools.count(1)

    def define(self, scope="Namespaced"):
        self._scope = scope
        third_party_crds.install(self.rest, [declared_kinds.custom(f"{self.plural}.{self.group}", self.kind, scope)])

    def add(self, name, *owners):
        place = {} if self._scope == "Cluster" else {"namespace": "default"}
        metadata = {"name": name, **place, "ownerReferences": [owner_lookup.reference(owner) for owner in owners]}
        return self.rest.create({**self.named(name), "metadata": metadata})

    def named(self, name):
        """Return a reference to an object that may not exist."""
        return {"apiVersion": f"{self.group}/v1", "kind": self.kind, "metadata": {"name": name}}

    def remove(self, name):
        self.rest.call("DELETE", f"/apis/{self.group}/v1/namespaces/default/{self.plural}/{name}")

    def allow(self, *verbs):
        label = rbac.aggregation_label(owner_lookup.KINSHIPS)
        rule = {"apiGroups": [self.group], "resources": [self.plural], "verbs": list(verbs)}
        metadata = {"name": self._role, "labels": {label: "true"}}
        api_version = "rbac.authorization.k8s.io/v1"
        role = {"apiVersion": api_version, "kind": "ClusterRole", "metadata": metadata, "rules": [rule]}
        self.rest.replace_or_create(role)

    def ask(self, *owners, query=""):
        """Return the webhook's answer about an object with these owners."""
        body = owner_lookup.question(f"ask-{next(self._names)}", *owners)
        try:
            self.rest.call("POST", f"{MAPS}{query}", body)
        except RestError as error:
            return error.message.partition("denied the request: ")[2] or error.message
        return ""

    def until_told(self, text, *owners):
        return self.eventually(lambda: text in (said := self.ask(*owners)) and said, f"the answer has {text!r}", 60)

    def events(self, name):
        listed = self.rest.get(EVENTS)["items"]
        return [
            each
            for each in listed
            if (each["regarding"].get("kind"), each["regarding"].get("name")) == (self.kind, name)
        ]

    def close(self):
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        discard(self.rest, f"{crds}/{self.plural}.{self.group}")
        discard(self.rest, f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{self._role}")


@pytest.fixture
def family(api, eventually):
    family = Family(api, eventually)
    yield family
    family.close()


@pytest.fixture
def start(api, operator, eventually):
    """An operator with registered webhooks. Rights are granted late, so refused requests are no fault."""

    def start(**options):
        rules = rbac.rules(owner_lookup.KINSHIPS, installs_crds=True)
        running = operator(owner_lookup.KINSHIPS, webhooks=LOCAL_WEBHOOKS, rules=rules, **options)
        eventually(lambda: look(api.rest, f"{VALIDATING}/{owner_lookup.NAME}"), "it is registered")
        nobody = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nobody"}}
        eventually(lambda: is_refused(api, owner_lookup.question("probe", nobody)), "the API server asks")
        return running

    yield start
    discard(api.rest, f"{VALIDATING}/{owner_lookup.NAME}", f"{MUTATING}/{owner_lookup.NAME}")


def is_refused(api, body):
    try:
        api.rest.call("POST", f"{MAPS}?dryRun=All", body)
    except RestError as error:
        return "denied the request" in error.message
    return False


def lookups(running, result):
    return running.metric("nodeyard_webhook_lookups_total", webhook=owner_lookup.WEBHOOK, result=result)


def test_owners_of_a_kind_installed_after_us_are_found_and_watched_from_then_on(family, start):
    running = start()
    family.define()
    family.allow(*READING)
    grandparent = family.add("grandparent")
    parent = family.add("parent", grandparent)

    told = family.until_told("grandparent (cached)", parent)

    assert lookups(running, "found") > 0
    assert told == f"{family.kind} parent (cached) < {family.kind} grandparent (cached)"
    assert running.metric("nodeyard_informer_synced", resource=f"{family.plural}.{family.group}") == 1
    before = running.metric("nodeyard_webhook_lookups_total")
    assert "live" not in family.ask(parent)
    assert running.metric("nodeyard_webhook_lookups_total") == before


def test_a_missing_owner_is_looked_up_each_time_so_a_new_one_is_found(family, start):
    running = start()
    family.define()
    family.allow(*READING)
    family.until_told("missing", family.named("a"))
    before = lookups(running, "missing")
    assert "missing" in family.ask(family.named("a"))
    assert lookups(running, "missing") == before + 1

    owner = family.add("a")

    assert family.ask(owner) in (f"{family.kind} a (live)", f"{family.kind} a (cached)")


def test_a_recreated_owner_is_not_the_referenced_one(family, start):
    start()
    family.define()
    family.allow(*READING)
    first = family.add("a")
    family.until_told("cached", first)

    family.remove("a")
    family.add("a")

    # The deleted object is known until the watch delivers its deletion.
    assert family.until_told("replaced", first) == f"{family.kind} a (replaced)"


def test_an_owner_without_a_namespace_is_found(family, start):
    start()
    family.define("Cluster")
    family.allow(*READING)

    assert family.until_told("cached", family.add("a"))


def test_a_missing_right_is_named_with_its_remedy_and_used_once_granted(family, start):
    running = start()
    family.define()
    owner = family.add("a")
    before = lookups(running, "forbidden")

    said = family.ask(owner)

    assert f"may not get {family.plural}.{family.group}: " in said
    assert f'cannot get resource "{family.plural}" in API group "{family.group}"' in said
    assert 'with the label rbac.nodeyard.dev/aggregate-to-kinships: "true"' in said
    assert lookups(running, "forbidden") == before + 1
    family.allow(*READING)
    family.until_told("cached", owner)


def test_a_kind_that_may_be_read_but_not_watched_is_read_each_time_and_the_error_is_reported(family, start):
    running = start()
    family.define()
    family.allow("get")
    owner = family.add("a")

    said = family.until_told("(live, cannot ", owner)

    assert said.startswith(f"{family.kind} a (live, cannot ")
    assert f"{family.plural}.{family.group}: forbidden" in said
    asked = {"resource": f"{family.plural}.{family.group}", "code": "403"}
    assert sum(running.metric("nodeyard_client_requests_total", verb=verb, **asked) for verb in ("list", "watch")) < 10
    running.ready()


def test_an_uninstalled_kind_is_reported_as_not_served(family, start):
    start()

    assert family.ask(family.named("a")) == (
        f"{family.kind} a (the server does not serve {family.kind} in {family.group}/v1)"
    )


def test_a_dry_run_leaves_no_trace(family, start):
    running = start()
    family.define()
    family.allow(*READING)
    tried, asked = family.add("tried"), family.add("asked")
    family.eventually(lambda: "(live)" in family.ask(tried, query="?dryRun=All"), "it may be read", 60)

    assert running.metric("nodeyard_kinships_asked_total") == 0
    assert family.ask(asked)
    assert running.metric("nodeyard_kinships_asked_total") > 0
    family.eventually(lambda: family.events("asked"), "what was asked in earnest is told")
    assert family.events("tried") == []


def test_a_follower_records_metrics_and_events_of_its_reviews(api, family, start, operator):
    start(identity="leader").wait_until_leading()
    rules = rbac.rules(owner_lookup.KINSHIPS, installs_crds=True)
    follower = operator(owner_lookup.KINSHIPS, webhooks=LOCAL_WEBHOOKS, rules=rules, identity="follower")
    assert not follower.leads
    family.define()
    owner = family.add("a")

    asked_directly(follower, registered_path(api.rest, "kinships"), owner_lookup.question("by-follower", owner))

    assert follower.metric("nodeyard_kinships_asked_total") == 1
    follower.stop()
    (event,) = family.events("a")
    assert (event["note"], event["reportingInstance"]) == ("for by-follower", "follower")


def test_in_observe_only_mode_reviews_are_answered_and_nothing_is_written(family, operator, tmp_path):
    authority = Authority("api-servers")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    pair = authority.client("kube-apiserver")
    (tmp_path / "client.pem").write_bytes(pair.certificate + pair.key)
    rules = rbac.rules(owner_lookup.KINSHIPS, installs_crds=True)
    webhooks = replace(LOCAL_WEBHOOKS, client_authority=tmp_path / "ca.crt")
    observer = operator(owner_lookup.KINSHIPS, webhooks=webhooks, rules=rules, observe=True)
    family.define()
    question = owner_lookup.question("observed", family.add("a"))

    asked_directly(observer, "/validate/kinships/kin", question, client=tmp_path / "client.pem")

    assert observer.metric("nodeyard_kinships_asked_total") == 1
    observer.stop()
    assert [what for what in observer.write_counts() if "events" in what] == []


def asked_directly(running, path, obj, **options):
    body = posed(object=obj, name=obj["metadata"]["name"], namespace="default")
    status, answer = ask(running.ports["webhooks"], path, body, **options)
    assert status == 200
    return json.loads(answer)["response"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [(HalfOpen(), "did not answer in time"), (Status(500), "cannot get widget")],
    ids=["silence", "error"],
)
def test_a_server_error_is_unknown_within_the_timeout_of_the_webhook(family, start, faults, fault, said):
    start(through=faults.kubeconfig)
    family.define()
    owner = family.add("a")
    faults.add(fault, path=f"/{family.plural}/a")

    # The server's timeout is little longer than the webhook's: on a busy machine the first call may time out.
    told = family.until_told(said, owner)

    assert told.startswith(f"{family.kind} a (cannot get ")
