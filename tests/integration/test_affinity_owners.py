"""The application of a pod through owners of any kind: installed later, recreated, forbidden, or in a cycle."""

import subprocess

import pytest
from tests.builders import declared_kinds
from tests.builders.affinity_env import class_body, owner_of, pod_body, run_affinity_env, unique
from tests.builders.pools_env import PROGRAM

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.runtime import rbac
from nodeyard.testing import third_party_crds

ZONE = "topology.kubernetes.io/zone"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Operated:
    """A kind of a third-party operator, like CNPG's Cluster: released by Flux, and owner of pods."""

    def __init__(self, affinity, namespace):
        self.affinity, self.namespace = affinity, namespace
        word = unique("database")
        self.kind, self.plural, self.group = word.title(), f"{word}s", f"{word}.test"
        self._role = f"{word}-reading"

    def install(self):
        third_party_crds.install(
            self.affinity.api.rest, [declared_kinds.custom(f"{self.plural}.{self.group}", self.kind, "Namespaced")]
        )
        self.affinity.plurals[self.kind] = (f"{self.group}/v1", self.plural, True)

    def allow(self, *verbs):
        rule = {"apiGroups": [self.group], "resources": [self.plural], "verbs": list(verbs)}
        label = {rbac.aggregation_label(AFFINITY): "true"}
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [rule]}
        self.affinity.api.rest.replace_or_create({**role, "metadata": {"name": self._role, "labels": label}})

    def add(self, name, release="", owners=()):
        labels = {names.FLUX_NAME: release} if release else {}
        metadata = {"name": name, "namespace": self.namespace, "labels": labels, "ownerReferences": list(owners)}
        return self.affinity.create({"apiVersion": f"{self.group}/v1", "kind": self.kind, "metadata": metadata})

    def reference(self, name):
        found = self.affinity.get(self.kind, name, self.namespace)
        return owner_of({**found, "apiVersion": f"{self.group}/v1", "kind": self.kind})

    def close(self):
        self.affinity.http.delete(f"{ROLES}/{self._role}")
        self.affinity.http.delete(f"{CRDS}/{self.plural}.{self.group}")


@pytest.fixture(scope="module")
def affinity(api, affinity_crds):
    """Affinity whose operator has only its declared rights; some of its requests are refused here."""
    with run_affinity_env(api) as affinity:
        affinity.start(rules=rbac.rules(AFFINITY, installs_crds=True))
        yield affinity


@pytest.fixture(scope="module")
def home(affinity):
    """The namespace of a tenant with one class and an application of it."""
    affinity.definition("Store")
    affinity_class = affinity.affinity_class(unique("class"), nodeSelector={ZONE: "here"})
    namespace = affinity.tenant(unique("home"), defaultAffinityClass=affinity_class)
    affinity.application_release("Store", namespace, "main")
    return namespace


@pytest.fixture
def operated(affinity, home):
    kind = Operated(affinity, home)
    yield kind
    kind.close()


def pod(affinity, namespace, *owners, **spec):
    return affinity.post(pod_body(namespace, unique("pod-"), list(owners), **spec))


def test_a_kind_that_was_installed_after_us_leads_to_the_release(affinity, home, operated):
    operated.install()
    operated.allow("get", "list", "watch")
    operated.add("db", release="store-main")
    owner = operated.reference("db")

    def refusal():
        answer = pod(affinity, home, owner)
        return answer.message if answer.status == 403 and "missing required nodeSelector" in answer.message else ""

    # A real server sees new rights a moment later; until then the owner cannot be read.
    assert 'belongs to application with AffinityClass "' in affinity.wait_until(refusal, "the owner is found")
    admitted = pod(affinity, home, owner, nodeSelector={ZONE: "here"})
    assert admitted.json["metadata"]["labels"][names.APPLICATION_NAME] == "main"

    def is_cached():
        before = affinity.operator.metric("nodeyard_webhook_lookups_total")
        pod(affinity, home, owner, nodeSelector={ZONE: "here"})
        return affinity.operator.metric("nodeyard_webhook_lookups_total") == before

    affinity.wait_until(is_cached, "the kind is watched, and nobody asks the server any more")


