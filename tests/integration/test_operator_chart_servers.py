"""The operator's charts on API servers: accepted without warnings, installed by helm, with sufficient rights."""

import itertools
import subprocess
import time
from functools import partial

import pytest
from tests.builders.chart_install import CNPG, DEFINITIONS, EVERYTHING, OPERATOR, USER, installed, one
from tests.builders.charts import run
from tests.builders.pools_env import PROGRAM

from nodeyard.admission.client_config import ByService
from nodeyard.admission.configurations import RESOURCES, configuration
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime import rbac
from nodeyard.runtime.webhooks import configuration_name
from nodeyard.testing import third_party_crds
from nodeyard.testing.session import APPLY, Session

RULES_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
ACCESS_REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
NOBODY = rbac.username("nobody")
ONLOOKER = "onlooker"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
RELEASE = "nodeyard"
ACCOUNT_GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
"""Groups of the operator's account; a client certificate with them and its name authenticates as it."""
NOT_EMBEDDED = {"NetworkPolicy"}
"""Kinds that the embedded server does not serve."""


class Cluster:
    """Namespace in which the charts are installed."""

    def __init__(self, api):
        self.api = api
        self.http = Session(api.url, api.authority.pem, api.admin_token)

    def try_out(self, obj):
        """Apply as a dry run; return the warnings."""
        path = f"{self.api.rest.collection(obj)}/{obj['metadata']['name']}"
        query = {"fieldManager": "helm", "force": "true", "fieldValidation": "Strict", "dryRun": "All"}
        answer = self.http.patch(path, obj, APPLY, query=query)
        assert answer.status in (200, 201), f"{path}: {answer.message}"
        return answer.warnings

    def granted(self, user, namespace):
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
        headers = {"Impersonate-User": user}
        answer = self.http.post(RULES_REVIEW, {**review, "spec": {"namespace": namespace}}, headers=headers)
        return set(rights_of(answer.json["status"]["resourceRules"]))

    def may(self, verb, group, resource, user=USER):
        attributes = {"verb": verb, "group": group, "resource": resource}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        answer = self.http.post(ACCESS_REVIEW, {**review, "spec": {"user": user, "resourceAttributes": attributes}})
        return answer.json["status"]["allowed"]


@pytest.fixture(scope="module")
def cluster(api):
    api.rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return Cluster(api)


@pytest.fixture
def release(cluster):
    """`release(capabilities=[...])` installs the operator's chart, or upgrades it to these values."""

    def helm(*arguments, values=None):
        run(*arguments, "--namespace", NAMESPACE, "--kubeconfig", cluster.api.kubeconfig, values=values)

    def upgrade(**values):
        # Operators of other tests have left an aggregating role, as a manual install does.
        helm("upgrade", "--install", RELEASE, OPERATOR, "--take-ownership", values=values)

    yield upgrade
    helm("uninstall", RELEASE, "--ignore-not-found")


def rights_of(rules):
    """Return single rights: group, resource, verb, and the name if any."""
    for rule in rules:
        names = rule.get("resourceNames") or [""]
        yield from itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"], names)


def test_everything_that_can_be_rendered_is_accepted_field_by_field(cluster):
    objects = [each for each in installed(**EVERYTHING) if cluster.api.is_real or each["kind"] not in NOT_EMBEDDED]

    assert {"Deployment", "Service", "PodDisruptionBudget", "ClusterRole"} <= {each["kind"] for each in objects}
    for each in objects:
        cluster.try_out(each)


def test_every_definition_is_accepted_field_by_field(cluster):
    for each in installed(DEFINITIONS):
        assert not cluster.try_out(each), each["metadata"]["name"]


def test_its_pods_are_as_restricted_as_a_namespace_can_ask_for(cluster):
    level = {"pod-security.kubernetes.io/warn": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "chart-restricted", "labels": level}}
    deployment = one(installed(), "Deployment")
    elsewhere = {**deployment, "metadata": {**deployment["metadata"], "namespace": "chart-restricted"}}
    cluster.api.rest.replace_or_create(namespace)

    assert not cluster.try_out(elsewhere)
    if cluster.api.is_real:
        (warning,) = cluster.try_out(as_root(elsewhere))
        assert "would violate PodSecurity" in warning


