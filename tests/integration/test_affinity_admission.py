"""Admission of pods, templates and classes: enforcement, forged labels, and pods of no application."""

import re
from pathlib import Path

import pytest
import yaml
from tests.builders.affinity_env import CONTAINERS, DRY, ROOT, class_body, pod_body, set_body, tenant_body, unique

from nodeyard.capabilities.affinity import names

ZONE = "topology.kubernetes.io/zone"


def terms(*zones):
    """Build a node affinity with a term for each zone."""
    expressions = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [each]}]} for each in zones]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": expressions}}


@pytest.fixture(scope="module")
def platform(affinity):
    affinity.definition("Queue")
    return affinity


class Home:
    """A tenant with one class and one application of it."""

    def __init__(self, affinity, tenant=None, **spec):
        self.affinity = affinity
        self.affinity_class = affinity.affinity_class(unique("class"), **({"nodeSelector": {ZONE: "here"}} | spec))
        allowed = {"defaultAffinityClass": self.affinity_class, "allowedAffinityClasses": [self.affinity_class]}
        self.namespace = affinity.tenant(unique("home"), **(allowed | (tenant or {})))
        affinity.application_release("Queue", self.namespace, "jobs")
        affinity.install(self.namespace, "queue-jobs")

    def pod(self, **given):
        return self.affinity.pod(self.namespace, "queue-jobs", **given)

    def decided(self, decision):
        return self.affinity.operator.metric(
            "nodeyard_affinity_reviews_total", affinity_class=self.affinity_class, decision=decision
        )


# enforcement


def test_a_class_that_warns_admits_pods_outside_with_a_warning(platform):
    home = Home(platform, enforcement="Warn")

    answer = home.pod()

    assert answer.status == 201
    assert any("but missing required nodeSelector topology.kubernetes.io/zone=here" in each for each in answer.warnings)
    assert home.decided("warned") == 1


def test_a_class_that_audits_admits_them_without_a_warning_and_counts_them(platform):
    home = Home(platform, enforcement="Audit")

    answer = home.pod()

    assert (answer.status, answer.warnings) == (201, [])
    assert home.decided("audited") == 1
    platform.wait_until(
        lambda: platform.status(names.CLASS_KIND, home.affinity_class).get("violators") == 1,
        "the class counts who is outside of it",
    )


def test_a_namespace_weakens_a_class_only_where_it_may(platform):
    strict, lenient = Home(platform), Home(platform, allowNamespaceOverride=True)
    for home in (strict, lenient):
        label = {"metadata": {"labels": {names.ENFORCEMENT: "Warn"}}}
        assert platform.patch("Namespace", home.namespace, label).status == 200

    platform.wait_until(lambda: lenient.pod().status == 201, "the namespace's word counts")

    assert strict.pod().status == 403
    platform.wait_for_condition("Queue", "jobs", "PlacementEnforced", "NotEnforced", lenient.namespace)
    platform.wait_for_condition("Queue", "jobs", "PlacementEnforced", "Enforced", strict.namespace)


# placement


def test_a_class_of_several_zones_admits_each_and_a_denial_names_where_else_a_pod_could_run(platform):
    home = Home(platform, nodeSelector={}, nodeAffinity=terms("dc1", "dc2"))

    assert home.pod(nodeSelector={ZONE: "dc2"}).status == 201
    assert home.pod(affinity={"nodeAffinity": terms("dc2", "dc1")}).status == 201
    refused = home.pod(affinity={"nodeAffinity": terms("dc1", "dc3")})
    assert refused.status == 403
    assert "could run outside it, for example on a node with topology.kubernetes.io/zone=dc3" in refused.message


def test_a_pod_that_a_daemon_set_made_for_a_node_of_the_class_is_admitted_by_that_node(platform):
    home = Home(platform, nodeSelector={}, nodeAffinity=terms("dc1", "dc2"))
    for zone in ("dc2", "dc3"):
        metadata = {"name": f"{home.namespace}-{zone}", "labels": {ZONE: zone}}
        platform.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    platform.plurals["DaemonSet"] = ("apps/v1", "daemonsets", True)
    daemons = set_body(home.namespace, "queue-jobs", affinity={"nodeAffinity": terms("dc1", "dc2")})
    del daemons["spec"]["serviceName"]
    platform.create({**daemons, "kind": "DaemonSet"})

    def made_for(zone):
        """Replace the template's terms by the node name, as the DaemonSet controller does."""
        field = {"key": "metadata.name", "operator": "In", "values": [f"{home.namespace}-{zone}"]}
        named = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": named}}
        return platform.pod(home.namespace, "queue-jobs", kind="DaemonSet", query=DRY, affinity=affinity)

    platform.wait_until(lambda: made_for("dc2").status == 201, "the node is known")
    assert made_for("dc3").status == 403


