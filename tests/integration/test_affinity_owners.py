"""Whose a pod is, over owners of any kind: installed after us, made again, forbidden, and in a circle."""

import subprocess

import pytest
from tests.builders import badges
from tests.builders.estates import an_estate, class_body, owner_of, pod_body, unique
from tests.builders.lattices import PROGRAM

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.runtime import rbac
from nodeyard.testing import third_party_crds

ZONE = "topology.kubernetes.io/zone"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Operated:
    """A kind that an operator of somebody else brings along, as CNPG's Cluster: released by Flux, and owner of pods."""

    def __init__(self, estate, namespace):
        self.estate, self.namespace = estate, namespace
        word = unique("database")
        self.kind, self.plural, self.group = word.title(), f"{word}s", f"{word}.test"
        self._role = f"{word}-reading"

    def install(self):
        third_party_crds.install(
            self.estate.api.rest, [badges.custom(f"{self.plural}.{self.group}", self.kind, "Namespaced")]
        )
        self.estate.plurals[self.kind] = (f"{self.group}/v1", self.plural, True)

    def allow(self, *verbs):
        rule = {"apiGroups": [self.group], "resources": [self.plural], "verbs": list(verbs)}
        label = {rbac.aggregation_label(AFFINITY): "true"}
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [rule]}
        self.estate.api.rest.replace_or_create({**role, "metadata": {"name": self._role, "labels": label}})

    def add(self, name, release="", owners=()):
        labels = {names.FLUX_NAME: release} if release else {}
        metadata = {"name": name, "namespace": self.namespace, "labels": labels, "ownerReferences": list(owners)}
        return self.estate.make({"apiVersion": f"{self.group}/v1", "kind": self.kind, "metadata": metadata})

    def reference(self, name):
        found = self.estate.see(self.kind, name, self.namespace)
        return owner_of({**found, "apiVersion": f"{self.group}/v1", "kind": self.kind})

    def close(self):
        self.estate.http.delete(f"{ROLES}/{self._role}")
        self.estate.http.delete(f"{CRDS}/{self.plural}.{self.group}")


@pytest.fixture(scope="module")
def estate(api, affinity_kinds):
    """With an operator of just the rights that it declares, said so: it is refused some of what it asks for here."""
    with an_estate(api) as estate:
        estate.start(rules=rbac.rules(AFFINITY, installs_crds=True))
        yield estate


@pytest.fixture(scope="module")
def home(estate):
    """The namespace of a tenant with an application, all of one class."""
    estate.definition("Store")
    affinity_class = estate.affinity_class(unique("class"), nodeSelector={ZONE: "here"})
    namespace = estate.tenant(unique("home"), defaultAffinityClass=affinity_class)
    estate.released("Store", namespace, "main")
    return namespace


@pytest.fixture
def operated(estate, home):
    kind = Operated(estate, home)
    yield kind
    kind.close()


def pod(estate, namespace, *owners, **spec):
    return estate.post(pod_body(namespace, unique("pod-"), list(owners), **spec))


def test_a_kind_that_was_installed_after_us_leads_to_the_release(estate, home, operated):
    operated.install()
    operated.allow("get", "list", "watch")
    operated.add("db", release="store-main")
    owner = operated.reference("db")

    def refusal():
        answer = pod(estate, home, owner)
        return answer.message if answer.status == 403 and "missing required nodeSelector" in answer.message else ""

    # A real server learns of new rights a moment later, and only then the owner can be read.
    assert 'belongs to application with AffinityClass "' in estate.until(refusal, "the owner is found")
    admitted = pod(estate, home, owner, nodeSelector={ZONE: "here"})
    assert admitted.json["metadata"]["labels"][names.APPLICATION_NAME] == "main"

    def is_cached():
        before = estate.operator.metric("nodeyard_webhook_lookups_total")
        pod(estate, home, owner, nodeSelector={ZONE: "here"})
        return estate.operator.metric("nodeyard_webhook_lookups_total") == before

    estate.until(is_cached, "the kind is watched, and nobody asks the server any more")