def as_root(deployment):
    template = deployment["spec"]["template"]
    pod = {**template["spec"], "securityContext": {"runAsUser": 0}}
    return {**deployment, "spec": {**deployment["spec"], "template": {**template, "spec": pod}}}


def test_installed_its_account_may_do_all_that_the_capabilities_declare(cluster, release, eventually):
    release()

    wanted = {namespace: declared(namespace) for namespace in (NAMESPACE, "kube-node-lease")}
    # A real server sees roles a moment later, by its watches.
    eventually(lambda: all(wanted[each] <= cluster.granted(USER, each) for each in wanted), "it has its rights")
    for namespace, rights in wanted.items():
        assert not rights & cluster.granted(NOBODY, namespace), "it is the chart that grants them"


def declared(namespace):
    found = set()
    for capability in CAPABILITIES:
        local = rbac.local_rules(capability) if namespace == NAMESPACE else ()
        elsewhere = rbac.rules_elsewhere(capability).get(namespace, ())
        found.update(rights_of([*rbac.rules(capability), *local, *elsewhere]))
    return found


# plan with the chart's rights


@pytest.fixture
def all_kinds(cluster):
    """The CRDs of all capabilities, whatever the chart installs."""
    third_party_crds.install(cluster.api.rest, [each for every in CAPABILITIES for each in every.definitions()])


@pytest.fixture
def template(cluster, all_kinds):
    spec = {"nodes": 0, "selector": {"matchLabels": {"chart": "none"}}, "template": {"metadata": {}}}
    body = {"apiVersion": "nyallocator.cybozu.io/v1", "kind": "NodeTemplate", "metadata": {"name": "chart-plan"}}
    cluster.api.rest.replace_or_create({**body, "spec": spec})
    yield "chart-plan"
    cluster.api.rest.call("DELETE", f"{cluster.api.rest.collection(body)}/chart-plan")


def plan(kubeconfig):
    """Return exit code, stdout, the lines of stderr, and the duration in seconds."""
    began = time.monotonic()
    command = [*PROGRAM, "plan", "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    return done.returncode, done.stdout, done.stderr.splitlines(), time.monotonic() - began


def skipped(lines):
    """Return the capabilities that are left out for a missing right, one line each."""
    assert all(": skipped: cannot " in line for line in lines), lines
    return [line.partition(":")[0] for line in lines]


def reader(cluster, name):
    """The kubeconfig of a person with the chart's ClusterRole nodeyard-reader."""
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "nodeyard-reader"},
    }
    cluster.api.rest.replace_or_create(binding)
    return cluster.api.user(name)


def test_the_account_of_a_default_install_plans_every_capability(cluster, release, template, eventually):
    release()
    eventually(lambda: declared(NAMESPACE) <= cluster.granted(USER, NAMESPACE), "it has its rights")

    code, told, lines, _ = plan(cluster.api.user(USER, groups=ACCOUNT_GROUPS))

    assert (code in {0, 2}, skipped(lines)) == (True, []), told


def test_a_reader_of_a_default_install_plans_whatever_needs_no_secrets(cluster, release, template, eventually):
    release()
    kubeconfig = reader(cluster, "chart-reader")
    for each in (
        kind.resource for capability in CAPABILITIES for kind in capability.kinds if not kind.holds_credentials
    ):
        eventually(
            lambda each=each: cluster.may("list", each.group, each.plural, "chart-reader"), "the roles are gathered"
        )

    code, told, lines, _ = plan(kubeconfig)

    # Affinity watches the Secrets with values of tenants; a Cluster holds the credentials of its leaf.
    assert (code in {0, 2}, skipped(lines)) == (True, ["affinity", "clustertree"]), told


