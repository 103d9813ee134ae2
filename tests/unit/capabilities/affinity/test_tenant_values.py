"""The values of a tenant's namespace: `_cluster` is copied, `_namespace` is rendered."""

import pytest
from tests.builders.tenants import secret, tenant

from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy
from nodeyard.capabilities.affinity.planning.values import (
    Values,
    ValuesError,
    child_values,
    host_faults,
    read,
    render,
    root_values,
)
from nodeyard.kube.manifests import load

CLUSTER = """\
_cluster:
  # what the platform says
  root-host: "example.org"
  version: 1e3
  word: "1e3"
  switch: "yes"
  script: |
    one

    two
  list:
  - 0o17
  - "0o17"
"""
NAMESPACE = """\
_namespace:
  etcd: tenant-root
  ingress: tenant-root
  monitoring: tenant-root
  seaweedfs: tenant-root
  host: example.org
"""
SEED = """\
_cluster:
  # ... existing cluster config
_namespace:
  # ... existing namespace config
  defaultAffinityClass: dc1
  allowedAffinityClasses:
    - dc1
    - dc2
"""
"""Return the values of the design in the namespace tenant-acme."""
NOTHING = EffectivePolicy()
ACME = EffectivePolicy(default="dc1", allowed=("dc1", "dc2"))


def parent(text=CLUSTER + NAMESPACE):
    return read(secret("tenant-root", text))


def child(text=CLUSTER + NAMESPACE, policy=NOTHING, path="acme", **spec):
    return render(child_values(tenant(path, spec=spec), parent(text)), policy)


def test_the_designs_example_is_reproduced_in_meaning():
    made = load(child("_cluster:\n  # ... existing cluster config\n" + NAMESPACE, ACME, ingress=True))
    wanted = load(SEED)
    assert made.keys() == wanted.keys()
    assert made["_cluster"] == wanted["_cluster"]
    assert wanted["_namespace"].items() <= made["_namespace"].items()
    assert made["_namespace"].keys() - wanted["_namespace"].keys() == {
        *("etcd", "ingress", "gateway", "monitoring", "seaweedfs", "host")
    }


def test_cluster_values_are_copied_verbatim_through_all_generations():
    first = child()
    assert first.startswith(CLUSTER + "_namespace:\n")
    second = render(child_values(tenant("acme/web"), parent(first)), EffectivePolicy())
    assert second.startswith(CLUSTER + "_namespace:\n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(NAMESPACE + CLUSTER, id="in the other order"),
        pytest.param("# first\n---\n" + CLUSTER + "other: 1\n" + NAMESPACE, id="among other keys"),
        pytest.param((CLUSTER + NAMESPACE).replace("\n", "\r\n"), id="with other line ends"),
        pytest.param("base: &b {x: 1}\n_cluster:\n  a: *b\n" + NAMESPACE, id="with an anchor elsewhere"),
        pytest.param('{"_cluster": {"word": "1e3", "a": [1, true, null]}, "_namespace": {}}', id="as JSON"),
        pytest.param('"_cluster": {"a": "yes"}\n', id="with the key in quotes"),
        pytest.param("_cluster: plain\n", id="a word"),
        pytest.param("_cluster:\n- a\n- b\n", id="a list at the margin"),
        pytest.param("_cluster:\n  text: |\n    one", id="a text without an end of line"),
        pytest.param("_cluster:\n  text: |+\n    one\n\n\n" + NAMESPACE, id="a text with lines at its end"),
        pytest.param("_cluster: ~\n", id="null"),
    ],
)
def test_the_cluster_means_the_same_however_it_was_written(text):
    assert load(child(text))["_cluster"] == load(text)["_cluster"]


@pytest.mark.parametrize("text", ["", "# nothing\n", NAMESPACE])
def test_without_a_cluster_there_is_an_empty_one(text):
    assert load(child(text))["_cluster"] == {}


def test_enabled_services_are_the_tenants_own_and_others_are_inherited():
    made = load(child(ingress=True, gateway=True))["_namespace"]
    assert made == {
        "etcd": "tenant-root",
        "ingress": "tenant-acme",
        "gateway": "tenant-acme",
        "monitoring": "tenant-root",
        "seaweedfs": "tenant-root",
        "host": "acme.example.org",
    }


