"""The design's flow from class to pod, on both servers with called webhooks, and the effects of changes."""

import pytest
from tests.builders.affinity_env import ROOT, application_body, owner_of, pod_body, set_body, unique

from nodeyard.capabilities.affinity import names

ZONE = "topology.kubernetes.io/zone"
DC1, DC2 = {ZONE: "dc1"}, {ZONE: "dc2"}


@pytest.fixture(scope="module")
def platform(affinity):
    """Create the objects that the design's administrator creates."""
    affinity.affinity_class("dc1", nodeSelector=DC1)
    affinity.affinity_class("dc2", nodeSelector=DC2)
    affinity.affinity_class("gpu", nodeSelector={"node.kubernetes.io/gpu": "true"})
    affinity.definition("Postgres")
    affinity.definition("Redis")
    return affinity


@pytest.fixture
def acme(platform):
    """Create a tenant as in the design; return its namespace."""
    return platform.tenant(
        unique("acme"),
        defaultAffinityClass="dc1",
        allowedAffinityClasses=["dc1", "dc2"],
        etcd=False,
        ingress=True,
        monitoring=False,
    )


def left_in_tenant(platform, tenant, kind):
    """Return the warning about the contents of a tenant's namespace that has an object of the kind."""
    warnings = platform.http.delete(platform.path("Tenant", tenant, ROOT), query={"dryRun": "All"}).warnings
    return next((each for each in warnings if f"1 {kind}" in each), "")


def labels_of(answer):
    assert answer.status == 201, answer.content
    return answer.json["metadata"]["labels"]


def test_a_class_chosen_by_an_application_reaches_its_pods(platform, acme):
    release = platform.application_release("Postgres", acme, "main-db", affinityClass="dc1", replicas=3)

    assert release["metadata"]["labels"][names.AFFINITY_CLASS] == "dc1"
    assert release["spec"]["values"]["_scheduling"] == {"affinityClass": "dc1", "nodeSelector": DC1}
    assert release["spec"]["values"]["replicas"] == 3
    assert release["spec"]["valuesFrom"] == [{"kind": "Secret", "name": "cozystack-values"}]
    platform.install(acme, "postgres-main-db", nodeSelector=DC1)
    assert labels_of(platform.pod(acme, "postgres-main-db", nodeSelector=DC1)) == {
        "apps.cozystack.io/application.group": "apps.cozystack.io",
        "apps.cozystack.io/application.kind": "Postgres",
        "apps.cozystack.io/application.name": "main-db",
        "apps.cozystack.io/affinity-class": "dc1",
        "internal.cozystack.io/managed-by-cozystack": "true",
        "internal.cozystack.io/tenantresource": "false",
    }


def test_a_pod_whose_chart_forgot_the_selector_is_refused_with_the_message_of_the_design(platform, acme):
    platform.application_release("Postgres", acme, "main-db", affinityClass="dc1")
    platform.install(acme, "postgres-main-db")

    answer = platform.pod(acme, "postgres-main-db", name="main-db-1")

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        'admission webhook "placement-tenants.affinity.nodeyard.dev" denied the request: '
        f'pod {acme}/main-db-1 belongs to application with AffinityClass "dc1" but missing required nodeSelector '
        "topology.kubernetes.io/zone=dc1"
    )

    def events():
        found = platform.http.get(f"/apis/events.k8s.io/v1/namespaces/{acme}/events").json["items"]
        return [each["note"] for each in found if each["reason"] == "MissingNodeSelector"]

    assert "missing required nodeSelector" in platform.wait_until(events, "the application is told")[0]
    assert platform.operator.metric("nodeyard_affinity_reviews_total", affinity_class="dc1", decision="denied") >= 1


