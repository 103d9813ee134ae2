"""The operator's chart and the CRD chart, rendered by the real helm."""

import json
import re

import pytest
from tests.builders.chart_install import (
    CNPG,
    DEFINITIONS,
    EVERYTHING,
    OPERATOR,
    STORAGE,
    container,
    installed,
    one,
    schema,
)
from tests.builders.charts import ROOT, RenderError, read, read_all, run
from typer.testing import CliRunner

from nodeyard.admission.client_config import ByService
from nodeyard.app import manifests, operator
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.manifests import ACCOUNT
from nodeyard.capabilities.affinity import webhook
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.cli import cluster
from nodeyard.cli.app import app
from nodeyard.client.config import Config
from nodeyard.kube.names import NAMESPACE
from nodeyard.plan.brake import Limit
from nodeyard.process import logs
from nodeyard.process.certificates import Authority
from nodeyard.process.version import VERSION
from nodeyard.runtime import rbac
from nodeyard.runtime.health import Address

NAMES = [each.name for each in CAPABILITIES]
RIGHTS = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
REFUSED = {
    "a group of all": (
        {"affinity": {"ownerKinds": [{**CNPG, "apiGroup": "*"}]}},
        "at '/affinity/ownerKinds/0/apiGroup': '*' does not match pattern",
    ),
    "all of a group": (
        {"affinity": {"ownerKinds": [CNPG, {**CNPG, "resources": ["clusters", "*"]}]}},
        "at '/affinity/ownerKinds/1/resources/1': '*' does not match pattern",
    ),
    "all subresources": (
        {"affinity": {"ownerKinds": [{**CNPG, "resources": ["clusters/*"]}]}},
        "at '/affinity/ownerKinds/0/resources/0': 'clusters/*' does not match pattern",
    ),
    "a kind without its group": (
        {"affinity": {"ownerKinds": [{"resources": ["clusters"]}]}},
        "at '/affinity/ownerKinds/0': missing property 'apiGroup'",
    ),
    "a service's kinds of all": (
        {"profiles": {"serviceKinds": [{**STORAGE, "objects": ["*"]}]}},
        "at '/profiles/serviceKinds/0/objects/0': '*' does not match pattern",
    ),
    "a capability that there is not": (
        {"capabilities": ["sparse"]},
        "at '/capabilities/0': value must be one of 'spares', 'pools', 'affinity', 'clustertree', 'profiles'",
    ),
    "no capability": ({"capabilities": []}, "at '/capabilities': minItems: got 0, want 1"),
    "a value that there is not": ({"replicaCount": 3}, "additional properties 'replicaCount' not allowed"),
    "a brake of another form": ({"maxDisruption": "10%"}, "at '/maxDisruption': '10%' does not match pattern"),
    "a share of more than all": ({"maxDisruption": "5,101%"}, "at '/maxDisruption': '5,101%' does not match pattern"),
}


@pytest.fixture(scope="module")
def default():
    return installed()


@pytest.fixture(scope="module")
def everything():
    return installed(**EVERYTHING)


@pytest.fixture
def operated(monkeypatch, tmp_path):
    """Runs a Deployment's arguments and returns the operation that `nodeyard run` would start, without starting it."""

    async def note(operation, _stopped):
        started.append(operation)

    started = []
    monkeypatch.setattr(operator, "operate", note)
    monkeypatch.setattr(logs, "configure", lambda _level: None)
    monkeypatch.setattr(cluster, "load", lambda _path, _context: Config("https://10.0.0.1", source="nowhere"))

    def run(objects, deployment=""):
        authority = Authority()
        (tmp_path / "ca.crt").write_bytes(authority.pem)
        authority.server("nodeyard.example").write(tmp_path, "tls")
        mounted = re.compile("/certificates|/client-ca|/dashboard(-ca)?(?=/)")
        arguments = [mounted.sub(str(tmp_path), each) for each in container(objects, deployment)["args"]]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return started.pop()

    return run


def rights(objects):
    """Return the objects by kind, namespace and name, because helm reorders them."""
    found = [each for each in objects if each["kind"] in RIGHTS]
    named = {(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]): each for each in found}
    assert len(named) == len(found)
    return named


