"""Decisions for `nodeyard why`: the chain of owners, and dead ends."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.builders.affinity_env import application_body, class_body, definition_body, tenant_body
from tests.builders.affinity_views import AffinityView
from tests.builders.placements import body, reference, release
from tests.builders.plans import render_decision

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.kube.names import ZONE
from nodeyard.plan.model import ObjectRef

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOME = "tenant-acme"
CNPG = ("postgresql.cnpg.io/v1", "Cluster")
DC1 = class_body("dc1", nodeSelector={ZONE: "dc1"})
ACME = tenant_body("acme", defaultAffinityClass="dc1", allowedAffinityClasses=["dc1", "dc2"])
RELEASE = release()
CLUSTER = body(*CNPG, "main", labels={names.FLUX_NAME: "postgres-main-db"}, namespace=HOME)
SURROUNDINGS = (DC1, ACME, RELEASE, definition_body("Postgres"))


def pod(*owners, **spec):
    made = body("v1", "Pod", "main-1", namespace=HOME, spec=spec)
    made["metadata"]["ownerReferences"] = list(owners)
    return made


def why(view, api_version, kind, name, namespace=""):
    ref = ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace)
    decisions = [
        decision
        for key in AFFINITY.explain.keys_of(view, ref)
        if (snapshot := AFFINITY.collect(view, key, NOW)) is not None
        for decision in AFFINITY.plan(snapshot, NOW, [ref]).plan.decisions
    ]
    return "\n".join(render_decision(each) for each in decisions)


def why_pod(view):
    return why(view, "v1", "Pod", "main-1", HOME)


def test_a_denied_pod_is_explained_from_tenant_to_decision():
    view = AffinityView(*SURROUNDINGS, CLUSTER, pod(reference(CLUSTER)), recent_kinds=[CNPG])

    assert (
        why_pod(view)
        == """\
Pod tenant-acme/main-1
  MissingNodeSelector: pod tenant-acme/main-1 belongs to application with AffinityClass "dc1" but
    missing required nodeSelector topology.kubernetes.io/zone=dc1

  4 candidates selected:
    Tenant tenant-root/acme: TenantPolicy: allows dc1, dc2; default dc1
    Cluster tenant-acme/main: OwnedBy: owner of Pod tenant-acme/main-1
    HelmRelease tenant-acme/postgres-main-db: ReleaseOf: release of Postgres main-db, class dc1
      (from its label; the Application has no record)
    AffinityClass dc1: ClassRequires: requires topology.kubernetes.io/zone=dc1; enforcement Deny

  What would change it:
    - Apply _scheduling to the pods in the chart