def test_a_missing_class_refuses_pods_with_the_message_of_the_design_and_counts_once_it_is(platform):
    gone = unique("gone")
    acme = platform.tenant(unique("acme"), defaultAffinityClass="dc1", allowedAffinityClasses=["dc1", gone])
    platform.application_release("Postgres", acme, "lost", affinityClass="dc1")
    where = platform.path(names.RELEASE_KIND, "postgres-lost", acme)
    foreign = {"metadata": {"name": "other-lost", "labels": {
        names.APPLICATION_GROUP: names.APPS_GROUP,
        names.APPLICATION_KIND: "Other",
        names.APPLICATION_NAME: "lost",
        names.AFFINITY_CLASS: gone,
    }}}  # fmt: skip
    body = {**platform.http.get(where).json, **foreign}
    platform.create({"apiVersion": names.FLUX_API_VERSION, "kind": "HelmRelease", **body, "metadata": {
        **foreign["metadata"], "namespace": acme
    }})  # fmt: skip
    platform.install(acme, "other-lost")

    answer = platform.pod(acme, "other-lost")

    assert answer.message.endswith(f'denied the request: AffinityClass "{gone}" not found')
    platform.affinity_class(gone, nodeSelector=DC2)
    platform.wait_until(lambda: platform.pod(acme, "other-lost", nodeSelector=DC2).status == 201, "the class counts")
    assert platform.pod(acme, "other-lost", nodeSelector=DC1).status == 403


def test_the_values_of_a_tenant_have_its_classes(platform, acme):
    values = platform.values(acme)

    assert values["_namespace"]["defaultAffinityClass"] == "dc1"
    assert values["_namespace"]["allowedAffinityClasses"] == ["dc1", "dc2"]
    assert values["_namespace"]["ingress"] == acme
    assert "_cluster" in values


def test_an_application_without_a_class_gets_the_default_and_keeps_it_when_that_changes(platform, acme):
    release = platform.application_release("Redis", acme, "cache", replicas=2)
    assert release["metadata"]["labels"][names.AFFINITY_CLASS] == "dc1"
    assert release["metadata"]["annotations"][names.CLASS_SOURCE] == "default"

    tenant = acme.removeprefix("tenant-")
    answer = platform.patch("Tenant", tenant, {"spec": {"defaultAffinityClass": "dc2"}}, ROOT)
    assert answer.status == 200, answer.content
    platform.wait_until(lambda: platform.values(acme)["_namespace"]["defaultAffinityClass"] == "dc2", "it is dc2 now")
    assert platform.application_release("Redis", acme, "later")["metadata"]["labels"][names.AFFINITY_CLASS] == "dc2"
    platform.patch("Redis", "cache", {"spec": {"replicas": 3}}, acme)

    platform.wait_until(
        lambda: platform.release("Redis", acme, "cache")["spec"]["values"]["replicas"] == 3, "it is scaled"
    )
    assert platform.release("Redis", acme, "cache")["metadata"]["labels"][names.AFFINITY_CLASS] == "dc1"
    assert (
        platform.wait_for_condition("Redis", "cache", "AffinityClassResolved", "KeptFromDefault", acme)["status"]
        == "True"
    )


def test_the_status_of_an_application_says_its_class_and_copies_its_release(platform, acme):
    platform.application_release("Postgres", acme, "told", affinityClass="dc2")
    platform.report("Postgres", acme, "told")

    platform.wait_for_condition("Postgres", "told", "Ready", "InstallSucceeded", acme)
    status = platform.status("Postgres", "told", acme)
    assert (status["affinityClass"], status["nodeSelector"], status["version"]) == ("dc2", DC2, "1.2.3")
    assert platform.condition("Postgres", "told", "PlacementEnforced", acme)["status"] == "True"


def test_while_a_class_changes_pods_of_both_are_admitted_until_the_release_is_ready(platform, acme):
    platform.application_release("Postgres", acme, "moving", affinityClass="dc1")
    platform.install(acme, "postgres-moving", nodeSelector=DC1)
    platform.report("Postgres", acme, "moving")
    platform.wait_for_condition("Postgres", "moving", "Ready", "InstallSucceeded", acme)

    platform.patch("Postgres", "moving", {"spec": {"affinityClass": "dc2"}}, acme)

    def labels():
        return platform.release("Postgres", acme, "moving")["metadata"]["labels"]

    platform.wait_until(lambda: labels().get(names.AFFINITY_CLASS) == "dc2", "the release changes its class")
    assert labels()[names.PREVIOUS_CLASS] == "dc1"
    platform.wait_until(
        lambda: platform.pod(acme, "postgres-moving", nodeSelector=DC2).status == 201, "the new one counts"
    )
    old = platform.pod(acme, "postgres-moving", nodeSelector=DC1)
    assert labels_of(old)[names.AFFINITY_CLASS] == "dc1"
    assert platform.pod(acme, "postgres-moving").status == 403

    platform.report("Postgres", acme, "moving")
    platform.wait_until(lambda: names.PREVIOUS_CLASS not in labels(), "the change is over")
    platform.wait_until(
        lambda: platform.pod(acme, "postgres-moving", nodeSelector=DC1).status == 403, "the old one is over"
    )
    assert platform.pod(acme, "postgres-moving", nodeSelector=DC2).status == 201