def test_a_pod_that_names_its_node_is_checked_all_the_same(platform):
    home = Home(platform)

    assert home.pod(nodeName="anywhere").status == 403


def test_pods_that_run_can_be_changed_and_deleted_whatever_became_of_their_class(platform):
    home = Home(platform)
    pod = home.pod(nodeSelector={ZONE: "here"}).json["metadata"]["name"]
    platform.affinity_class(other := unique("class"), nodeSelector={ZONE: "there"})
    tenant = home.namespace.removeprefix("tenant-")
    both = [home.affinity_class, other]
    platform.patch("Tenant", tenant, {"spec": {"allowedAffinityClasses": both}}, ROOT)
    platform.wait_until(
        lambda: platform.patch("Queue", "jobs", {"spec": {"affinityClass": other}}, home.namespace).status == 200,
        "the application changes its class",
    )
    platform.wait_until(
        lambda: home.pod(nodeSelector={ZONE: "there"}).status == 201, "pods of the new class are admitted"
    )

    changed = platform.patch("Pod", pod, {"metadata": {"labels": {"touched": "yes"}}}, home.namespace)

    assert changed.status == 200, changed.content
    assert platform.delete("Pod", pod, home.namespace).status in (200, 202)


# owners


def test_labels_that_are_ours_cannot_be_forged(platform):
    home = Home(platform)
    forged = {
        names.MANAGED: "true",
        names.APPLICATION_NAME: "somebody-else",
        names.AFFINITY_CLASS: "anywhere",
    }

    assert home.pod(labels=forged).status == 403
    admitted = home.pod(labels=forged, nodeSelector={ZONE: "here"}).json["metadata"]["labels"]
    assert admitted[names.APPLICATION_NAME] == "jobs"
    assert admitted[names.AFFINITY_CLASS] == home.affinity_class

    bare = platform.post(pod_body(home.namespace, unique("bare-"), [], labels={**forged, "own": "kept"}))
    assert bare.json["metadata"]["labels"] == {"own": "kept"}


def test_pods_without_application_are_admitted_unless_the_tenant_requires_an_allowed_class(platform):
    free = Home(platform)
    bound = Home(platform, tenant={"unownedPods": "RequireAllowed"})

    assert platform.post(pod_body(free.namespace, unique("free-"), [])).status == 201
    platform.wait_until(
        lambda: platform.post(pod_body(bound.namespace, unique("loose-"), [])).status == 403, "it is bound"
    )
    refused = platform.post(pod_body(bound.namespace, "loose", []))
    assert f"pod {bound.namespace}/loose belongs to no application" in refused.message
    assert bound.affinity_class in refused.message
    assert platform.post(pod_body(bound.namespace, "fitting", [], nodeSelector={ZONE: "here"})).status == 201


def test_a_child_tenant_cannot_escape_the_classes(platform):
    home = Home(platform, tenant={"unownedPods": "RequireAllowed"})
    within = platform.tenant(unique("inner"), home.namespace, defaultAffinityClass="", unownedPods="Allow")

    platform.wait_until(
        lambda: platform.application("Queue", within, unique("loose"), affinityClass="").status == 403, "it is bound"
    )
    refused = platform.application("Queue", within, "unsaid")
    assert (refused.status, "Queue tenant" in refused.message) == (403, True), refused.message
    assert "To fix it, set spec.affinityClass to an allowed class" in refused.message
    assert platform.application("Queue", within, "said", affinityClass=home.affinity_class).status == 201
    assert platform.post(pod_body(within, "loose", [])).status == 403
    assert platform.post(pod_body(within, "fitting", [], nodeSelector={ZONE: "here"})).status == 201


def test_outside_tenants_pods_without_application_are_not_checked(platform):
    platform.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": (name := unique("plain"))}})

    assert platform.post(pod_body(name, "anything", [])).status == 201


# templates


