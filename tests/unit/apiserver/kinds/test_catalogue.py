"""The kinds that the server serves, as `kubectl api-resources` lists them."""

from __future__ import annotations

from nodeyard.apiserver.kinds.catalogue import resources

from .pipeline import RESOURCES

SERVED = """
namespaces ns / Namespace cluster
nodes no / Node cluster
pods po all Pod namespaced
podtemplates / PodTemplate namespaced
secrets / Secret namespaced
configmaps cm / ConfigMap namespaced
services svc all Service namespaced
serviceaccounts sa / ServiceAccount namespaced
events ev / Event namespaced
events ev events.k8s.io Event namespaced
leases coordination.k8s.io Lease namespaced
controllerrevisions apps ControllerRevision namespaced
daemonsets ds all apps DaemonSet namespaced
deployments deploy all apps Deployment namespaced
replicasets rs all apps ReplicaSet namespaced
statefulsets sts all apps StatefulSet namespaced
cronjobs cj all batch CronJob namespaced
jobs all batch Job namespaced
poddisruptionbudgets pdb policy PodDisruptionBudget namespaced
clusterroles rbac.authorization.k8s.io ClusterRole cluster
clusterrolebindings rbac.authorization.k8s.io ClusterRoleBinding cluster
roles rbac.authorization.k8s.io Role namespaced
rolebindings rbac.authorization.k8s.io RoleBinding namespaced
customresourcedefinitions crd crds api-extensions apiextensions.k8s.io CustomResourceDefinition cluster
apiservices api-extensions apiregistration.k8s.io APIService cluster
mutatingwebhookconfigurations api-extensions admissionregistration.k8s.io MutatingWebhookConfiguration cluster
validatingadmissionpolicies api-extensions admissionregistration.k8s.io ValidatingAdmissionPolicy cluster
validatingadmissionpolicybindings api-extensions admissionregistration.k8s.io ValidatingAdmissionPolicyBinding cluster
validatingwebhookconfigurations api-extensions admissionregistration.k8s.io ValidatingWebhookConfiguration cluster
"""


def test_names_groups_and_scopes_are_those_of_the_real_server() -> None:
    lines = [
        " ".join(
            [
                resource.plural,
                *resource.short_names,
                *resource.categories,
                *([resource.group] if resource.group else ["/"] if "all" not in resource.categories else []),
                resource.kind,
                "namespaced" if resource.namespaced else "cluster",
            ]
        )
        for resource in resources()
    ]
    assert lines == SERVED.strip().splitlines()


def test_each_server_gets_resources_of_its_own() -> None:
    first, second = resources(), resources()
    assert all(a is not b and a.strategy is not b.strategy for a, b in zip(first, second, strict=True))


def test_status_and_scale_are_served_where_the_real_server_serves_them() -> None:
    with_status = {plural for (_, plural), resource in RESOURCES.items() if resource.storage.has_status}
    assert with_status == {
        "namespaces", "nodes", "pods", "services", "daemonsets", "deployments", "replicasets", "statefulsets",
        "cronjobs", "jobs", "poddisruptionbudgets", "customresourcedefinitions", "apiservices",
        "validatingadmissionpolicies",
    }  # fmt: skip
    scaled = {plural for (_, plural), resource in RESOURCES.items() if resource.storage.scale}
    assert scaled == {"deployments", "replicasets", "statefulsets"}