def test_changing_the_class_again_during_a_rollout_admits_pods_of_all_classes_until_the_release_is_ready(platform):
    space = platform.tenant(unique("rover"), allowedAffinityClasses=["dc1", "dc2", "gpu"])
    platform.application_release("Postgres", space, "roving", affinityClass="dc1")
    platform.install(space, "postgres-roving", nodeSelector=DC1)
    platform.report("Postgres", space, "roving")
    platform.wait_for_condition("Postgres", "roving", "Ready", "InstallSucceeded", space)

    def labels():
        return platform.release("Postgres", space, "roving")["metadata"]["labels"]

    for wanted in ("dc2", "gpu"):
        platform.patch("Postgres", "roving", {"spec": {"affinityClass": wanted}}, space)
        platform.wait_until(lambda wanted=wanted: labels().get(names.AFFINITY_CLASS) == wanted, "the release changes")
        platform.report("Postgres", space, "roving", "False")
        platform.wait_for_condition("Postgres", "roving", "Ready", "InstallFailed", space)

    assert labels()[names.PREVIOUS_CLASS] == "dc2_dc1"
    gpu = {"node.kubernetes.io/gpu": "true"}
    platform.wait_until(
        lambda: platform.pod(space, "postgres-roving", nodeSelector=gpu).status == 201, "the new one counts"
    )
    stamps = [
        labels_of(platform.pod(space, "postgres-roving", nodeSelector=each))[names.AFFINITY_CLASS]
        for each in (DC1, DC2, gpu)
    ]
    assert stamps == ["dc1", "dc2", "gpu"]
    assert platform.pod(space, "postgres-roving").status == 403

    platform.report("Postgres", space, "roving")
    platform.wait_until(lambda: names.PREVIOUS_CLASS not in labels(), "the change is over")
    for over in (DC1, DC2):
        platform.wait_until(
            lambda over=over: platform.pod(space, "postgres-roving", nodeSelector=over).status == 403, "it is over"
        )


def test_a_withdrawn_class_stays_where_it_is_and_gets_no_new_users(platform, acme):
    platform.application_release("Postgres", acme, "kept", affinityClass="dc1")
    tenant = acme.removeprefix("tenant-")
    body = {"spec": {"allowedAffinityClasses": ["dc2"], "defaultAffinityClass": "dc2"}}
    assert platform.patch("Tenant", tenant, body, ROOT).status == 200
    platform.wait_for_condition("Postgres", "kept", "AffinityClassResolved", "AffinityClassWithdrawn", acme)

    answer = platform.patch("Postgres", "kept", {"spec": {"replicas": 5}}, acme)

    assert answer.status == 200, answer.content
    assert any("dc1" in each and "already so before" in each for each in answer.warnings)
    platform.wait_until(
        lambda: platform.release("Postgres", acme, "kept")["spec"]["values"].get("replicas") == 5, "it is scaled"
    )
    kept = platform.release("Postgres", acme, "kept")
    assert kept["metadata"]["labels"][names.AFFINITY_CLASS] == "dc1"
    assert kept["spec"]["values"]["_scheduling"] == {"affinityClass": "dc1", "nodeSelector": DC1}
    refused = platform.application("Postgres", acme, "fresh", affinityClass="dc1")
    assert refused.status == 403
    assert "dc1" in refused.message
    assert "allows dc2" in refused.message


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({"affinityClass": "gpu"}, "gpu", id="not allowed"),
        pytest.param({"affinityClass": "nowhere"}, "nowhere", id="not there"),
        pytest.param({"_scheduling": {"nodeSelector": {}}}, "_scheduling", id="a key of the platform"),
    ],
)
def test_an_application_that_could_not_be_is_refused_at_once(platform, acme, spec, told):
    answer = platform.application("Postgres", acme, "bad", **spec)

    assert answer.status in (403, 422), answer.content
    assert 'admission webhook "applications.affinity.nodeyard.dev" denied the request' in answer.message
    assert told in answer.message