# both charts


@pytest.mark.parametrize("chart", [OPERATOR, DEFINITIONS], ids=["operator", "definitions"])
def test_helm_finds_no_fault_in_it(chart):
    assert "0 chart(s) failed" in run("lint", "--strict", "--namespace", NAMESPACE, chart)


@pytest.mark.parametrize("chart", [OPERATOR, DEFINITIONS], ids=["operator", "definitions"])
def test_it_is_of_this_version_and_knows_every_capability(chart):
    assert read((chart / "Chart.yaml").read_text())["appVersion"] == VERSION
    assert read((chart / "values.yaml").read_text())["capabilities"] == NAMES
    assert schema(chart)["properties"]["capabilities"]["items"]["enum"] == NAMES


def test_every_value_has_a_form_that_it_is_held_to():
    assert read((OPERATOR / "values.yaml").read_text()).keys() == schema(OPERATOR)["properties"].keys() - {"global"}


@pytest.mark.parametrize(("values", "message"), REFUSED.values(), ids=REFUSED)
def test_an_implausible_value_is_refused_by_its_path(values, message):
    with pytest.raises(RenderError) as refused:
        installed(**values)

    assert message in str(refused.value)


def test_another_namespace_is_refused_with_the_reason():
    with pytest.raises(RenderError, match="namespace default: Nodeyard runs in nodeyard-system alone"):
        installed(namespace="default")


# rights


@pytest.mark.parametrize("capability", CAPABILITIES, ids=NAMES)
def test_a_capability_alone_has_the_rights_that_it_declares_and_no_others(capability):
    objects = installed(
        capabilities=[capability.name],
        namespaceGrants={"pools": {"kubeconfigs": []}, "clustertree": {"kubeconfigs": []}},
    )

    granted = [*rbac.roles(capability, ACCOUNT), *rbac.registering_roles(capability, ACCOUNT)]
    assert rights(objects) == rights([*granted, *rbac.people(capability), *rbac.command_roles()])
    assert f"--capabilities={capability.name}" in container(objects)["args"]