def test_why_follows_owners_of_kinds_that_it_has_to_find_first(affinity, home, operated):
    operated.install()
    operated.add("db", release="store-main")
    operated.allow("get", "list", "watch")
    made = affinity.wait_until(lambda: admitted(affinity, home, operated.reference("db")), "the owner can be read")

    command = [*PROGRAM, "why", f"pod/{made}", "-n", home, "--kubeconfig", str(affinity.api.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    said = " ".join(done.stdout.split())
    assert f"{operated.kind} {home}/db: OwnedBy: owner of Pod {home}/{made}" in said
    assert f"HelmRelease {home}/store-main: ReleaseOf: release of Store main" in said


def admitted(affinity, namespace, owner):
    """Create a pod that is labelled with its application; return its name."""
    answer = pod(affinity, namespace, owner, nodeSelector={ZONE: "here"})
    is_found = answer.status == 201 and names.APPLICATION_NAME in answer.json["metadata"].get("labels", {})
    return answer.json["metadata"]["name"] if is_found else ""


def test_an_owner_that_may_not_be_read_is_unknown_and_the_right_is_named(affinity, home, operated):
    operated.install()
    operated.add("db", release="store-main")
    owner = operated.reference("db")

    refused = pod(affinity, home, owner)

    assert refused.status == 403
    assert f"may belong to an application: its owner {operated.kind} {home}/db cannot be read" in refused.message
    assert f"may not get {operated.plural}.{operated.group}" in refused.message
    assert rbac.aggregation_label(AFFINITY) in refused.message
    # The pod is inside every class that it could have.
    harmless = pod(affinity, home, owner, nodeSelector={ZONE: "here"})
    assert harmless.status == 201
    assert any("it would be allowed whichever it is" in each for each in harmless.warnings)


def test_a_recreated_owner_is_not_the_referenced_one(affinity, home, operated):
    operated.install()
    operated.allow("get", "list", "watch")
    operated.add("db", release="store-main")
    former = operated.reference("db")
    affinity.wait_until(lambda: pod(affinity, home, former).status == 403, "the owner is found")
    assert affinity.delete(operated.kind, "db", home).status == 200
    operated.add("db", release="store-main")

    # The application of the old owner is unknown; a pod of the present owner is checked.
    affinity.wait_until(lambda: pod(affinity, home, former).status == 201, "it is of nobody")
    assert pod(affinity, home, operated.reference("db")).status == 403


def test_a_release_that_another_release_installed_leads_on_to_the_application(affinity, home):
    inner = {"apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND}
    affinity.create(
        {
            **inner,
            "metadata": {"name": "inner", "namespace": home, "labels": {names.FLUX_NAME: "store-main"}},
            "spec": {"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": "x"}},
        }
    )
    affinity.install(home, "inner")

    affinity.wait_until(lambda: affinity.pod(home, "inner").status == 403, "the way is followed")

    assert affinity.pod(home, "inner", nodeSelector={ZONE: "here"}).json["metadata"]["labels"][
        names.APPLICATION_NAME
    ] == "main"  # fmt: skip


def test_a_deployments_pods_are_found_over_its_replica_set(affinity, home):
    labels = {"app": "web"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
        "containers": [{"name": "main", "image": "main:1"}]
    }}}  # fmt: skip
    metadata = {"name": "web", "namespace": home, "labels": {names.FLUX_NAME: "store-main"}}
    deployment = affinity.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    reference = owner_of({**deployment, "apiVersion": "apps/v1", "kind": "Deployment"})
    metadata = {"name": "web-1", "namespace": home, "ownerReferences": [reference]}
    affinity.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec})

    refused = affinity.pod(home, "web-1", kind="ReplicaSet")

    assert (refused.status, "missing required nodeSelector" in refused.message) == (403, True)


def test_a_cycle_of_owners_leads_to_no_application(affinity, home, operated):
    operated.install()
    operated.allow("get", "list", "watch")
    operated.add("a")
    operated.add("b", owners=[operated.reference("a")])
    circle = {"metadata": {"ownerReferences": [operated.reference("b")]}}
    assert affinity.patch(operated.kind, "a", circle, home).status == 200

    affinity.wait_until(lambda: pod(affinity, home, operated.reference("b")).status == 201, "it is of nobody")


def test_a_recreated_class_counts_again(affinity):
    name = unique("again")
    affinity.affinity_class(name, nodeSelector={ZONE: "a"})
    affinity.delete(names.CLASS_KIND, name)
    affinity.wait_until(lambda: affinity.get(names.CLASS_KIND, name) is None, "it is gone")
    affinity.create(class_body(name, nodeSelector={ZONE: "b"}))
    namespace = affinity.tenant(unique("home"), defaultAffinityClass=name)
    affinity.application_release("Store", namespace, "main")
    affinity.install(namespace, "store-main")

    assert affinity.pod(namespace, "store-main", nodeSelector={ZONE: "a"}).status == 403
    assert affinity.pod(namespace, "store-main", nodeSelector={ZONE: "b"}).status == 201


@pytest.fixture
def shared(affinity, home):
    """The namespace of a tenant with the applications `here` and `there`, each of the class of the same name."""
    classes = {zone: affinity.affinity_class(unique(zone), nodeSelector={ZONE: zone}) for zone in ("here", "there")}
    namespace = affinity.tenant(unique("shared"))
    for zone, name in classes.items():
        affinity.application_release("Store", namespace, zone, affinityClass=name)
        affinity.install(namespace, f"store-{zone}")
    return namespace


def owners_of(affinity, namespace, *zones):
    """Return references to the StatefulSets of these applications; the first is the controller."""
    found = [affinity.get("StatefulSet", f"store-{zone}", namespace) for zone in zones]
    references = [owner_of({**each, "apiVersion": "apps/v1", "kind": "StatefulSet"}) for each in found]
    return [{**each, "controller": number == 0} for number, each in enumerate(references)]


def test_a_pod_of_two_applications_keeps_to_the_classes_of_both(affinity, shared):
    affinity.wait_until(
        lambda: all(
            pod(affinity, shared, *owners_of(affinity, shared, zone), nodeSelector={ZONE: zone}).status == 201
            and pod(affinity, shared, *owners_of(affinity, shared, zone)).status == 403
            for zone in ("here", "there")
        ),
        "both are found",
    )
    for zones in (("here", "there"), ("there", "here")):
        first, second = owners_of(affinity, shared, *zones)
        for order in ((first, second), (second, first)):
            for zone, other in (("here", "there"), ("there", "here")):
                refused = pod(affinity, shared, *order, nodeSelector={ZONE: zone})
                assert refused.status == 403, refused.content
                assert f"missing required nodeSelector {ZONE}={other}; its nodeSelector has {ZONE}={zone}" in (
                    refused.message
                )


def test_a_forbidden_owner_is_not_ignored_when_another_was_found(affinity, shared):
    operated = Operated(affinity, shared)
    operated.install()
    try:
        operated.add("db")
        (known,) = owners_of(affinity, shared, "here")
        unread = {**operated.reference("db"), "controller": False}
        for order in ((known, unread), (unread, known)):
            refused = pod(affinity, shared, *order, nodeSelector={ZONE: "here"})
            assert refused.status == 403, refused.content
            assert f"its owner {operated.kind} {shared}/db cannot be read" in refused.message
    finally:
        operated.close()