@pytest.mark.parametrize("chosen", [["spares"], ["spares", "profiles"]], ids=",".join)
def test_an_install_of_some_capabilities_plans_those_and_leaves_out_the_others_at_once(
    cluster, release, template, eventually, chosen
):
    release(capabilities=chosen)
    account, person = cluster.api.user(USER, groups=ACCOUNT_GROUPS), reader(cluster, "chart-reader")
    for user in (USER, "chart-reader"):
        may_list = partial(cluster.may, "list", user=user)
        eventually(lambda may=may_list: may("nyallocator.cybozu.io", "nodetemplates"), "its rights are known")
        eventually(lambda may=may_list: not may("lattice.dev", "latticeclusters"), "the rights of others are gone")
    others = [each.name for each in CAPABILITIES if each.name not in chosen]
    *_, usual = plan(cluster.api.kubeconfig)

    for kubeconfig in (account, person):
        code, told, lines, seconds = plan(kubeconfig)

        assert (code in {0, 2}, skipped(lines)) == (True, others), told
        # Shorter than the timeout of caches, and longer than a slow machine needs.
        assert seconds < 2 * usual + 15


def test_owners_of_other_kinds_may_be_read_once_they_are_named(cluster, release, eventually):
    group, (plural,) = CNPG["apiGroup"], CNPG["resources"]
    release(capabilities=["affinity"])
    eventually(lambda: cluster.may("get", "cozystack.io", "affinityclasses"), "it has its other rights")
    assert not cluster.may("get", group, plural)

    release(capabilities=["affinity"], affinity={"ownerKinds": [CNPG]})

    for verb in ("get", "list", "watch"):
        eventually(lambda verb=verb: cluster.may(verb, group, plural), f"it may {verb} {plural}")
    assert not cluster.may("patch", group, plural)
    assert not cluster.may("get", group, "backups")

    release(capabilities=["affinity"])

    eventually(lambda: not cluster.may("get", group, plural), "the right goes with its value")
    assert cluster.may("get", "cozystack.io", "affinityclasses")


def test_viewers_read_no_credentials_of_leaves(cluster, release, eventually):
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ONLOOKER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": ONLOOKER}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
    }
    cluster.api.rest.replace_or_create(binding)

    release(capabilities=["spares", "clustertree"])

    templates = ("nyallocator.cybozu.io", "nodetemplates")
    eventually(lambda: cluster.may("get", *templates, user=ONLOOKER), "the roles are gathered")
    assert not cluster.may("get", "kosmos.io", "clusters", user=ONLOOKER)
    assert not cluster.may("get", "", "secrets", user=ONLOOKER)


def test_a_disabled_capability_loses_the_role_that_owns_its_webhooks(cluster, release):
    release(capabilities=["spares", "affinity"])
    assert cluster.http.get(f"{ROLES}/nodeyard-affinity").status == 200

    release(capabilities=["spares"])

    assert cluster.http.get(f"{ROLES}/nodeyard-affinity").status == 404
    assert cluster.http.get(f"{ROLES}/nodeyard-spares").status == 200
    (args,) = (each["args"] for each in deployed(cluster)["spec"]["template"]["spec"]["containers"])
    assert "--capabilities=spares" in args


def test_webhooks_that_are_switched_off_block_nothing(cluster, release, eventually):
    release(capabilities=["affinity"])
    owner = cluster.http.get(f"{ROLES}/{rbac.registering_role(AFFINITY)}").json
    service = ByService(NAMESPACE, "nodeyard-webhooks")
    for resource in RESOURCES:
        wanted = configuration(resource, AFFINITY, service, b"", owner)
        cluster.api.rest.replace_or_create({"apiVersion": resource.api_version, "kind": resource.kind, **wanted})

    release(capabilities=["affinity"], webhooks={"enabled": False})

    for resource in RESOURCES:
        path = f"/apis/{resource.api_version}/{resource.plural}/{configuration_name(AFFINITY.name)}"
        eventually(lambda path=path: cluster.http.get(path).status == 404, "it is gone")
    assert cluster.http.get(f"{ROLES}/nodeyard-affinity").status == 200


def deployed(cluster):
    return cluster.http.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/nodeyard").json
