"""Kinds that users declare: watched, written, dropped, and the rights for them."""

import itertools

import pytest
from tests.builders import declared_kinds

from nodeyard.app.dry_planner import dry_planning
from nodeyard.client import rest_mapper
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.plan.brake import Limit
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import SystemClock
from nodeyard.runtime import rbac
from nodeyard.testing import third_party_crds

_numbers = itertools.count(1)
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SERVICES = f"/apis/{declared_kinds.API_VERSION}/badgeservices"
WATCHING = ("get", "list", "watch")


class Show:
    """A kind of one test with objects, services and rights; deleted after it."""

    def __init__(self, rest, eventually):
        self.rest, self.eventually = rest, eventually
        number = next(_numbers)
        self.group, self.kind, self.plural = f"show{number}.test", f"Medal{number}", f"medal{number}s"
        self.api_version = f"{self.group}/v1"
        self.service = f"service-{number}"
        self._role = f"badges-medals-{number}"

    def define(self):
        third_party_crds.install(self.rest, [declared_kinds.custom(f"{self.plural}.{self.group}", self.kind)])

    def declare(self, badge="gold"):
        self.rest.replace_or_create(self.declaration(badge))

    def declaration(self, badge="gold"):
        return declared_kinds.service(self.service, self.kind, badge, self.api_version)

    def let_go(self):
        self.rest.call("DELETE", f"{SERVICES}/{self.service}")

    def add(self, name):
        self.rest.create(self.object(name))

    def object(self, name):
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": name, "namespace": "default"},
        }

    def allow(self, *verbs):
        """Grant rights on a kind as a user does: a role of any name with the aggregation label."""
        self.rest.replace_or_create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": self._role, "labels": {rbac.aggregation_label(declared_kinds.BADGES): "true"}},
                "rules": [{"apiGroups": [self.group], "resources": [self.plural], "verbs": list(verbs)}],
            }
        )

    def may(self, user, verb):
        attributes = {"group": self.group, "resource": self.plural, "verb": verb}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return self.rest.call("POST", path, review)["status"]["allowed"]

    def badge(self, name):
        found = self.rest.get(f"/apis/{self.api_version}/namespaces/default/{self.plural}/{name}")
        return (found["metadata"].get("annotations") or {}).get(declared_kinds.BADGE)

    def until_badge(self, name, badge):
        self.eventually(lambda: self.badge(name) == badge, f"{name} has the badge {badge}", 60.0)

    def status(self):
        return self.rest.get(f"{SERVICES}/{self.service}").get("status") or {}

    def until_status(self, **wanted):
        self.eventually(lambda: wanted.items() <= self.status().items(), f"the status says {wanted}", 60.0)

    def close(self):
        for path in (f"{SERVICES}/{self.service}", f"{CRDS}/{self.plural}.{self.group}", f"{ROLES}/{self._role}"):
            if self.rest.status(path) == 200:
                self.rest.call("DELETE", path)


@pytest.fixture(scope="session")
def services(api):
    third_party_crds.install(api.rest, [declared_kinds.definition()])


@pytest.fixture
def show(api, services, eventually):
    show = Show(api.rest, eventually)
    yield show
    show.close()


def started(operator):
    """Send a request that may be refused: a real server's authorizer sees new rights a moment later."""
    return operator(declared_kinds.BADGES, rules=rbac.rules(declared_kinds.BADGES, installs_crds=True))


def test_a_kind_that_is_declared_while_it_runs_is_watched_and_acted_on(show, operator):
    show.define()
    show.add("early")
    running = operator(declared_kinds.BADGES)
    show.allow(*WATCHING, "patch")
    show.eventually(lambda: show.may(running.user, "patch"), "the rights are gathered")
    show.declare()
    show.until_badge("early", "gold")
    show.add("late")
    show.until_badge("late", "gold")
    show.until_status(badged=2, served="yes", trouble="", refused="")
    show.declare("silver")
    show.until_badge("early", "silver")
    show.until_badge("late", "silver")


def test_a_kind_that_is_no_longer_declared_is_unwatched_and_can_come_back(show, operator):
    show.define()
    show.allow(*WATCHING, "patch")
    show.declare()
    show.add("a")
    running = started(operator)
    show.until_badge("a", "gold")
    source = f"{show.plural}.{show.group}"
    assert running.metric("nodeyard_informer_synced", resource=source) == 1

    show.let_go()

    show.eventually(lambda: running.metric("nodeyard_informer_synced", resource=source) == 0, "its watch ends")
    show.declare("silver")
    show.until_badge("a", "silver")


def test_a_kind_that_is_declared_before_it_is_defined_begins_when_it_is(show, operator, monkeypatch):
    monkeypatch.setattr(rest_mapper, "DISCOVERY_SECONDS", 1.0)
    show.allow(*WATCHING, "patch")
    show.declare()
    started(operator)
    show.until_status(served="no")
    show.define()
    show.add("a")
    show.until_badge("a", "gold")
    show.until_status(served="yes")


def test_a_missing_right_to_watch_is_reported_and_holds_up_no_other_kind(api, show, services, operator, eventually):
    other = Show(api.rest, eventually)
    try:
        show.define()
        other.define()
        other.allow(*WATCHING, "patch")
        show.declare()
        other.declare()
        other.add("fine")
        show.add("unseen")
        started(operator)

        other.until_badge("fine", "gold")
        eventually(lambda: show.status().get("trouble"), "the trouble is told")
        assert show.status()["trouble"].startswith(f"cannot watch {show.plural}.{show.group}: forbidden")
        other.until_status(trouble="")

        show.allow(*WATCHING, "patch")
        show.until_badge("unseen", "gold")
        show.until_status(trouble="")
    finally:
        other.close()


def test_a_missing_right_to_write_is_reported_with_verb_and_resource(show, operator):
    show.define()
    show.allow(*WATCHING)
    show.declare()
    show.add("a")
    started(operator)

    show.eventually(lambda: show.status().get("refused"), "the refusal is told")

    assert f'cannot patch resource "{show.plural}" in API group "{show.group}"' in show.status()["refused"]
    assert show.badge("a") is None


async def test_a_dry_planner_sees_declared_kinds(api, show):
    show.define()
    show.declare()
    show.add("a")
    async with looking(api) as inspection:
        (look,) = [each for each in inspection.plans(Limit()) if each.key == show.service]
        assert [action.object.name for action in look.braked.now.actions] == ["a"]
        ref = ObjectRef(api_version=show.api_version, kind=show.kind, name="a", namespace="default")
        assert [decision.facts.by for _, decision in inspection.why(ref)] == [show.service]
    assert show.badge("a") is None


async def test_declared_kinds_and_objects_in_files_are_planned_as_if_applied(api, show):
    """The first object starts the watch on the kind, and the second one overlays its cache."""
    show.define()
    show.add("there")
    async with looking(api) as inspection:
        await inspection.overlay(
            [{**show.object("new"), "metadata": {**show.object("new")["metadata"], "uid": "new"}}, show.declaration()]
        )
        (look,) = [each for each in inspection.plans(Limit()) if each.key == show.service]
        assert sorted(action.object.name for action in look.braked.now.actions) == ["new", "there"]


def looking(api):
    transport = HttpTransport(load_kubeconfig([api.kubeconfig]), clock=SystemClock())
    return dry_planning(Client(transport), [declared_kinds.BADGES])
