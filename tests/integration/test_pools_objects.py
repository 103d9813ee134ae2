"""The server accepts every golden object unchanged, and a second apply changes nothing.

The real server has the upstream CRDs, and Cluster API's webhooks validate and default the objects. The Cluster API
manager runs too, so the second apply uses optimistic locking and is retried on a conflict.
"""

import copy
import json
from urllib.parse import urlencode

import pytest

from nodeyard.capabilities.pools import names
from nodeyard.plan.managed_fields import transfer_fields
from nodeyard.sim import stand_in_crds as stand_ins
from nodeyard.testing import third_party_crds
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.rest import RestError
from nodeyard.testing.session import APPLY, MERGE

from ..golden.pools.clusters import GOLDEN

OLD = f"v1alpha1.{names.INFRASTRUCTURE_GROUP}"
"""A server has one CRD per name, so the old Proxmox kinds use a separate group here."""
OLD_VERSION = f"{names.INFRASTRUCTURE_GROUP}/v1alpha1"


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def rest(request):
    if request.param == "embedded":
        with EmbeddedServer() as server:
            old = stand_ins.definitions("proxmox-v1alpha1")
            third_party_crds.install(server.rest, [*stand_ins.definitions(*capi_groups()), *map(in_old_group, old)])
            yield server.rest
        return
    with ControlPlane(cluster_api=True) as plane:
        old = [only_v1alpha1(each) for each in third_party_crds.definitions("proxmox") if is_generated(each)]
        third_party_crds.install(plane.rest, map(in_old_group, old))
        yield plane.rest


def capi_groups():
    return [group for group in stand_ins.GROUPS if group != "flux"]


def is_generated(definition):
    return definition["spec"]["names"]["kind"] in ("ProxmoxCluster", "ProxmoxMachineTemplate")


def only_v1alpha1(definition):
    """Return the CRD as it was before v1alpha2."""
    versions = [{**each, "storage": True} for each in definition["spec"]["versions"] if each["name"] == "v1alpha1"]
    return {**definition, "spec": {**definition["spec"], "versions": versions}}


def in_old_group(definition):
    metadata = {**definition["metadata"], "name": f"{definition['spec']['names']['plural']}.{OLD}"}
    return {**definition, "metadata": metadata, "spec": {**definition["spec"], "group": OLD}}


def placed(obj):
    """Return the object with the group that this server uses."""
    is_old = obj["apiVersion"] == OLD_VERSION
    return {**obj, "apiVersion": f"{OLD}/v1alpha1"} if is_old else obj


def path(rest, obj, **query):
    return f"{rest.collection(obj)}/{obj['metadata']['name']}?{urlencode(query)}"


def apply(rest, obj):
    target = path(rest, obj, fieldManager=names.MANAGER, fieldValidation="Strict")
    return rest.call("PATCH", target, obj, content_type=APPLY)


def apply_again(rest, obj):
    """Apply to the live object; return its resourceVersion before and after, None on a conflict."""
    before = rest.get(path(rest, obj))["metadata"]["resourceVersion"]
    fixed = copy.deepcopy(obj)
    fixed["metadata"]["resourceVersion"] = before
    try:
        return before, apply(rest, fixed)["metadata"]["resourceVersion"]
    except RestError as error:
        if error.reason != "Conflict" or error.causes:
            raise
        return None


@pytest.mark.parametrize("golden", GOLDEN.values(), ids=GOLDEN)
def test_every_object_is_accepted_and_a_second_apply_changes_nothing(rest, eventually, golden):
    objects = [placed(obj) for obj in golden.objects()]
    for obj in objects:
        taken = apply(rest, obj)
        assert missing(obj, taken) == [], f"{obj['kind']} {obj['metadata']['name']} was taken with losses"
    for obj in objects:
        before, after = eventually(lambda obj=obj: apply_again(rest, obj), f"{obj['kind']} is left alone")
        assert after == before, f"{obj['kind']} {obj['metadata']['name']} is written by an apply of the same"


def take_over(rest, obj):
    """Take field ownership of the live object; return the result, None on a conflict."""
    live = rest.get(path(rest, obj))
    fields = transfer_fields(live, obj, names.MANAGER, names.MOVER)
    assert fields is not None
    version = live["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version, "managedFields": fields}}
    try:
        after = rest.call("PATCH", path(rest, obj, fieldManager=names.MANAGER), patch, content_type=MERGE)
    except RestError as error:
        if error.reason != "Conflict":
            raise
        return None
    assert after["spec"] == live["spec"]
    return after


@pytest.mark.parametrize("kind", ["AWSCluster", "Cluster", "KubeadmControlPlane", "MachineDeployment"])
def test_fields_taken_over_are_owned_as_if_applied(rest, eventually, kind):
    objects = [copy.deepcopy(each) for each in GOLDEN["aws-classes"].objects()]
    obj = next(each for each in objects if each["kind"] == kind)
    obj["metadata"]["name"] = "taken-over"
    rest.replace_or_create(objects[0])
    rest.call("POST", f"{rest.collection(obj)}?fieldManager={names.MOVER}", obj)

    eventually(lambda: take_over(rest, obj), "it is taken over")

    before, after = eventually(lambda: apply_again(rest, obj), "it is left alone")
    assert after == before


def test_fields_that_clusterctl_moved_are_taken_over_and_removed_when_the_spec_drops_them(rest, eventually):
    """The server accepts the generated managedFields and uses them."""
    (obj,) = [each for each in GOLDEN["docker-seed"].objects() if each["kind"] == "MachineDeployment"][:1]
    obj = copy.deepcopy(obj)
    obj["metadata"]["name"] = "moved"
    obj["metadata"]["annotations"] = {names.AUTOSCALER_MIN: "1", names.AUTOSCALER_MAX: "5"}
    obj["spec"]["template"]["metadata"]["labels"]["node-role.kubernetes.io/gpu"] = "true"
    rest.replace_or_create(next(iter(GOLDEN["docker-seed"].objects())))
    whole = copy.deepcopy(obj)
    whole["metadata"]["annotations"]["example.com/theirs"] = "stays"
    rest.call("POST", f"{rest.collection(obj)}?fieldManager={names.MOVER}", whole)

    after = eventually(lambda: take_over(rest, obj), "it is taken over")
    assert transfer_fields(after, obj, names.MANAGER, names.MOVER) is None
    del obj["metadata"]["annotations"], obj["spec"]["template"]["metadata"]["labels"]["node-role.kubernetes.io/gpu"]
    left = apply(rest, obj)

    assert not {names.AUTOSCALER_MIN, names.AUTOSCALER_MAX} & left["metadata"]["annotations"].keys()
    assert left["metadata"]["annotations"]["example.com/theirs"] == "stays"
    assert left["spec"]["template"]["metadata"]["labels"] == obj["spec"]["template"]["metadata"]["labels"]


def missing(sent, stored, at=""):
    """Return the paths of fields that were sent and not stored."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [lost for key, value in sent.items() for lost in missing(value, stored.get(key), f"{at}.{key}")]
    return [] if sent == stored or _has_all(sent, stored) else [f"{at}: {json.dumps(sent)} is {json.dumps(stored)}"]


def _has_all(sent, stored):
    if not isinstance(sent, list) or not isinstance(stored, list) or len(sent) != len(stored):
        return False
    return all(not missing(*pair) for pair in zip(sent, stored, strict=True))
