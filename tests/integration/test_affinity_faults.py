"""Affinity under faults: no webhook responds, caches are not synced, another server serves the group."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders.affinity_env import DRY, ROOT, application_body, definition_body, pod_body, unique
from tests.builders.background_load import Load
from tests.builders.nested_json import with_nested
from tests.builders.rule_webhooks import SECRET

from nodeyard.admission.certificates import RotationPolicy
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.runtime import rbac
from nodeyard.runtime.health import Address
from nodeyard.testing import third_party_crds
from nodeyard.testing.faults import HalfOpen
from nodeyard.testing.operators import LOCAL_WEBHOOKS, Operator
from nodeyard.testing.ports import free_port

ZONE = "topology.kubernetes.io/zone"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FORBIDDEN = 403
RELEASES = "helmreleases.helm.toolkit.fluxcd.io"
LEVELS = 5_000


@pytest.fixture
def plain(own_affinity_env):
    """Create a namespace outside tenants."""
    own_affinity_env.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": (name := unique("plain"))}})
    return name


def restarted(affinity, **options):
    """Start an operator on the port of the previous one, which is still registered."""
    port = affinity.operator.ports["webhooks"]
    affinity.operator.stop()
    return affinity.operators(AFFINITY, webhooks=replace(LOCAL_WEBHOOKS, bind=Address("127.0.0.1", port)), **options)


def test_while_nobody_answers_pods_of_tenants_are_refused_and_others_admitted(own_affinity_env, plain):
    affinity = own_affinity_env
    affinity.start()
    home = affinity.tenant(unique("home"))
    assert affinity.post(pod_body(home, "before", [])).status == 201

    affinity.operator.stop()

    refused = affinity.post(pod_body(home, "meanwhile", []))
    assert refused.status == 500
    assert "failed calling webhook" in refused.message
    for namespace in (plain, "default", "kube-system"):
        assert affinity.post(pod_body(namespace, unique("other-"), [])).status == 201
    affinity.start()
    affinity.wait_until(
        lambda: affinity.post(pod_body(home, unique("after-"), [])).status == 201, "somebody answers again"
    )


def test_before_everything_is_known_pods_of_tenants_are_refused_and_others_admitted(
    own_affinity_env, plain, monkeypatch
):
    affinity = own_affinity_env
    monkeypatch.setattr("tests.builders.affinity_env.LOCAL_WEBHOOKS", at_free_port())
    affinity.start()
    home = affinity.tenant(unique("home"))
    monkeypatch.setattr(Operator, "ready", lambda self: self)
    blind = [each for each in rbac.rules(AFFINITY, installs_crds=True) if "nodes" not in each["resources"]]

    starting = restarted(affinity, rules=blind)

    def refusal():
        return affinity.post(pod_body(home, unique("early-"), [])).message

    affinity.wait_until(lambda: "nodeyard has just started" in refusal(), "tenants are told to wait")
    answer = affinity.post(pod_body(plain, "early", []))
    assert answer.status == 201
    assert any("not checked" in each for each in answer.warnings)
    starting.stop()
    monkeypatch.undo()
    affinity.start()


READ = ["get", "list", "watch"]


def narrowed(kinds, verbs):
    """Grant its rights, but only for these kinds of applications."""
    for rule in rbac.rules(AFFINITY, installs_crds=True):
        if (rule["apiGroups"], rule["resources"]) != ([names.APPS_GROUP], ["*"]):
            yield rule
        else:
            yield {**rule, "resources": [names.TENANT_PLURAL], "verbs": [*READ, "patch"]}
            yield {**rule, "resources": kinds, "verbs": verbs}


@pytest.mark.parametrize("verbs", [["get"], []], ids=["read one by one", "not read"])
def test_an_uncached_record_is_looked_up(own_affinity_env, monkeypatch, verbs):
    """Applications cannot be listed, and the release has lost its labels and owner."""
    affinity = own_affinity_env
    monkeypatch.setattr("tests.builders.affinity_env.LOCAL_WEBHOOKS", at_free_port())
    affinity.start()
    affinity.definition(kind := unique("Safe"))
    zones = ("here", "elsewhere")
    here, elsewhere = (affinity.affinity_class(unique(zone), nodeSelector={ZONE: zone}) for zone in zones)
    home = affinity.tenant(unique("home"), allowedAffinityClasses=[here, elsewhere])
    release = affinity.application_release(kind, home, "main", affinityClass=here)["metadata"]["name"]
    affinity.install(home, release)

    def admits(**selector):
        return affinity.pod(home, release, query=DRY, nodeSelector=selector).status == 201

    affinity.wait_until(lambda: admits(**{ZONE: "here"}) and not admits(), "the pods are held to the class")
    affinity.operator.stop()
    labels = dict.fromkeys(
        (names.APPLICATION_GROUP, names.APPLICATION_KIND, names.APPLICATION_NAME, names.AFFINITY_CLASS)
    )
    bare = {"metadata": {"labels": labels, "ownerReferences": None}}
    assert affinity.patch(names.RELEASE_KIND, release, bare, home).status == 200

    blind = restarted(affinity, rules=[*narrowed([affinity.plurals[kind][1]], verbs or ["patch"])])

    def refusal(selector):
        return affinity.pod(home, release, query=DRY, nodeSelector=selector).message

    told = f'AffinityClass "{here}"' if verbs else f"its owner {kind} {home}/main cannot be read"
    affinity.wait_until(lambda: told in refusal({ZONE: "elsewhere"}), "it is not admitted elsewhere")
    assert told in refusal({})
    assert admits(**{ZONE: "here"}) is bool(verbs)
    blind.stop()
    monkeypatch.undo()
    affinity.start()


def at_free_port():
    return replace(LOCAL_WEBHOOKS, bind=Address("127.0.0.1", free_port()))


@pytest.fixture
def elsewhere(api, own_affinity_env):
    """Register CozyStack's API server: an APIService with a service."""
    crd = f"{CRDS}/tenants.{names.APPS_GROUP}"
    own_affinity_env.http.delete(crd)
    own_affinity_env.wait_until(lambda: own_affinity_env.http.get(crd).status == 404, "our own definition is gone")
    name = f"v1alpha1.{names.APPS_GROUP}"
    own_affinity_env.wait_until(
        lambda: own_affinity_env.http.get(f"{SERVICES}/{name}").status == 404, "nobody serves the group"
    )
    service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name},
        "spec": {
            "group": names.APPS_GROUP,
            "version": names.VERSION,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": {"namespace": "cozy-system", "name": "cozystack-api"},
            "insecureSkipTLSVerify": True,
        },
    }
    answer = own_affinity_env.http.post(SERVICES, service)
    assert answer.status == 201, answer.content
    yield service
    own_affinity_env.http.delete(f"{SERVICES}/{name}")
    third_party_crds.install(own_affinity_env.api.rest, [AFFINITY.kinds[1].definition()])
    tenants = own_affinity_env.path(names.TENANT_KIND, namespace=ROOT)
    own_affinity_env.wait_until(lambda: own_affinity_env.http.get(tenants).status == 200, "tenants are served again")


