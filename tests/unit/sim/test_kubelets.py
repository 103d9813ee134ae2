"""A kubelet registers what its KubeadmConfig says, or never does."""

import pytest

from nodeyard.sim.machines.kubelets import RegistrationError, is_refused, registration

UNINITIALIZED = {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}


def config(part="joinConfiguration", taints=None, **arguments):
    told = {"kubeletExtraArgs": [{"name": name.replace("_", "-"), "value": arguments[name]} for name in arguments]}
    if taints is not None:
        told["taints"] = taints
    return {part: {"nodeRegistration": told}}


def test_labels_and_taints_are_those_of_the_config_and_cluster_apis_own():
    said = registration(config(node_labels="a=b,lattice.dev/pool=gpu"), is_control_plane=False)
    assert said.labels == {"a": "b", "lattice.dev/pool": "gpu"}
    assert said.taints == (UNINITIALIZED,)


def test_an_empty_value_of_a_taint_counts_as_missing():
    said = registration(config(taints=[{"key": "k", "effect": "NoExecute", "value": ""}]), is_control_plane=False)
    assert said.taints == ({"key": "k", "effect": "NoExecute"}, UNINITIALIZED)


def test_taints_as_an_argument_drop_all_others():
    said = registration(config(register_with_taints="k=v:NoSchedule,e:NoExecute"), is_control_plane=False)
    assert said.taints == (
        {"key": "k", "value": "v", "effect": "NoSchedule"},
        {"key": "e", "effect": "NoExecute"},
    )


def test_a_control_plane_is_tainted_unless_it_says_otherwise():
    assert registration({}, is_control_plane=True).taints[0]["key"] == "node-role.kubernetes.io/control-plane"
    assert registration(config("initConfiguration", taints=[]), is_control_plane=True).taints == ()


@pytest.mark.parametrize(
    "key",
    [
        "node-role.kubernetes.io/gpu",
        "node-restriction.kubernetes.io/x",
        "a.node-restriction.kubernetes.io/x",
        "kubernetes.io/role",
        "foo.k8s.io/x",
        "topology.kubernetes.io/rack",
    ],
)
def test_labels_of_kubernetes_are_refused(key):
    assert is_refused(key)
    with pytest.raises(RegistrationError, match=key):
        registration(config(node_labels=f"{key}=x"), is_control_plane=False)


@pytest.mark.parametrize(
    "key",
    [
        "workload",
        "nvidia.com/gpu",
        "node.cluster.x-k8s.io/tier",
        "node.kubernetes.io/x",
        "a.kubelet.kubernetes.io/x",
        "topology.kubernetes.io/zone",
        "notkubernetes.io/x",
    ],
)
def test_other_labels_and_the_kubelets_own_are_not(key):
    assert registration(config(node_labels=f"{key}=x"), is_control_plane=False).labels == {key: "x"}


@pytest.mark.parametrize("text", ["a", "a b=c", "a=b c", "=x"])
def test_an_invalid_label_keeps_the_machine_from_joining(text):
    with pytest.raises(RegistrationError, match="is not a label"):
        registration(config(node_labels=text), is_control_plane=False)


@pytest.mark.parametrize("text", ["k=v", "k=v:Sometimes"])
def test_an_invalid_taint_keeps_the_machine_from_joining(text):
    with pytest.raises(RegistrationError, match="is not a taint"):
        registration(config(register_with_taints=text), is_control_plane=False)


def test_a_taint_twice_keeps_the_machine_from_joining():
    taint = {"key": "k", "effect": "NoSchedule"}
    with pytest.raises(RegistrationError, match="duplicated taints"):
        registration(config(taints=[taint, {**taint, "value": "v"}]), is_control_plane=False)
