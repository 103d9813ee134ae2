"""ConfigMap or Secret with the configuration of a node."""

from __future__ import annotations

import base64

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.configuration.drop_ins import render
from nodeyard.capabilities.profiles.planning.configuration.objects import config_object
from nodeyard.capabilities.profiles.snapshot import Profile
from nodeyard.plan.model import ObjectRef

from ....builders.profiles import NAMESPACE, NODE, NOVA, SHARED, node

OBJECT = ObjectRef(names.NOVA_API_VERSION, names.COMPUTE_KIND, NODE, NAMESPACE, uid="u-1")
CRLF = SHARED.replace("\n", "\r\n")
RENDERED = render(NOVA, NODE, Profile("p", config=CRLF), "[a]\nb = ü")


def test_a_config_map_has_the_files_and_an_owner() -> None:
    assert config_object(node(), NOVA, RENDERED, "", OBJECT) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "edpm-compute-0-nova-config",
            "namespace": NAMESPACE,
            "labels": {"openstackdataplanenode": NODE, "nodeyard.dev/profile-service": "nova"},
            "annotations": {"nodeyard.dev/profile-hash": RENDERED.hash},
            "ownerReferences": [
                {
                    "apiVersion": "nova.openstack.org/v1beta1",
                    "kind": "NovaExternalCompute",
                    "name": NODE,
                    "uid": "u-1",
                    "controller": True,
                }
            ],
        },
        "data": {"02-nova-profile.conf": CRLF, "03-nova-custom.conf": "[a]\nb = ü"},
    }


def test_a_secret_holds_the_same_bytes() -> None:
    made = config_object(node(), NOVA, RENDERED, "Secret", OBJECT)
    assert (made["kind"], made["type"]) == ("Secret", "Opaque")
    assert {name: base64.b64decode(text).decode() for name, text in made["data"].items()} == RENDERED.files
    assert made["metadata"] == config_object(node(), NOVA, RENDERED, "ConfigMap", OBJECT)["metadata"]


def test_without_a_service_object_the_node_owns_it() -> None:
    owner = config_object(node(), NOVA, RENDERED, "", None)["metadata"]["ownerReferences"][0]
    assert owner == {
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneNode",
        "name": NODE,
        "uid": node().metadata.uid,
        "controller": True,
    }
    assert owner["uid"]


def test_a_config_map_without_files_has_no_data() -> None:
    nothing = render(NOVA, NODE, None, "")
    assert "data" not in config_object(node(), NOVA, nothing, "", OBJECT)
    assert "data" not in config_object(node(), NOVA, nothing, "Secret", OBJECT)