def test_a_child_tenant_may_use_no_more_classes_and_inherits_the_default(platform, acme):
    refused = platform.http.post(
        platform.path("Tenant", namespace=acme),
        {
            "apiVersion": names.APPS_API_VERSION,
            "kind": "Tenant",
            "metadata": {"name": "greedy"},
            "spec": {"allowedAffinityClasses": ["dc1", "gpu"]},
        },
    )
    assert refused.status in (403, 422)
    assert "gpu" in refused.message

    team = platform.tenant("team", acme, allowedAffinityClasses=["dc1"])

    assert team == f"{acme}-team"
    assert platform.values(team)["_namespace"]["defaultAffinityClass"] == "dc1"
    assert platform.values(team)["_namespace"]["allowedAffinityClasses"] == ["dc1"]
    assert platform.application("Redis", team, "far", affinityClass="dc2").status == 403
    assert platform.application_release("Redis", team, "near")["metadata"]["labels"][names.AFFINITY_CLASS] == "dc1"


def test_a_tenant_that_has_something_in_it_is_not_deleted(platform, acme):
    platform.application_release("Redis", acme, "inside")
    tenant = acme.removeprefix("tenant-")

    answer = platform.delete("Tenant", tenant, ROOT)

    assert answer.status == 403
    assert "1 application" in answer.message
    assert platform.get("Tenant", tenant, ROOT)["metadata"].get("deletionTimestamp") is None


def test_remaining_objects_of_a_tenant_are_not_deleted_without_approval(platform):
    tenant = unique("full")
    home = platform.tenant(tenant)
    platform.install(home, "foreign")
    told = platform.wait_until(lambda: left_in_tenant(platform, tenant, "StatefulSet"), "what is left is known")
    assert "waits for approval" in told
    assert "nodeyard approve" in told
    assert platform.delete("Tenant", tenant, ROOT).status == 200

    condition = platform.wait_for_condition("Tenant", tenant, "Ready", "NamespaceDeletionHeld", ROOT)

    assert f"it deletes Namespace {home} with 1 StatefulSet and everything else in it" in condition["message"]
    assert platform.get("Namespace", home)["metadata"].get("deletionTimestamp") is None

    def approve(message):
        approval = message.rpartition(" ")[2].strip("`")
        body = {"metadata": {"annotations": {"nodeyard.dev/approve": approval}}}
        assert platform.patch("Tenant", tenant, body, ROOT).status == 200

    for number in (1, 2):
        platform.create(pod_body(home, f"later-{number}", []))
        platform.wait_until(lambda number=number: f" {number} Pod" in held_text(platform, tenant), "it is counted")
        # An approval is for what it names; the next pod shows that it has been seen.
        approve(condition["message"])
    assert platform.get("Namespace", home)["metadata"].get("deletionTimestamp") is None
    approve(held_text(platform, tenant))
    platform.wait_until(lambda: platform.get("Tenant", tenant, ROOT) is None, "the tenant is gone")


def held_text(platform, tenant):
    return platform.wait_for_condition("Tenant", tenant, "Ready", "NamespaceDeletionHeld", ROOT)["message"]