"""
    )


def test_an_owner_that_may_not_be_read_is_named_with_the_error():
    troubles = {"Cluster.postgresql.cnpg.io": "cannot watch clusters.postgresql.cnpg.io: forbidden: no right"}
    view = AffinityView(*SURROUNDINGS, pod(reference(CLUSTER)), recent_kinds=[CNPG], troubles=troubles)

    said = " ".join(why_pod(view).split())

    assert said.startswith("Pod tenant-acme/main-1 OwnerForbidden: pod tenant-acme/main-1 may belong")
    assert "1 candidate not selected: Cluster tenant-acme/main: OwnerForbidden" in said
    assert "Grant get, list and watch on the owner's kind" in said
    assert "set affinity.ownerKinds of the chart, or create a ClusterRole with the label rbac.nodeyard.dev/" in said


@pytest.mark.parametrize(
    ("owner", "reason"),
    [
        (reference(CLUSTER, name="gone"), "OwnerMissing: Cluster tenant-acme/gone does not exist"),
        (reference(CLUSTER, uid="another"), "OwnerReplaced: Cluster tenant-acme/main is gone"),
    ],
    ids=["missing", "made again"],
)
def test_owners_that_lead_nowhere_are_listed(owner, reason):
    said = " ".join(why_pod(AffinityView(*SURROUNDINGS, CLUSTER, pod(owner), recent_kinds=[CNPG])).split())

    assert "UnownedAllowed" in said
    assert reason in said


def test_unwatched_kinds_of_owners_are_watched_first():
    unwatched = AffinityView(*SURROUNDINGS, pod(reference(CLUSTER)))
    ref = ObjectRef(api_version="v1", kind="Pod", name="main-1", namespace=HOME)

    assert list(AFFINITY.explain.kinds(unwatched, ref)) == [CNPG]
    assert (
        list(
            AFFINITY.explain.kinds(
                AffinityView(*SURROUNDINGS, CLUSTER, pod(reference(CLUSTER)), recent_kinds=[CNPG]), ref
            )
        )
        == []
    )
    assert "Cluster.postgresql.cnpg.io is not watched" in " ".join(why_pod(unwatched).split())


def test_pods_of_exempt_namespaces_are_never_checked():
    system = body("v1", "Pod", "main-1", namespace="kube-system", spec={})

    assert "NamespaceExempt" in why(AffinityView(*SURROUNDINGS, system), "v1", "Pod", "main-1", "kube-system")


def test_an_application_is_explained_with_its_tenant_class_and_release():
    view = AffinityView(*SURROUNDINGS, application_body("Postgres", HOME, "main-db", affinityClass="gpu"))

    said = " ".join(why(view, names.APPS_API_VERSION, "Postgres", "main-db", HOME).split())

    assert said.startswith("Postgres tenant-acme/main-db AffinityClassNotFound")
    assert "Tenant tenant-root/acme: TenantPolicy: allows dc1, dc2; default dc1" in said
    assert "HelmRelease tenant-acme/postgres-main-db: ReleaseOf" in said
    assert "Set spec.affinityClass to one of dc1, dc2" in said


def test_a_class_that_the_tenant_only_inherits_is_allowed_where_the_list_is():
    """The list of the inner tenant cannot exceed that of the outer one."""
    place, far = "tenant-acme-web", class_body("far")
    inner, app = tenant_body("web", HOME), application_body("Postgres", place, "cache", affinityClass="far")
    narrowed = tenant_body("web", HOME, allowedAffinityClasses=["dc1"])

    for web, wanted in ((inner, "tenant acme"), (narrowed, "tenants acme, then web")):
        view = AffinityView(*SURROUNDINGS, far, web, app)
        said = " ".join(why(view, names.APPS_API_VERSION, "Postgres", "cache", place).split())
        assert f"add it to spec.allowedAffinityClasses of {wanted} " in said
        assert f"Add far to spec.allowedAffinityClasses of {wanted}" in said


def test_the_missing_class_is_never_suggested():
    acme = tenant_body("acme", allowedAffinityClasses=["gone"])
    app = application_body("Postgres", HOME, "main-db", affinityClass="gone")

    view = AffinityView(definition_body("Postgres"), acme, RELEASE, app)
    said = " ".join(why(view, names.APPS_API_VERSION, "Postgres", "main-db", HOME).split())

    assert "AffinityClassNotFound" in said
    assert 'Create AffinityClass "gone"' in said
    assert "one of" not in said
    assert "Set spec.affinityClass to another class, once tenant acme allows one" in said


def test_a_tenant_is_explained_with_every_tenant_above_it():
    inner = tenant_body("web", HOME, allowedAffinityClasses=["dc1"])
    view = AffinityView(*SURROUNDINGS, inner)

    said = " ".join(why(view, names.APPS_API_VERSION, "Tenant", "web", HOME).split())

    assert "Tenant tenant-acme/web: TenantPolicy: allows dc1; default dc1" in said
    assert "Tenant tenant-root/acme: TenantPolicy: allows dc1, dc2; default dc1" in said
    assert "Tenant tenant-acme/web: TenantPolicy" in why(view, "v1", "Namespace", "tenant-acme-web").replace("\n", " ")


def test_a_class_is_explained_with_its_users():
    said = " ".join(why(AffinityView(*SURROUNDINGS), names.API_VERSION, "AffinityClass", "dc1").split())

    assert "NoNodeMatches" in said
    assert "Postgres tenant-acme/main-db, Tenant tenant-root/acme: UsesClass: uses class dc1" in said


def test_a_failed_condition_is_never_explained_as_fine():
    going = tenant_body("acme")
    going["metadata"] |= {"deletionTimestamp": "2029-12-31T00:00:00Z", "finalizers": ["other/one"]}
    told = why(AffinityView(going), names.APPS_API_VERSION, "Tenant", "acme", "tenant-root")
    assert "Deleting: Tenant tenant-root/acme is being deleted" in told

    odd = class_body("odd", nodeSelector={"-bad": "x"})
    assert "InvalidSelector" in why(AffinityView(odd), names.API_VERSION, "AffinityClass", "odd")

    view = AffinityView(definition_body("Postgres"))
    assert "Establishing" in why(view, names.API_VERSION, names.DEFINITION_KIND, "postgres")

    failed = release()
    condition = {"type": "Ready", "status": "False", "reason": "InstallFailed", "message": "no chart"}
    failed |= {"spec": {}, "status": {"conditions": [condition]}}
    app = application_body("Postgres", HOME, "main-db")
    view = AffinityView(DC1, ACME, failed, definition_body("Postgres"), app)
    said = " ".join(why(view, names.APPS_API_VERSION, "Postgres", "main-db", HOME).split())
    assert "not ready: InstallFailed: no chart" in said


def test_an_application_is_identified_by_kind_namespace_and_name():
    (ref,) = AFFINITY.explain.aliases["application"].parse("Postgres/tenant-acme/main-db")

    assert (ref.kind, ref.namespace, ref.name) == ("Postgres", HOME, "main-db")
    assert AFFINITY.explain.aliases["application"].parse("main-db") == ()