def test_where_cozystack_serves_the_group_no_kind_is_created_and_only_releases_are_enforced(
    own_affinity_env, elsewhere
):
    affinity = own_affinity_env
    running = affinity.start()
    affinity.affinity_class(name := unique("class"), nodeSelector={ZONE: "here"})
    namespace = f"tenant-{unique('theirs')}"
    affinity.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    affinity.create(release_body(namespace, name))
    affinity.install(namespace, "postgres-db")
    # CozyStack has such a definition; it is denied where the kinds are ours.
    affinity.create(definition_body("Tenant"))

    affinity.wait_until(
        lambda: affinity.pod(namespace, "postgres-db").status == FORBIDDEN, "the release's class counts"
    )

    assert affinity.pod(namespace, "postgres-db", nodeSelector={ZONE: "here"}).status == 201
    users = [{"kind": "Postgres", "namespace": namespace, "name": "db"}]
    affinity.wait_until(lambda: affinity.status(names.CLASS_KIND, name).get("inUseBy") == users, "the class knows it")
    said = affinity.wait_for_condition(names.CLASS_KIND, name, "ReleasesOnly", "ServedByAPIService")["message"]
    assert f"delete APIService v1alpha1.{names.APPS_GROUP}" in said
    affinity.wait_for_condition(names.DEFINITION_KIND, "tenant", "Served", "ServedByAPIService")
    assert affinity.http.get(f"{CRDS}/tenants.{names.APPS_GROUP}").status == 404
    assert running.metric("nodeyard_plan_blocked", capability="affinity", reason="ServedByAPIService") >= 2
    assert set(running.write_counts()) <= {
        "patch affinityclasses.cozystack.io",
        "patch applicationdefinitions.cozystack.io",
        "create events.events.k8s.io",
        "patch events.events.k8s.io",
        "patch validatingwebhookconfigurations.admissionregistration.k8s.io",
        "patch mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "create secrets",
        "patch secrets",
        "update secrets",
    }


def release_body(namespace, affinity_class):
    labels = {
        names.APPLICATION_GROUP: names.APPS_GROUP,
        names.APPLICATION_KIND: "Postgres",
        names.APPLICATION_NAME: "db",
        names.AFFINITY_CLASS: affinity_class,
    }
    return {
        "apiVersion": names.FLUX_API_VERSION,
        "kind": names.RELEASE_KIND,
        "metadata": {"name": "postgres-db", "namespace": namespace, "labels": labels},
        "spec": {"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": "postgres"}},
    }


RESTLESS = RotationPolicy(
    valid=timedelta(days=90), renew_before=timedelta(days=90) - timedelta(seconds=2), interval=0.2, settle=0.5
)
"""Rotate certificates every two seconds."""