def test_a_template_that_its_pods_would_be_refused_for_is_warned_about(platform):
    home = Home(platform)
    body = set_body(home.namespace, "queue-jobs")
    body["metadata"] = {**body["metadata"], "name": "second"}

    answer = platform.post(body)

    assert answer.status == 201
    (warning,) = answer.warnings
    assert f"template of StatefulSet {home.namespace}/second" in warning
    assert "its pods will be denied" in warning
    fine = {**body, "metadata": {**body["metadata"], "name": "third"}}
    fine["spec"] = {**fine["spec"], "template": {**fine["spec"]["template"], "spec": {
        "containers": CONTAINERS, "nodeSelector": {ZONE: "here"}
    }}}  # fmt: skip
    assert platform.post(fine).warnings == []


# the server's own checks


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({}, "a class needs a nodeSelector", id="says nothing"),
        pytest.param({"nodeSelector": {"-bad": "x"}}, "is no label key", id="no key"),
        pytest.param({"nodeSelector": {"zone": "a b"}}, "a value is at most 63", id="no value"),
        pytest.param({"enforcement": "Maybe", "nodeSelector": {"a": "b"}}, "supported values", id="no enforcement"),
        pytest.param(
            {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}},
            "a term without requirements matches no node",
            id="an empty term",
        ),
        pytest.param(
            {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "cpus", "operator": "Gt", "values": ["many"]}]}
            ]}}},
            "Gt and Lt need exactly one whole number",
            id="no number",
        ),
    ],
)  # fmt: skip
def test_an_invalid_class_is_not_stored(platform, spec, message):
    answer = platform.post(class_body(unique("bad"), **spec))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert message in answer.message


def test_the_name_of_a_class_fits_a_label(platform):
    answer = platform.post(class_body("a" * 64, nodeSelector={"a": "b"}))

    assert answer.status == 422
    assert "metadata.name becomes the value of label apps.cozystack.io/affinity-class" in answer.message


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"nodeSelector": {ZONE: "b"}}, id="changed"),
        pytest.param({"nodeSelector": None, "nodeAffinity": terms("a")}, id="taken away"),
        pytest.param({"nodeAffinity": terms("a")}, id="added to"),
    ],
)
def test_the_selector_of_a_class_is_immutable(platform, change):
    name = platform.affinity_class(unique("fixed"), nodeSelector={ZONE: "a"})

    answer = platform.patch(names.CLASS_KIND, name, {"spec": change})

    assert answer.status == 422
    assert "cannot change: create another class" in answer.message
    assert platform.patch(names.CLASS_KIND, name, {"spec": {"enforcement": "Audit"}}).status == 200


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        pytest.param("two-words", {}, "without '-'", id="a dash"),
        pytest.param("a" * 47, {}, "at most 46 characters", id="too long"),
        pytest.param(
            "fine", {"defaultAffinityClass": "a", "allowedAffinityClasses": ["b"]}, "a is not one of", id="default"
        ),
    ],
)
def test_an_invalid_tenant_is_not_stored(platform, name, spec, message):
    answer = platform.post(tenant_body(name, **spec))

    assert answer.status == 422
    assert message in answer.message


def test_fields_that_only_cozystack_knows_are_kept(platform):
    platform.tenant(name := unique("kept"), resourceQuotas={"cpu": "10"}, computeplane=True)

    assert platform.get("Tenant", name, ROOT)["spec"]["resourceQuotas"] == {"cpu": "10"}


PAGE = (Path(__file__).parents[2] / "docs" / "affinity.md").read_text()


@pytest.mark.parametrize("sample", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_manifests_of_the_documentation_are_accepted(platform, sample):
    body = yaml.safe_load(sample)
    body["metadata"]["name"] = unique("sample")
    platform.plurals["ClusterRole"] = ("rbac.authorization.k8s.io/v1", "clusterroles", False)

    answer = platform.post(body, dryRun="All", fieldValidation="Strict")

    assert answer.status == 201, answer.content


def test_a_class_in_use_is_not_deleted_among_many_either(platform):
    home = Home(platform)
    selected = {"fieldSelector": f"metadata.name={home.affinity_class}"}

    answer = platform.http.delete(platform.path(names.CLASS_KIND), query=selected)

    assert answer.status == 403, answer.content
    assert f'AffinityClass "{home.affinity_class}" is in use' in answer.message
    assert "deletionTimestamp" not in platform.get(names.CLASS_KIND, home.affinity_class)["metadata"]