def test_why_follows_owners_of_kinds_that_it_has_to_find_first(estate, home, operated):
    operated.install()
    operated.add("db", release="store-main")
    operated.allow("get", "list", "watch")
    made = estate.until(lambda: admitted(estate, home, operated.reference("db")), "the owner can be read")

    command = [*PROGRAM, "why", f"pod/{made}", "-n", home, "--kubeconfig", str(estate.api.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    said = " ".join(done.stdout.split())
    assert f"{operated.kind} {home}/db: OwnedBy: owner of Pod {home}/{made}" in said
    assert f"HelmRelease {home}/store-main: ReleaseOf: release of Store main" in said


def admitted(estate, namespace, owner):
    """The name of a pod that was found to be of its application."""
    answer = pod(estate, namespace, owner, nodeSelector={ZONE: "here"})
    is_found = answer.status == 201 and names.APPLICATION_NAME in answer.json["metadata"].get("labels", {})
    return answer.json["metadata"]["name"] if is_found else ""


def test_an_owner_that_may_not_be_read_is_unknown_and_the_right_is_named(estate, home, operated):
    operated.install()
    operated.add("db", release="store-main")
    owner = operated.reference("db")

    refused = pod(estate, home, owner)

    assert refused.status == 403
    assert f"may belong to an application: its owner {operated.kind} {home}/db cannot be read" in refused.message
    assert f"may not get {operated.plural}.{operated.group}" in refused.message
    assert rbac.aggregation_label(AFFINITY) in refused.message
    # Whatever it is of, it keeps to every class that it could have.
    harmless = pod(estate, home, owner, nodeSelector={ZONE: "here"})
    assert harmless.status == 201
    assert any("it would be allowed whichever it is" in each for each in harmless.warnings)


def test_an_owner_that_was_made_again_is_not_the_one_that_is_meant(estate, home, operated):
    operated.install()
    operated.allow("get", "list", "watch")
    operated.add("db", release="store-main")
    former = operated.reference("db")
    estate.until(lambda: pod(estate, home, former).status == 403, "the owner is found")
    assert estate.delete(operated.kind, "db", home).status == 200
    operated.add("db", release="store-main")

    # Whose it was nobody can tell any more; a pod of the one that is there now is checked.
    estate.until(lambda: pod(estate, home, former).status == 201, "it is of nobody")
    assert pod(estate, home, operated.reference("db")).status == 403


def test_a_release_that_another_release_installed_leads_on_to_the_application(estate, home):
    inner = {"apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND}
    estate.make(
        {
            **inner,
            "metadata": {"name": "inner", "namespace": home, "labels": {names.FLUX_NAME: "store-main"}},
            "spec": {"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": "x"}},
        }
    )
    estate.install(home, "inner")

    estate.until(lambda: estate.pod(home, "inner").status == 403, "the way is followed")

    assert estate.pod(home, "inner", nodeSelector={ZONE: "here"}).json["metadata"]["labels"][
        names.APPLICATION_NAME
    ] == "main"  # fmt: skip


def test_a_deployments_pods_are_found_over_its_replica_set(estate, home):
    labels = {"app": "web"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
        "containers": [{"name": "main", "image": "main:1"}]
    }}}  # fmt: skip
    metadata = {"name": "web", "namespace": home, "labels": {names.FLUX_NAME: "store-main"}}
    deployment = estate.make({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    reference = owner_of({**deployment, "apiVersion": "apps/v1", "kind": "Deployment"})
    metadata = {"name": "web-1", "namespace": home, "ownerReferences": [reference]}
    estate.make({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec})

    refused = estate.pod(home, "web-1", kind="ReplicaSet")

    assert (refused.status, "missing required nodeSelector" in refused.message) == (403, True)


def test_owners_in_a_circle_lead_to_nobody(estate, home, operated):
    operated.install()
    operated.allow("get", "list", "watch")
    operated.add("a")
    operated.add("b", owners=[operated.reference("a")])
    circle = {"metadata": {"ownerReferences": [operated.reference("b")]}}
    assert estate.patch(operated.kind, "a", circle, home).status == 200

    estate.until(lambda: pod(estate, home, operated.reference("b")).status == 201, "it is of nobody")


def test_a_class_that_is_gone_and_made_again_counts_anew(estate):
    name = unique("again")
    estate.affinity_class(name, nodeSelector={ZONE: "a"})
    estate.delete(names.CLASS_KIND, name)
    estate.until(lambda: estate.see(names.CLASS_KIND, name) is None, "it is gone")
    estate.make(class_body(name, nodeSelector={ZONE: "b"}))
    namespace = estate.tenant(unique("home"), defaultAffinityClass=name)
    estate.released("Store", namespace, "main")
    estate.install(namespace, "store-main")

    assert estate.pod(namespace, "store-main", nodeSelector={ZONE: "a"}).status == 403
    assert estate.pod(namespace, "store-main", nodeSelector={ZONE: "b"}).status == 201