def test_certificates_rotate_while_pods_are_reviewed_and_every_answer_is_right(own_affinity_env, monkeypatch):
    affinity = own_affinity_env
    monkeypatch.setattr("tests.builders.affinity_env.LOCAL_WEBHOOKS", replace(LOCAL_WEBHOOKS, rotation=RESTLESS))
    affinity.start()
    home = affinity.tenant(unique("home"))
    affinity.create(release_body(home, affinity.affinity_class(unique("class"), nodeSelector={ZONE: "here"})))
    affinity.install(home, "postgres-db")
    affinity.wait_until(lambda: affinity.pod(home, "postgres-db", query=DRY).status == FORBIDDEN, "the class counts")

    def ask(status, **spec):
        answer = affinity.pod(home, "postgres-db", query=DRY, **spec)
        return "" if answer.status == status else f"{answer.status}: {answer.message}"

    load = Load()
    for _ in range(3):
        load.repeat(lambda: ask(201, nodeSelector={ZONE: "here"}))
    load.repeat(lambda: ask(FORBIDDEN))

    with load:
        seen = set()
        affinity.wait_until(lambda: len(seen.add(certificate(affinity)) or seen) >= 3, "two rotations")

    assert load.faults == []
    assert min(load.counts) > 5


def certificate(affinity):
    """Return the newest certificate."""
    return affinity.api.rest.get(SECRET)["data"]["tls.crt"]


def test_a_tenant_is_deleted_right_after_its_workload_though_that_event_comes_later(own_affinity_env, faults):
    """Watches of two kinds keep no order between them: the Tenant's deletion is planned for before the operator hears
    that the workload, which would have to be asked for, is gone already."""
    affinity = own_affinity_env
    affinity.start(through=faults.kubeconfig)
    tenant, name = unique("hasty"), unique("dc")
    affinity.affinity_class(name, nodeSelector={ZONE: "dc1"})
    home = affinity.tenant(tenant, defaultAffinityClass=name, allowedAffinityClasses=[name])
    workload = affinity.path("StatefulSet", affinity.install(home, "left")["metadata"]["name"], home)
    where = affinity.path(names.TENANT_KIND, tenant, ROOT)
    affinity.wait_until(
        lambda: any("1 StatefulSet" in each for each in affinity.http.delete(where, query=DRY).warnings), "it is known"
    )
    faults.add(HalfOpen(), path="/statefulsets.*watch")
    assert affinity.http.delete(workload).status == 200
    assert affinity.http.delete(where).status == 200
    affinity.wait_for_condition(names.TENANT_KIND, tenant, "Ready", "NamespaceDeletionHeld", ROOT)

    faults.clear()

    affinity.wait_until(lambda: affinity.get(names.TENANT_KIND, tenant, ROOT) is None, "the tenant is gone")
    affinity.wait_until(lambda: affinity.delete(names.CLASS_KIND, name).status == 404, "its class is gone")


@pytest.fixture
def deep(own_affinity_env):
    """Creates releases that do not decode and returns the server's status; deletes them before the teardown of
    `affinity`."""
    path = own_affinity_env.path(names.RELEASE_KIND, namespace=ROOT)
    made = []

    def make(name):
        body = release_body(ROOT, "none")
        body["metadata"]["name"], body["spec"]["values"] = name, "NESTED"
        made.append(f"{path}/{name}")
        return own_affinity_env.http.post(path, with_nested(json.dumps(body).encode(), LEVELS)).status

    yield make
    for each in made:
        own_affinity_env.http.delete(each)


def test_a_release_that_is_nested_too_deeply_to_be_read_keeps_no_other_from_being_looked_after(own_affinity_env, deep):
    affinity = own_affinity_env
    # The embedded server accepts no deeper nesting than we decode.
    taken, aside = (201, 2) if affinity.api.is_real else (400, 0)
    assert deep("before") == taken

    affinity.operator = affinity.operators(AFFINITY)
    kind = affinity.definition(unique("Shelf").title())
    affinity.application_release(kind, ROOT, "first")
    assert deep("meanwhile") == taken
    affinity.application_release(kind, ROOT, "second")

    def is_counted():
        return affinity.operator.metric("nodeyard_informer_malformed_objects", resource=RELEASES) == aside

    affinity.wait_until(is_counted, "they are told of")


def test_an_application_that_is_nested_too_deeply_to_be_read_is_refused(own_affinity_env):
    affinity = own_affinity_env
    affinity.start()
    body = definition_body(kind := unique("Vault").title())
    body["spec"]["application"]["openAPISchema"] = json.dumps({"x-kubernetes-preserve-unknown-fields": True})
    affinity.create(body)
    affinity.plurals[kind] = (names.APPS_API_VERSION, body["spec"]["application"]["plural"], True)
    affinity.wait_for_condition(names.DEFINITION_KIND, kind.lower(), "Ready", "Served")
    affinity.application_release(kind, ROOT, "plain", options={"any": ["form"]})
    deep = json.dumps(application_body(kind, ROOT, "deep", options="NESTED")).encode()

    refused = affinity.http.post(affinity.path(kind, namespace=ROOT), with_nested(deep, LEVELS))

    assert refused.status == (422 if affinity.api.is_real else 400)
    if affinity.api.is_real:
        assert f"{kind} {ROOT}/deep: it is nested more than" in refused.message