def test_by_default_there_are_the_rights_of_all(default):
    names = {each["metadata"]["name"] for each in default if each["kind"] == "ClusterRole"}

    assert {f"nodeyard-{name}" for name in NAMES} <= names
    account = one(default, "ServiceAccount")["metadata"]
    subjects = [each["subjects"] for each in default if each["kind"].endswith("RoleBinding")]
    granted = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    assert all(each == [granted] for each in subjects)
    assert one(default, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_roles_for_people_can_be_left_out():
    objects = installed(capabilities=["spares"], peopleRoles=False)

    assert one(objects, "ClusterRole")["metadata"]["name"] == "nodeyard-spares"


def test_without_webhooks_there_is_no_right_to_register_any(default):
    objects = installed(webhooks={"enabled": False})

    gone = rights(default).keys() - rights(objects).keys()
    owners = {rbac.registering_role(each) for each in CAPABILITIES if each.admission.webhooks}
    assert {name for _kind, _namespace, name in gone} == owners != set()


def test_owner_kinds_are_readable_and_aggregate_to_the_role_of_affinity(everything):
    role = one(everything, "ClusterRole", "nodeyard-affinity-owner-kinds")

    assert role["metadata"]["labels"][rbac.aggregation_label(AFFINITY)] == "true"
    assert role["rules"] == [
        {"apiGroups": ["postgresql.cnpg.io"], "resources": ["clusters"], "verbs": ["get", "list", "watch"]}
    ]


def test_profiles_of_services_may_be_read_and_their_objects_written(everything):
    role = one(everything, "ClusterRole", "nodeyard-profiles-service-kinds")

    assert role["metadata"]["labels"][rbac.aggregation_label(PROFILES)] == "true"
    reading = ["get", "list", "watch"]
    group = ["storage.example.com"]
    assert role["rules"] == [
        {"apiGroups": group, "resources": ["storageprofiles"], "verbs": reading},
        {"apiGroups": group, "resources": ["storageagents"], "verbs": [*reading, "create", "patch", "delete"]},
    ]


def test_kinds_of_a_capability_that_does_not_run_are_ignored():
    values = {key: EVERYTHING[key] for key in ("affinity", "profiles", "policies", "namespaceGrants")}

    objects = installed(capabilities=["clustertree"], **values)

    names = {each["metadata"]["name"] for each in objects}
    assert not names & {"nodeyard-affinity-owner-kinds", "nodeyard-profiles-service-kinds"}
    policies = {each["metadata"]["name"] for each in objects if each["kind"] == "ValidatingAdmissionPolicy"}
    assert policies == {manifests.SECRETS_POLICY}, "that which holds its own account is always there"
    assert not [
        each for each in objects if each["kind"] == "RoleBinding" and each["metadata"]["namespace"] == "default"
    ]


def test_policies_spare_the_account_that_the_operator_has(everything):
    policy = one(everything, "ValidatingAdmissionPolicy", "nodeyard-spares-guard-nodes")

    conditions = {each["name"]: each["expression"] for each in policy["spec"]["matchConditions"]}
    assert conditions["not-the-operator"] == f"request.userInfo.username != '{rbac.username(ACCOUNT)}'"


def test_accounts_that_may_label_releases_are_named_in_addition_to_the_operator(default):
    affinity = {"releaseEditors": ["system:serviceaccount:cozy-system:cozystack-api", "jane"]}
    objects = installed(capabilities=["affinity"], policies=["affinity"], affinity=affinity)

    (condition,) = one(objects, "ValidatingAdmissionPolicy", webhook.LABELS)["spec"]["matchConditions"]
    named = f"['system:serviceaccount:cozy-system:cozystack-api', 'jane', '{rbac.username(ACCOUNT)}']"
    assert condition["expression"] == f"!(request.userInfo.username in {named})"
    # The policies that confine the operator come with its rights, whatever other policies are chosen.
    (condition,) = one(default, "ValidatingAdmissionPolicy", webhook.CONFINEMENT)["spec"]["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == '{rbac.username(ACCOUNT)}'"


# the process


def test_its_arguments_start_all_capabilities_with_a_leader_and_webhooks(default, operated):
    operation = operated(default)

    assert operation.capabilities == CAPABILITIES
    assert operation.settings.leader_elect
    assert not operation.settings.observe
    assert operation.settings.limit == Limit()
    assert not operation.install_crds
    assert (operation.health, operation.metrics) == (Address("", 8081), Address("", 8082))
    assert operation.webhooks.bind == Address("", 9443)
    service = one(default, "Service", "nodeyard-webhooks")
    assert operation.webhooks.reach == ByService(NAMESPACE, service["metadata"]["name"])


def test_the_election_can_be_turned_off(operated):
    assert not operated(installed(extraArgs=["--no-leader-elect"])).settings.leader_elect


def test_its_ports_are_those_that_services_and_probes_ask_for(default, operated):
    operation, pod = operated(default), container(default)

    ports = {each["name"]: each["containerPort"] for each in pod["ports"]}
    listening = {"health": operation.health, "metrics": operation.metrics, "webhooks": operation.webhooks.bind}
    assert ports == {name: address.port for name, address in listening.items()}
    asked = {pod[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert asked == {"health"}
    for name in ("webhooks", "metrics"):
        (port,) = one(default, "Service", f"nodeyard-{name}")["spec"]["ports"]
        assert port["targetPort"] == name


def test_values_reach_the_manifests(operated, tmp_path):
    operation = operated(installed(**{**EVERYTHING, "maxDisruption": "3,1%"}))

    assert (operation.settings.observe, operation.settings.take_over) == (True, True)
    assert operation.settings.limit == Limit(nodes=3, percent=1)
    assert operation.webhooks.folder == tmp_path
    assert operation.webhooks.client_authority == tmp_path / "ca.crt"
    assert operation.webhooks.client_names == ("kube-apiserver",)
    assert operation.install_crds, "that is in extraArgs"


def test_more_variables_and_labels_are_added_to_those_there_are(everything):
    assert {each["name"] for each in container(everything)["env"]} == {"POD_NAME", "HTTPS_PROXY"}
    own = ("Deployment", "ServiceAccount", "Service", "PodDisruptionBudget", "NetworkPolicy")
    labelled = [each for each in everything if each["kind"] in own]
    assert all(each["metadata"]["labels"]["department"] == "fleet" for each in labelled)
    assert {each["kind"] for each in labelled} == set(own)


def test_the_readme_has_every_value_with_its_default():
    text = (OPERATOR / "README.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", text, re.M)

    found: dict[str, object] = {}
    for path, default in rows:
        first, _, rest = path.partition(".")
        if rest:
            found.setdefault(first, {})[rest] = json.loads(default)
        else:
            found[first] = json.loads(default)
    assert found == read((OPERATOR / "values.yaml").read_text())


def test_its_icon_is_where_the_chart_says():
    icon = read((OPERATOR / "Chart.yaml").read_text())["icon"]
    assert (ROOT / icon.removeprefix("https://nodeyard.dev/")).read_text().startswith("<svg")


# split


@pytest.fixture(scope="module")
def split():
    none = {"pools": {"kubeconfigs": []}, "clustertree": {"kubeconfigs": []}}
    return installed(split=True, namespaceGrants=none, policies=["spares", "affinity"])


def test_split_each_capability_has_an_account_with_its_own_rights_and_no_others(split):
    expected = [*rbac.command_roles()]
    for capability in CAPABILITIES:
        account = rbac.service_account(capability)
        expected += [*rbac.roles(capability, account), *rbac.registering_roles(capability, account)]
        expected += rbac.people(capability)
        pod = one(split, "Deployment", account)["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == account
        assert one(split, "ServiceAccount", account)
    assert rights(split) == rights(expected)


def test_split_policies_know_the_account_of_their_capability(split):
    for capability in CAPABILITIES:
        for policy in capability.admission.policies(rbac.username(rbac.service_account(capability))):
            assert one(split, policy["kind"], policy["metadata"]["name"]) == policy


def test_separate_release_editors_are_named_in_addition_to_the_account_of_affinity():
    objects = installed(split=True, policies=["affinity"], affinity={"releaseEditors": ["jane"]})

    (condition,) = one(objects, "ValidatingAdmissionPolicy", webhook.LABELS)["spec"]["matchConditions"]
    account = rbac.username(rbac.service_account(AFFINITY))
    assert condition["expression"] == f"!(request.userInfo.username in ['jane', '{account}'])"


def test_split_there_is_no_page_that_would_show_one_capability_of_five():
    with pytest.raises(RenderError, match="dashboard.enabled: the page shows what its own process runs"):
        installed(split=True, dashboard={"enabled": True})


def test_split_grants_go_to_the_account_of_their_capability():
    objects = installed(split=True, namespaceGrants={"profiles": {"configuration": ["a"]}})

    binding = one(objects, "RoleBinding", "nodeyard-profiles-configuration")
    assert [each["name"] for each in binding["subjects"]] == ["nodeyard-profiles"]


@pytest.mark.parametrize("capability", CAPABILITIES, ids=NAMES)
def test_split_each_process_runs_one_capability_and_is_reached_by_its_own_service(split, operated, capability):
    name = rbac.service_account(capability)
    operation = operated(split, name)
    labels = one(split, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
    services = [each for each in split if each["kind"] == "Service" and each["metadata"]["name"] == name]

    assert operation.capabilities == (capability,)
    assert bool(operation.webhooks) == bool(services) == bool(capability.admission.webhooks)
    for service in services:
        assert operation.webhooks.reach == ByService(NAMESPACE, name)
        assert service["spec"]["selector"].items() <= labels.items()
    others = [each for each in split if each["kind"] == "Deployment" and each["metadata"]["name"] != name]
    assert not any(each["spec"]["selector"]["matchLabels"].items() <= labels.items() for each in others)
    assert one(split, "PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_the_folder_of_ones_own_certificates_is_mounted(everything):
    pod = one(everything, "Deployment")["spec"]["template"]["spec"]

    mounted = {each["mountPath"]: each["name"] for each in container(everything)["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes[mounted["/certificates"]]["secret"]["secretName"] == "own-certificates"


def test_api_servers_are_known_by_their_certificate_and_by_where_they_are(everything):
    arguments = container(everything)["args"]
    assert "--webhook-client-ca=/client-ca/ca.crt" in arguments
    assert "--webhook-client-name=kube-apiserver" in arguments
    mounted = {each["mountPath"]: each["name"] for each in container(everything)["volumeMounts"]}
    volumes = {each["name"]: each for each in one(everything, "Deployment")["spec"]["template"]["spec"]["volumes"]}
    assert volumes[mounted["/client-ca"]]["secret"]["secretName"] == "api-servers"
    (webhooks,) = (
        each for each in one(everything, "NetworkPolicy")["spec"]["ingress"] if each["ports"] == [{"port": "webhooks"}]
    )
    assert webhooks["from"] == [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]


def test_without_webhooks_and_metrics_nothing_is_listened_for(operated):
    objects = installed(webhooks={"enabled": False}, metrics={"enabled": False})
    operation = operated(objects)

    assert operation.webhooks is None
    assert operation.metrics is None
    assert not [each for each in objects if each["kind"] == "Service"]
    assert [each["name"] for each in container(objects)["ports"]] == ["health"]
    assert one(objects, "NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": "health"}]}]


MONITORING = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
}


def test_prometheus_gets_a_service_monitor_and_alert_rules():
    objects = installed(metrics=MONITORING)

    monitor, rule = one(objects, "ServiceMonitor"), one(objects, "PrometheusRule")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    service = one(objects, "Service", "nodeyard-metrics")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    alerts = OPERATOR / "monitoring" / "alerts.yaml"
    assert rule["spec"] == read(alerts.read_text())


@pytest.mark.parametrize("metrics", [{}, {**MONITORING, "enabled": False}], ids=["by default", "without metrics"])
def test_the_prometheus_operator_is_not_required(metrics):
    assert not {"ServiceMonitor", "PrometheusRule", "ConfigMap"} & {each["kind"] for each in installed(metrics=metrics)}


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({}, f"nodeyard:{VERSION}"),
        ({"repository": "example.com/fleet/nodeyard", "tag": "2"}, "example.com/fleet/nodeyard:2"),
        ({"digest": f"sha256:{'0' * 64}"}, f"nodeyard:{VERSION}@sha256:{'0' * 64}"),
    ],
    ids=["by default", "elsewhere", "pinned"],
)
def test_the_image_is_named_by_tag_or_by_digest(image, reference):
    assert container(installed(capabilities=["spares"], image=image))["image"] == reference


def test_every_selector_finds_the_pods_and_none_can_be_overwritten():
    objects = installed(capabilities=["pools"], pod={"labels": {"team": "fleet"}})
    labels = one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        one(objects, "Deployment")["spec"]["selector"]["matchLabels"],
        one(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        *(each["spec"]["selector"] for each in objects if each["kind"] == "Service"),
    ]

    assert len(selectors) == 5
    assert all(each.items() <= labels.items() and each for each in selectors)
    assert labels["nodeyard.dev/pools"] == "true"
    assert labels["team"] == "fleet"


@pytest.mark.parametrize("name", ["20261116", "1e3", "true", "n" * 53], ids=["date", "number", "boolean", "longest"])
def test_a_release_may_have_any_name(name):
    objects = read_all(run("template", name, OPERATOR, "--namespace", NAMESPACE))

    assert one(objects, "Deployment")["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] == name


# definitions


def test_the_definitions_are_those_of_the_capabilities_and_outlive_the_chart():
    objects = installed(DEFINITIONS)

    bare = {each["metadata"]["name"]: each["spec"] for each in objects}
    wanted = [definition for capability in CAPABILITIES for definition in capability.definitions()]
    assert bare == {each["metadata"]["name"]: each["spec"] for each in wanted}
    kept = [each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in objects]
    assert set(kept) == {"keep"}


def test_definitions_of_others_and_of_other_capabilities_are_left_out():
    objects = installed(DEFINITIONS, capabilities=["spares", "affinity"], **{"except": ["tenants.apps.cozystack.io"]})

    assert {each["metadata"]["name"] for each in objects} == {
        "nodetemplates.nyallocator.cybozu.io",
        "affinityclasses.cozystack.io",
        "applicationdefinitions.cozystack.io",
    }


def test_rights_on_configuration_are_given_in_the_namespaces_that_are_named():
    objects = installed(capabilities=["profiles"], namespaceGrants={"profiles": {"configuration": ["a", "b"]}})

    found = {
        each["metadata"]["namespace"]: each["roleRef"]
        for each in objects
        if each["kind"] == "RoleBinding" and each["metadata"]["name"] == "nodeyard-profiles-configuration"
    }
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nodeyard-profiles-configuration"}
    assert found == {"a": role, "b": role}
    bound = {each["roleRef"]["name"] for each in objects if each["kind"].endswith("RoleBinding")}
    assert "nodeyard-profiles-secrets" not in bound, "Secrets are off unless they are granted"


def test_every_namespace_has_to_be_asked_for():
    objects = installed(capabilities=["profiles"], namespaceGrants={"profiles": {"secrets": ["*"]}})

    bound = [each for each in objects if each["kind"] == "ClusterRoleBinding"]
    assert "nodeyard-profiles-secrets" in {each["roleRef"]["name"] for each in bound}


def test_kubeconfigs_of_pools_are_read_by_name_wherever_it_is_not_narrowed(default):
    role = one(default, "ClusterRole", "nodeyard-pools-kubeconfigs")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    assert one(default, "ClusterRoleBinding", role["metadata"]["name"])
    narrowed = installed(capabilities=["pools"], namespaceGrants={"pools": {"kubeconfigs": ["capi-prod"]}})
    assert one(narrowed, "RoleBinding", role["metadata"]["name"])["metadata"]["namespace"] == "capi-prod"
    everywhere = {each["metadata"]["name"] for each in narrowed if each["kind"] == "ClusterRoleBinding"}
    assert role["metadata"]["name"] not in everywhere


def test_a_grant_that_a_capability_does_not_have_is_refused():
    with pytest.raises(RenderError, match=r"namespaceGrants.profiles.secret: profiles has no such grant"):
        installed(capabilities=["profiles"], namespaceGrants={"profiles": {"secret": ["a"]}})


# the dashboard


def test_the_page_is_off_by_default_and_costs_no_right(default):
    assert not [each for each in default if each["metadata"]["name"] == "nodeyard-dashboard"]
    assert not [each for each in container(default)["args"] if "dashboard" in each]


def test_the_page_without_a_certificate_is_reached_inside_the_pod_alone(operated):
    objects = installed(dashboard={"enabled": True})
    operation = operated(objects)
    assert operation.dashboard.bind == Address("127.0.0.1", 8090)
    assert operation.dashboard.tls is None
    found = {each["kind"] for each in objects if each["metadata"]["name"] == "nodeyard-dashboard"}
    assert found == {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}


def test_the_page_with_a_certificate_has_a_service_and_tls(everything, operated, tmp_path):
    operation = operated(everything)
    assert operation.dashboard.bind == Address("", 8090)
    assert operation.dashboard.tls.certificate == tmp_path / "tls.crt"
    assert operation.dashboard.tls.client_authority == tmp_path / "ca.crt"
    service = one(everything, "Service", "nodeyard-dashboard")
    (port,) = (each for each in container(everything)["ports"] if each["name"] == "dashboard")
    assert service["spec"]["ports"] == [{"name": "dashboard", "port": 443, "targetPort": "dashboard"}]
    assert port["containerPort"] == operation.dashboard.bind.port
    policy = one(everything, "NetworkPolicy")
    (rule,) = (each for each in policy["spec"]["ingress"] if each["ports"] == [{"port": "dashboard"}])
    assert rule["from"] == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]


def test_the_dashboard_may_list_only_nodes_and_leases(everything):
    role = one(everything, "ClusterRole", "nodeyard-dashboard")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    role = one(everything, "Role", "nodeyard-dashboard")
    assert role["rules"] == [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]}]


def test_client_certificates_without_tls_are_refused():
    with pytest.raises(RenderError, match="dashboard.clientCASecret: also set dashboard.certificateSecret"):
        installed(dashboard={"enabled": True, "clientCASecret": "people"})