@pytest.mark.parametrize("kind", ["StatefulSet", "Pod"])
def test_a_held_tenant_is_deleted_by_itself_once_its_contents_are_gone(platform, kind):
    tenant, name = unique("emptied"), unique("freed")
    platform.affinity_class(name, nodeSelector=DC1)
    home = platform.tenant(tenant, allowedAffinityClasses=[name])
    platform.create(set_body(home, "left") if kind == "StatefulSet" else pod_body(home, "left", []))
    platform.wait_until(lambda: left_in_tenant(platform, tenant, kind), "what is left is known")
    assert platform.delete("Tenant", tenant, ROOT).status == 200
    platform.wait_for_condition("Tenant", tenant, "Ready", "NamespaceDeletionHeld", ROOT)

    platform.http.delete(platform.path(kind, "left", home), query={"gracePeriodSeconds": 0})

    platform.wait_until(lambda: platform.get("Tenant", tenant, ROOT) is None, "the tenant is gone")
    platform.wait_until(lambda: platform.delete(names.CLASS_KIND, name).status == 404, "its class is gone")


def test_a_pod_that_an_object_of_another_kind_controls_holds_the_deletion_too(platform):
    """For example the pod of a database operator, whose own kind is not counted."""
    tenant = unique("operated")
    home = platform.tenant(tenant)
    kind = {"apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND}
    spec = {"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": "x"}}
    owner = platform.create({**kind, "metadata": {"name": "database", "namespace": home}, "spec": spec})
    platform.create(pod_body(home, "left", [owner_of({**owner, **kind})]))
    platform.wait_until(lambda: left_in_tenant(platform, tenant, "Pod"), "what is left is known")
    assert platform.delete("Tenant", tenant, ROOT).status == 200

    condition = platform.wait_for_condition("Tenant", tenant, "Ready", "NamespaceDeletionHeld", ROOT)

    assert f"it deletes Namespace {home} with 1 Pod" in condition["message"]
    platform.http.delete(platform.path("Pod", "left", home), query={"gracePeriodSeconds": 0})
    platform.wait_until(lambda: platform.get("Tenant", tenant, ROOT) is None, "the tenant is gone")


def test_a_secret_is_not_counted_and_holds_no_deletion_and_warning_and_event_say_so(platform):
    tenant = unique("secretive")
    home = platform.tenant(tenant)
    platform.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "left", "namespace": home}})

    deleted = platform.delete("Tenant", tenant, ROOT)
    assert deleted.status == 200
    assert f"Deletes Namespace {home} of Tenant {ROOT}/{tenant} with everything in it" in deleted.warnings[0]
    assert "Secrets and other kinds are not counted" in deleted.warnings[0]

    def deletions():
        events = platform.http.get(f"/apis/events.k8s.io/v1/namespaces/{ROOT}/events").json["items"]
        return [each["note"] for each in events if (each["regarding"]["name"], each["reason"]) == what]

    what = (tenant, "NamespaceDeleted")
    platform.wait_until(lambda: platform.get("Tenant", tenant, ROOT) is None, "the tenant is gone")
    (note,) = platform.wait_until(deletions, "the deletion is told")
    assert note == (
        f"Deleted Namespace {home} of Tenant {ROOT}/{tenant} with everything in it (no PersistentVolumeClaims, "
        "workloads or single pods; Secrets and other kinds are not counted)"
    )


def test_a_pod_holds_the_deletion_of_its_tenant_also_where_there_is_no_class(platform):
    tenant = unique("classless")
    home = platform.tenant(tenant)
    platform.create(pod_body(home, "left", []))
    platform.wait_until(lambda: left_in_tenant(platform, tenant, "Pod"), "what is left is known")

    assert platform.delete("Tenant", tenant, ROOT).status == 200

    condition = platform.wait_for_condition("Tenant", tenant, "Ready", "NamespaceDeletionHeld", ROOT)
    assert f"it deletes Namespace {home} with 1 Pod" in condition["message"]
    platform.http.delete(platform.path("Pod", "left", home), query={"gracePeriodSeconds": 0})
    platform.wait_until(lambda: platform.get("Tenant", tenant, ROOT) is None, "the tenant is gone")


