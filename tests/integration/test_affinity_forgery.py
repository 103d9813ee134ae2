"""Attempts to escape the classes by an attacker who may write only HelmReleases and pods in a tenant."""

import json

import pytest
from tests.builders.affinity_env import DRY, WEBHOOKS, application_body, owner_of, pod_body, unique
from tests.builders.rule_webhooks import VALIDATING

from nodeyard.capabilities.affinity import names
from nodeyard.testing.session import STRATEGIC

ZONE = "topology.kubernetes.io/zone"
HERE = {"nodeSelector": {ZONE: "here"}}
ELSEWHERE = {"nodeSelector": {ZONE: "elsewhere"}}
RELEASE = "vault-main"
SPEC = {"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": "x"}}


class Home:
    """A tenant that allows and requires one class, with an application of it."""

    def __init__(self, affinity, unowned="RequireAllowed"):
        self.affinity = affinity
        self.allowed = affinity.affinity_class(unique("here"), nodeSelector={ZONE: "here"})
        self.foreign = affinity.affinity_class(unique("elsewhere"), nodeSelector={ZONE: "elsewhere"})
        only = {"defaultAffinityClass": self.allowed, "allowedAffinityClasses": [self.allowed]}
        self.namespace = affinity.tenant(unique("home"), unownedPods=unowned, **only)
        self.release = affinity.application_release("Vault", self.namespace, "main")
        affinity.install(self.namespace, RELEASE)
        affinity.wait_until(self.record, "the class is recorded")

    def record(self):
        annotations = self.affinity.get("Vault", "main", self.namespace)["metadata"].get("annotations") or {}
        return json.loads(annotations.get(names.CLASS_RECORD, "null"))

    def labels(self):
        return self.affinity.release("Vault", self.namespace, "main")["metadata"].get("labels") or {}

    def forge(self, affinity_class="", owner=None):
        """Create a HelmRelease with the labels of an application; return its name."""
        name = unique("evil")
        labels = {
            names.APPLICATION_GROUP: names.APPS_GROUP,
            names.APPLICATION_KIND: "Vault",
            names.APPLICATION_NAME: name if owner is None else "main",
            **({names.AFFINITY_CLASS: affinity_class} if affinity_class else {}),
        }
        metadata = {"name": f"vault-{name}", "namespace": self.namespace, "labels": labels}
        if owner is not None:
            metadata = {**metadata, "name": f"{name}-main", "ownerReferences": [owner]}
        body = {"apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND, "metadata": metadata, "spec": SPEC}
        return self.affinity.create(body)["metadata"]["name"]

    def reference(self, release):
        found = self.affinity.get(names.RELEASE_KIND, release, self.namespace)
        return owner_of({**found, "apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND})

    def by_reference(self, *releases, **spec):
        owners = [{**self.reference(each), "controller": number == 0} for number, each in enumerate(releases)]
        return self.affinity.post(pod_body(self.namespace, unique("pod-"), owners, **spec), **DRY)

    def by_label(self, release, **spec):
        body = pod_body(self.namespace, unique("pod-"), [], labels={names.FLUX_NAME: release}, **spec)
        return self.affinity.post(body, **DRY)

    def of_workload(self, **spec):
        return self.affinity.pod(self.namespace, RELEASE, query=DRY, **spec)

    def change(self, **labels):
        answer = self.affinity.patch(names.RELEASE_KIND, RELEASE, {"metadata": {"labels": labels}}, self.namespace)
        assert answer.status == 200, answer.content

    def strip(self):
        self.change(**{names.AFFINITY_CLASS: None})

    def annotate(self, key, value):
        body = {"metadata": {"annotations": {key: value}}}
        answer = self.affinity.patch("Vault", "main", body, self.namespace)
        assert answer.status == 200, answer.content


@pytest.fixture(scope="module")
def home(affinity):
    affinity.definition("Vault")
    return Home(affinity)


@pytest.fixture(scope="module")
def open_home(affinity, home):
    """A tenant that allows pods of no application anywhere."""
    return Home(affinity, "Allow")


@pytest.fixture(params=["home", "open_home"])
def any_home(request):
    return request.getfixturevalue(request.param)


UNLABELLED = {"labels": dict.fromkeys((names.APPLICATION_GROUP, names.APPLICATION_KIND, names.APPLICATION_NAME))}
RENAMED = {"labels": {names.APPLICATION_NAME: "another"}}
DISOWNED = {"ownerReferences": None}


def is_refused(answer):
    return answer.status == 403 and "denied the request" in answer.message


def test_a_forged_release_without_a_class_cannot_escape_the_class(affinity, any_home):
    forged = any_home.forge()
    affinity.wait_until(lambda: any_home.by_reference(forged, **HERE).status == 201, "the release is known")

    refused = any_home.by_reference(forged)

    assert is_refused(refused), refused.content
    assert f"HelmRelease {forged}, which has no AffinityClass" in refused.message
    assert is_refused(any_home.by_label(forged))
    assert is_refused(any_home.by_label(forged, nodeName="anywhere"))
    assert any_home.by_label(forged, **HERE).status == 201


def test_a_forged_release_has_no_class_that_the_tenant_does_not_allow(affinity, any_home):
    forged = any_home.forge(any_home.foreign)
    affinity.wait_until(lambda: any_home.by_reference(forged, **ELSEWHERE).status == 403, "the release is known")

    for given in (ELSEWHERE, {}, HERE):
        refused = any_home.by_label(forged, **given)
        assert is_refused(refused), refused.content
        assert f'with AffinityClass "{any_home.foreign}", which no Vault' in refused.message


def test_a_release_that_says_the_application_owns_it_has_the_applications_class_or_none(affinity, any_home):
    application = affinity.get("Vault", "main", any_home.namespace)
    owner = {**owner_of({**application, "apiVersion": names.APPS_API_VERSION, "kind": "Vault"}), "controller": False}
    forged = any_home.forge(owner=owner)
    affinity.wait_until(lambda: any_home.by_reference(forged, **HERE).status == 201, "the release is known")

    assert is_refused(any_home.by_reference(forged))
    assert is_refused(any_home.by_reference(forged, **ELSEWHERE))


def test_a_lax_release_first_and_the_real_one_second_are_both_kept_to(affinity, any_home):
    forged = any_home.forge()
    affinity.wait_until(lambda: any_home.by_reference(forged, RELEASE, **HERE).status == 201, "the release is known")

    refused = any_home.by_reference(forged, RELEASE)

    assert is_refused(refused)
    assert is_refused(any_home.by_reference(RELEASE, forged))


@pytest.mark.parametrize("given", [{"spec": SPEC}, {}], ids=["with a spec", "without a spec"])
def test_a_release_that_is_forged_before_its_application_adds_no_way_out(affinity, home, given):
    """The tenant has a default, and allows its applications and pods anywhere. Flux requires no spec."""
    namespace = affinity.tenant(unique("early"), defaultAffinityClass=home.allowed)
    name = unique("early")
    labels = {
        names.APPLICATION_GROUP: names.APPS_GROUP,
        names.APPLICATION_KIND: "Vault",
        names.APPLICATION_NAME: name,
    }
    metadata = {"name": f"vault-{name}", "namespace": namespace, "labels": labels}
    affinity.create({"apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND, "metadata": metadata, **given})
    silent = application_body("Vault", namespace, name)
    told = affinity.wait_until(lambda: affinity.post(silent, **DRY).warnings, "the creation warns of the release")
    assert any(
        f"takes over HelmRelease {metadata['name']}, which exists already and has no class" in each for each in told
    )

    created = affinity.application("Vault", namespace, name, affinityClass=home.allowed)

    assert (created.status, created.warnings) == (201, [])
    affinity.wait_until(
        lambda: names.AFFINITY_CLASS in affinity.release("Vault", namespace, name)["metadata"]["labels"], "it is taken"
    )
    affinity.install(namespace, metadata["name"])
    assert is_refused(affinity.pod(namespace, metadata["name"], query=DRY))
    assert affinity.pod(namespace, metadata["name"], query=DRY, **HERE).status == 201


def test_a_label_that_is_stripped_from_the_release_changes_nothing(affinity, any_home):
    values = any_home.release["spec"]["values"]
    for _ in range(30):
        any_home.strip()
        assert is_refused(any_home.of_workload())

    affinity.wait_until(
        lambda: any_home.labels().get(names.AFFINITY_CLASS) == any_home.allowed, "the label is put back"
    )
    assert affinity.release("Vault", any_home.namespace, "main")["spec"]["values"] == values
    assert any_home.of_workload(**HERE).status == 201
    assert any_home.record()["class"] == any_home.allowed


def test_a_forged_previous_class_is_ignored_and_removed(affinity, any_home):
    for forged in ("", any_home.foreign):
        any_home.change(**{names.PREVIOUS_CLASS: forged})

        assert is_refused(any_home.of_workload())
        assert is_refused(any_home.of_workload(**ELSEWHERE))
        affinity.wait_until(lambda: names.PREVIOUS_CLASS not in any_home.labels(), "it is taken off")


def test_the_record_is_the_operators_alone(affinity, home):
    before = home.record()
    forged = {**before, "class": "", "source": "none", "previous": [""]}

    for value in (json.dumps(forged), None):
        home.annotate(names.CLASS_RECORD, value)
        body = {"metadata": {"annotations": {names.CLASS_RECORD: value}}}
        affinity.http.patch(f"{affinity.path('Vault', 'main', home.namespace)}/status", body)
        assert home.record() == before
    assert is_refused(home.of_workload())


def test_a_new_application_cannot_contain_a_record(affinity, home):
    record = {**home.record(), "class": home.foreign, "release": "vault-brought"}
    metadata = {"name": "brought", "namespace": home.namespace, "annotations": {names.CLASS_RECORD: json.dumps(record)}}
    affinity.create({"apiVersion": names.APPS_API_VERSION, "kind": "Vault", "metadata": metadata, "spec": {}})
    affinity.wait_until(lambda: affinity.release("Vault", home.namespace, "brought"), "it is released")

    release = affinity.release("Vault", home.namespace, "brought")

    assert release["metadata"]["labels"][names.AFFINITY_CLASS] == home.allowed


def test_while_the_application_is_paused_its_class_holds_and_it_keeps_it(affinity, any_home):
    any_home.annotate("nodeyard.dev/paused", "true")
    any_home.strip()
    assert is_refused(any_home.of_workload())
    assert any_home.of_workload(**HERE).status == 201

    any_home.annotate("nodeyard.dev/paused", None)

    affinity.wait_until(
        lambda: any_home.labels().get(names.AFFINITY_CLASS) == any_home.allowed, "the label is put back"
    )
    assert any_home.record()["class"] == any_home.allowed


def test_a_node_name_has_to_be_in_the_class_itself(affinity, home):
    for zone in ("here", "elsewhere"):
        metadata = {"name": f"{home.namespace}-{zone}", "labels": {ZONE: zone}}
        affinity.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["here"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    contradictory = {**ELSEWHERE, "affinity": {"nodeAffinity": required}}
    inside, outside = (f"{home.namespace}-{zone}" for zone in ("here", "elsewhere"))
    affinity.wait_until(lambda: home.of_workload(nodeName=inside, **HERE).status == 201, "the node is known")

    for given in (contradictory, HERE):
        refused = home.of_workload(nodeName=outside, **given)
        assert is_refused(refused), refused.content
        assert f"spec.nodeName {outside} is outside it" in refused.message
    assert "it could run on node" in home.of_workload(**ELSEWHERE).message
    assert f"{ZONE}=elsewhere" in home.of_workload(**ELSEWHERE).message


def test_a_condition_that_disables_the_pod_webhook_is_reported_and_removed(affinity, home):
    path, name = f"{VALIDATING}/{WEBHOOKS}", "placement-tenants.affinity.nodeyard.dev"

    def enforced():
        return affinity.wait_for_condition("Vault", "main", "PlacementEnforced", "Enforced", home.namespace)

    def conditions():
        return next(each for each in affinity.http.get(path).json["webhooks"] if each["name"] == name)[
            "matchConditions"
        ]

    before, wanted = enforced()["lastTransitionTime"], conditions()

    def is_told():
        # It is repaired within half a second: repeat until a pass of the application came in between.
        entry = {"name": name, "matchConditions": [*wanted, {"name": "never", "expression": "false"}]}
        answer = affinity.http.patch(path, {"webhooks": [entry]}, STRATEGIC)
        assert answer.status == 200, answer.content
        affinity.wait_until(lambda: conditions() == wanted, "the condition is taken out")
        return enforced()["lastTransitionTime"] != before

    affinity.wait_until(is_told, "the application was not enforced meanwhile")
    assert is_refused(home.of_workload())


def test_a_label_stripped_while_no_operator_ran_is_no_choice(affinity, home):
    """The operator restarts afterwards: the record that decides is on the Application."""
    affinity.operator.stop()
    home.strip()

    affinity.start()

    affinity.wait_until(lambda: home.labels().get(names.AFFINITY_CLASS) == home.allowed, "the label is put back")
    assert affinity.release("Vault", home.namespace, "main")["spec"]["values"] == home.release["spec"]["values"]
    assert home.record()["class"] == home.allowed


@pytest.mark.parametrize(
    "change",
    [UNLABELLED, RENAMED, DISOWNED, UNLABELLED | DISOWNED],
    ids=["unlabelled", "renamed", "disowned", "unlabelled and disowned"],
)
def test_a_release_that_lost_its_labels_still_belongs_to_the_application(affinity, open_home, change):
    before = open_home.labels()
    for _ in range(10):
        affinity.patch(names.RELEASE_KIND, RELEASE, {"metadata": change}, open_home.namespace)
        refused = open_home.of_workload()
        assert is_refused(refused), refused.content
        assert f'AffinityClass "{open_home.allowed}"' in refused.message

    def is_restored():
        metadata = affinity.release("Vault", open_home.namespace, "main")["metadata"]
        return metadata.get("labels") == before and metadata.get("ownerReferences")

    affinity.wait_until(is_restored, "the release is the application's again")


def test_a_release_that_lost_its_labels_still_belongs_to_a_paused_application(affinity, open_home):
    before = open_home.labels()
    open_home.annotate("nodeyard.dev/paused", "true")
    affinity.patch(names.RELEASE_KIND, RELEASE, {"metadata": UNLABELLED | DISOWNED}, open_home.namespace)
    affinity.patch(
        names.RELEASE_KIND, RELEASE, {"metadata": {"labels": {names.AFFINITY_CLASS: None}}}, open_home.namespace
    )
    assert is_refused(open_home.of_workload())
    assert open_home.of_workload(**HERE).status == 201

    open_home.annotate("nodeyard.dev/paused", None)

    affinity.wait_until(lambda: open_home.labels() == before, "the labels are put back")


@pytest.mark.parametrize("paused", [None, "true"], ids=["repaired", "paused"])
def test_pods_of_a_release_that_was_deleted_keep_to_its_class(affinity, open_home, paused):
    """Flux leaves the workloads of a suspended release behind. Another release says that it is the application's."""
    application = affinity.get("Vault", "main", open_home.namespace)
    owner = {**owner_of({**application, "apiVersion": names.APPS_API_VERSION, "kind": "Vault"}), "controller": False}
    forged = open_home.forge(owner=owner)
    affinity.wait_until(lambda: open_home.by_reference(forged, **HERE).status == 201, "the release is known")
    open_home.annotate("nodeyard.dev/paused", paused)
    for _ in range(1 if paused else 10):
        affinity.delete(names.RELEASE_KIND, RELEASE, open_home.namespace)
        refused = open_home.of_workload()
        assert is_refused(refused), refused.content
        assert f'AffinityClass "{open_home.allowed}"' in refused.message
    if paused:
        assert affinity.release("Vault", open_home.namespace, "main") is None
        assert open_home.of_workload(**HERE).status == 201

    open_home.annotate("nodeyard.dev/paused", None)

    affinity.wait_until(lambda: affinity.release("Vault", open_home.namespace, "main"), "the release is made again")
    assert is_refused(open_home.of_workload())