@pytest.mark.parametrize(
    ("own", "above", "host"),
    [("", "example.org", "acme.example.org"), ("acme.test", "example.org", "acme.test"), ("", "", "")],
)
def test_a_host_is_the_tenants_own_or_below_its_parents(own, above, host):
    found = child_values(tenant("acme", spec={"host": own}), parent(f"_namespace: {{host: '{above}'}}"))
    assert found.namespace["host"] == host


def test_classes_are_omitted_without_any_policy():
    assert not {"defaultAffinityClass", "allowedAffinityClasses"} & load(child())["_namespace"].keys()


def test_no_class_at_all_is_an_empty_list_in_the_values():
    assert load(child(policy=EffectivePolicy(allowed=())))["_namespace"]["allowedAffinityClasses"] == []


def test_a_default_that_cannot_be_used_is_not_passed_on():
    made = load(child(policy=EffectivePolicy(default="gpu", allowed=("dc1",), fault="it is not allowed")))
    assert "defaultAffinityClass" not in made["_namespace"]


@pytest.mark.parametrize("name", ["yes", "no", "1e3", "0x10", "null", "1.5", "2001-01-01", "y", "12e0", "0o17"])
def test_every_class_name_is_a_string_for_any_yaml_parser(name):
    text = child(policy=EffectivePolicy(default=name, allowed=(name,)))
    assert f'  defaultAffinityClass: "{name}"\n' in text
    assert f'    - "{name}"\n' in text


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (secret("a", "a: ["), "it is not YAML (line "),
        (secret("a", "- 1"), "it is not a mapping"),
        (secret("a", "_namespace: 3"), "_namespace is not a mapping"),
        (secret("a", "_namespace: {host: 3}"), "_namespace.host cannot be the value of a label"),
        (secret("a", "_namespace: {etcd: 'a b'}"), "_namespace.etcd cannot be the value of a label"),
        (secret("a", "_cluster: {? [1, 2] : 3}"), "it is not YAML"),
        ({"metadata": {}, "data": {"values.yaml": "%%%"}}, "it is not base64"),
        ({"metadata": {}, "data": {"values.yaml": "/////w=="}}, "it is not base64 of a text"),
        ({"metadata": {}, "data": {"other": "YQ=="}}, "there is no such key"),
        ({"metadata": {}, "data": None}, "there is no such key"),
    ],
)
def test_values_that_cannot_be_read_say_why(body, error):
    with pytest.raises(ValuesError) as raised:
        read(body)
    assert error in str(raised.value)


def test_an_error_contains_no_values():
    with pytest.raises(ValuesError) as raised:
        read(secret("a", "password: hunter2\nhunter2: {hunter2"))
    assert "hunter2" not in str(raised.value)


# the root_values


def test_the_top_takes_the_cluster_from_the_platform_and_points_at_itself():
    made = root_values(tenant("root"), None, secret("cozy-system", CLUSTER))
    assert made.cluster == CLUSTER
    assert made.namespace == {
        "etcd": "tenant-root",
        "ingress": "tenant-root",
        "gateway": "",
        "monitoring": "tenant-root",
        "seaweedfs": "tenant-root",
        "host": "example.org",
    }


def test_the_root_has_its_own_gateway_and_host_if_it_sets_them():
    made = root_values(tenant("root", spec={"gateway": True, "host": "a.test"}), None, secret("cozy-system", CLUSTER))
    assert (made.namespace["gateway"], made.namespace["host"]) == ("tenant-root", "a.test")


def test_without_the_platforms_the_top_keeps_the_cluster_it_has():
    assert root_values(tenant("root"), secret("tenant-root", CLUSTER + NAMESPACE), None).cluster == CLUSTER


def test_without_a_tenant_the_top_is_as_its_secret_says():
    live = secret("tenant-root", CLUSTER + "_namespace: {host: other.test}\n")
    assert root_values(None, live, secret("cozy-system", "_cluster: {}")).namespace["host"] == "other.test"
    assert root_values(None, live, None).cluster == CLUSTER


def test_without_anything_the_top_has_an_empty_cluster():
    assert root_values(None, None, None).cluster == Values().cluster == "_cluster: {}\n"


@pytest.mark.parametrize("host", ["a b", "A.test", "a_b.test", "-a.test", f"{'a' * 60}.test"])
def test_a_host_that_is_no_name_or_too_long_for_a_label_is_refused(host):
    assert host_faults(host)


@pytest.mark.parametrize("host", ["", "example.org", "a"])
def test_a_good_host_passes(host):
    assert host_faults(host) == []