def test_a_class_in_use_is_not_deleted_and_its_users_are_named(platform):
    name, tenant = unique("used"), unique("user")
    platform.affinity_class(name, nodeSelector={"used": "yes"})
    home = platform.tenant(tenant, defaultAffinityClass=name, allowedAffinityClasses=[name])
    platform.application_release("Redis", home, "cache")
    users = [{"kind": "Redis", "namespace": home, "name": "cache"},
             {"kind": "Tenant", "namespace": ROOT, "name": tenant}]  # fmt: skip
    platform.wait_until(lambda: platform.status(names.CLASS_KIND, name).get("inUseBy") == users, "they are named")

    answer = platform.delete(names.CLASS_KIND, name)

    assert answer.status == 403
    assert (
        f'AffinityClass "{name}" is in use by 2 objects: Redis {home}/cache, Tenant {ROOT}/{tenant}' in answer.message
    )


def test_a_definition_in_use_is_not_deleted(platform, acme):
    platform.application_release("Redis", acme, "used")
    platform.wait_until(lambda: platform.delete(names.DEFINITION_KIND, "redis").status == 403, "it is in use")

    assert f"{acme}/used" in platform.delete(names.DEFINITION_KIND, "redis").message


def test_a_class_says_how_many_nodes_are_in_it_by_zone(platform):
    name = unique("racks")
    platform.affinity_class(name, nodeSelector={f"{name}/rack": "a"})
    platform.wait_for_condition(names.CLASS_KIND, name, "NodesMatch", "NoNodeMatches")
    for number, zone in enumerate(("dc1", "dc1", "dc2")):
        labels = {f"{name}/rack": "a", ZONE: zone}
        platform.create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"{name}-{number}", "labels": labels}}
        )

    def counted():
        status = platform.status(names.CLASS_KIND, name)
        return status.get("nodes"), status.get("zones")

    zones = [{"zone": "dc1", "nodes": 2}, {"zone": "dc2", "nodes": 1}]
    platform.wait_until(lambda: counted() == (3, zones), "the nodes are counted")
    assert platform.condition(names.CLASS_KIND, name, "Ready")["status"] == "True"


def test_a_deleted_application_deletes_its_release(platform, acme):
    platform.application_release("Redis", acme, "going")
    platform.delete("Redis", "going", acme)

    # The real garbage collector discovers new kinds with a delay.
    platform.wait_until(lambda: platform.release("Redis", acme, "going") is None, "its release is gone", timeout=120)


def test_a_hand_edit_of_a_release_is_reverted_and_foreign_values_are_removed(platform, acme):
    platform.application_release("Redis", acme, "edited", replicas=2, affinityClass="dc1")
    tampered = {
        "metadata": {"labels": {names.AFFINITY_CLASS: "gpu"}},
        "spec": {"values": {"_scheduling": {"nodeSelector": {"x": "y"}}, "extra": True}},
    }
    platform.patch(names.RELEASE_KIND, "redis-edited", tampered, acme)

    def is_mended():
        release = platform.release("Redis", acme, "edited")
        wanted = {"replicas": 2, "affinityClass": "dc1", "_scheduling": {"affinityClass": "dc1", "nodeSelector": DC1}}
        return release["metadata"]["labels"][names.AFFINITY_CLASS] == "dc1" and release["spec"]["values"] == wanted

    platform.wait_until(is_mended, "the release is as it should be")


def test_a_dry_run_leaves_no_trace(platform, acme):
    platform.application_release("Postgres", acme, "dry", affinityClass="dc1")
    platform.install(acme, "postgres-dry")
    before = platform.operator.metric("nodeyard_affinity_reviews_total")

    refused = platform.pod(acme, "postgres-dry", query={"dryRun": "All"})
    admitted = platform.post(application_body("Postgres", acme, "never", affinityClass="dc1"), dryRun="All")

    assert (refused.status, admitted.status) == (403, 201)
    assert platform.operator.metric("nodeyard_affinity_reviews_total") == before

    def warnings():
        events = platform.http.get(f"/apis/events.k8s.io/v1/namespaces/{acme}/events").json["items"]
        return [each for each in events if each["regarding"].get("name") == "dry" and each["type"] == "Warning"]

    # Events are written in order: an Event about the dry run would come before this one.
    assert platform.pod(acme, "postgres-dry").status == 403
    (told,) = platform.wait_until(warnings, "the refusal that was meant is told")
    assert (told.get("series") or {}).get("count", 1) == 1
