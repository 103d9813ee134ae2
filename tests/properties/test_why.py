"""`why` never calls an object healthy if one of its conditions says otherwise, in any state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.admission.configurations import VALIDATING
from nodeyard.app.explanations import conditions_of
from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.names import CAPI_API_VERSION, PAUSED_ANNOTATION
from nodeyard.capabilities.pools.snapshot import ClassesSnapshot, PoolsSnapshot, ServicesSnapshot
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE
from nodeyard.plan.explain import compose, is_adverse
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Capability

from ..builders import pools as lattice
from ..builders.affinity_env import application_body, class_body, definition_body, tenant_body
from ..builders.affinity_views import AffinityView, registration
from ..builders.pool_objects import changed, running, settled, with_deployment, with_management
from ..builders.profile_views import ProfilesView
from ..builders.profiles import (
    compute_body,
    compute_profile_body,
    network_profile_body,
    node_body,
    role_body,
    service_body,
)
from ..builders.spares import NOW
from ..builders.tenants import snapshot as tenants_snapshot
from .test_affinity_inheritance import trees
from .test_clustertree_plan import tree_states
from .test_profiles_resolution import snapshots as nodes
from .test_spares import worlds

FINE = frozenset(
    {
        "AsSpecified",
        "Available",
        "ClassesValid",
        "Enforced",
        "KubeletReady",
        "LeafReachable",
        "LeasesRenewed",
        "NodesMatch",
        "Placed",
        "ReconcileSuccess",
        "Reconciled",
        "ResourcesSynced",
        "Served",
        "SufficientNodes",
        "TenantReady",
    }
)
"""Reasons of healthy objects, of all capabilities."""

selectors = st.dictionaries(st.sampled_from(["disk", "zone"]), st.sampled_from(["a", "b"]), max_size=2)
pools = st.dictionaries(
    st.sampled_from(["gpu", "web"]),
    st.builds(
        lambda replicas, labels, node_class: lattice.pool(
            replicas, labels=labels, **({"nodeClass": node_class} if node_class else {})
        ),
        st.integers(0, 3),
        selectors,
        st.sampled_from(["", "medium", "gone"]),
    ),
    max_size=2,
)
lattices = st.one_of(
    st.builds(lambda given: lattice.snapshot(lattice.cluster("prod", workerPools=given), lattice.node_class()), pools),
    st.builds(
        lambda those: ServicesSnapshot(services=[lattice.service(f"s{at}", each) for at, each in enumerate(those)]),
        st.lists(selectors, max_size=3),
    ),
    st.builds(
        lambda names: ClassesSnapshot(classes=[lattice.node_class(each) for each in names]),
        st.sets(st.sampled_from(["medium", "large"])),
    ),
)


STANDS = ("as it is", "paused", "paused by annotation", "behind", "fewer available", "not observed")


def standing(deployment: Object, how: str) -> Object:
    match how:
        case "paused":
            return changed(deployment, "spec.paused", True)
        case "paused by annotation":
            return changed(deployment, "metadata.annotations", {PAUSED_ANNOTATION: ""})
        case "behind":
            return settled(deployment, upToDateReplicas=0)
        case "fewer available":
            return settled(deployment, availableReplicas=0)
        case "not observed":
            return settled(deployment, observedGeneration=0)
    return deployment


@st.composite
def running_clusters(draw: Any) -> PoolsSnapshot:
    """Generate a formerly healthy cluster with arbitrary changes of objects and spec."""
    before = lattice.cluster("c", workerPools={"a": lattice.pool(2), "b": lattice.pool(1)})
    world = running(before)
    for deployment in list(world.management.deployments.values()):
        world = with_deployment(world, standing(deployment, draw(st.sampled_from(STANDS))))
    if draw(st.booleans()):
        world = with_management(world, control_plane=settled(world.management.control_plane, readyReplicas=0))
    if draw(st.booleans()):
        world = with_management(world, cluster=changed(world.management.cluster, "spec.paused", True))
    after = draw(pools) | draw(st.sampled_from([{}, {"a": lattice.pool(2)}, {"a": lattice.pool(3)}]))
    return replace(world, cluster=lattice.cluster("c", workerPools=after)) if draw(st.booleans()) else world


CLASSES = ("dc1", "dc2", "gone")
ACME, BETA = "tenant-acme", "tenant-beta"


@st.composite
def affinity_views(draw: Any) -> AffinityView:
    """Generate classes, some of which match nodes, a tenant that allows some, and applications that name any."""
    bodies: list[Object] = [
        class_body(name, nodeSelector=draw(st.sampled_from([{ZONE: name}, {ZONE: "nowhere"}, {"not a key": "x"}])))
        for name in draw(st.sets(st.sampled_from(CLASSES[:2])))
    ]
    bodies += [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{zone}", "labels": {ZONE: zone}}}
        for zone in draw(st.sets(st.sampled_from(CLASSES)))
    ]
    kinds = draw(st.sets(st.sampled_from(["Postgres", "Redis"])))
    bodies += [definition_body(kind) for kind in kinds]
    optional = st.one_of(st.none(), st.lists(st.sampled_from(CLASSES), max_size=2, unique=True))
    rule = {"allowedAffinityClasses": draw(optional), "defaultAffinityClass": draw(st.sampled_from(["", *CLASSES]))}
    bodies += [tenant_body("acme", **{name: value for name, value in rule.items() if value})]
    for kind in kinds:
        named = draw(st.sampled_from([None, "", *CLASSES]))
        namespace = draw(st.sampled_from([ACME, BETA]))
        bodies.append(application_body(kind, namespace, "db", **({} if named is None else {"affinityClass": named})))
    if draw(st.booleans()):
        bodies.append({"apiVersion": VALIDATING.api_version, "kind": VALIDATING.kind, **registration()})
    served = [(names.FLUX_API_VERSION, names.RELEASE_KIND)] if draw(st.booleans()) else []
    return AffinityView(*bodies, served=served)


COMPUTE = "nova.openstack.org/compute-profile"
profiles = st.sampled_from(["", "shared", "gone"])


@st.composite
def planes(draw: Any) -> ProfilesView:
    """Generate roles, nodes and profiles that name each other or missing objects, with service objects in any state."""
    bodies: list[Object] = [compute_profile_body("shared")] if draw(st.booleans()) else []
    bodies += [network_profile_body()] if draw(st.booleans()) else []
    bodies += [service_body(nodeField=draw(st.sampled_from(["nodeName", "not a field"])))]
    for name in draw(st.sets(st.sampled_from(["compute", "edge"]))):
        bodies.append(role_body(name, annotations={COMPUTE: draw(profiles)}))
    for name in draw(st.sets(st.sampled_from(["n1", "n2", "n3"]))):
        spec = {"role": draw(st.sampled_from(["compute", "gone"]))}
        bodies.append(node_body(name, spec=spec, annotations={COMPUTE: draw(profiles)}))
        if draw(st.booleans()):
            bodies.append(compute_body(name, draw(profiles)))
    return ProfilesView(*bodies)


def check_all(capability: Capability, view: Any) -> None:
    """Return all keys."""
    for key in capability.all_keys(view):
        snapshot = capability.collect(view, key, NOW)
        if snapshot is not None:
            check(capability, snapshot)


def check(capability: Capability, snapshot: Any) -> None:
    """Explain every object that the pass writes a status for."""
    first = capability.plan(snapshot, NOW, ()).plan
    written = capability.report(snapshot, first, Outcome(), NOW).statuses
    refs = [each.object for each in written]
    plan = capability.plan(snapshot, NOW, refs).plan
    for write in written:
        conditions = conditions_of({"status": write.status})
        adverse = [each for each in conditions if is_adverse(each)]
        assert all(each.message for each in adverse), f"{write.object} is told nothing of {adverse}"
        if "phase" in write.status and any(each.type in ("Ready", "Placed") for each in adverse):
            assert write.status.get("message"), f"{write.object} has an empty column MESSAGE beside {adverse}"
        for decision in plan.decisions:
            if _name(decision.object) != _name(write.object):
                continue
            answer = compose(capability.name, decision, fine=capability.explain.healthy, conditions=conditions)
            if adverse:
                told = {each.reason for each in adverse}
                assert told & set(answer.reasons), f"{answer.reasons} leaves out {told}"
                assert FINE.isdisjoint(answer.reasons), f"{answer.reasons} beside {told}"


def _name(ref: ObjectRef) -> tuple[str, str, str]:
    return ref.kind, ref.namespace, ref.name


@settings(deadline=None)
@given(worlds())
def test_templates_are_explained_as_their_conditions_say(world: Any) -> None:
    check(SPARES, world)


@settings(deadline=None)
@given(tree_states)
def test_leaf_clusters_are_explained_as_their_conditions_say(tree: Any) -> None:
    check(CLUSTERTREE, tree.snapshot())


@settings(deadline=None)
@given(trees())
def test_tenants_are_explained_as_their_conditions_say(tenants: Any) -> None:
    check(AFFINITY, tenants_snapshot(*tenants))


@settings(deadline=None)
@given(nodes)
def test_nodes_with_profiles_are_explained_as_their_conditions_say(node: Any) -> None:
    check(PROFILES, replace(node, objects={}))


@settings(deadline=None)
@given(lattices)
def test_clusters_classes_and_services_are_explained_as_their_conditions_say(world: Any) -> None:
    check(POOLS, world)


@settings(deadline=None)
@given(running_clusters())
def test_a_running_cluster_and_its_pools_are_explained_as_its_status_says(world: PoolsSnapshot) -> None:
    check(POOLS, world)
    first = POOLS.plan(world, NOW, ()).plan
    for write in POOLS.report(world, first, Outcome(), NOW).statuses:
        for id, pool in write.status["workerPools"].items():
            ref = ObjectRef(
                api_version=CAPI_API_VERSION,
                kind="MachineDeployment",
                namespace="capi-c",
                name=pool.get("machineDeployment", f"c-pool-{id}"),
            )
            told = [each.rule for each in POOLS.plan(world, NOW, [ref]).plan.decisions]
            assert told, f"why says nothing of pool {id}, which the status has"
            if pool["phase"] != "Ready":
                assert FINE.isdisjoint(told), f"{told} of pool {id}, which is {pool['phase']}"


@settings(deadline=None)
@given(affinity_views())
def test_classes_definitions_and_applications_are_explained_as_their_conditions_say(view: Any) -> None:
    check_all(AFFINITY, view)


@settings(deadline=None)
@given(planes())
def test_roles_profiles_and_services_are_explained_as_their_conditions_say(view: Any) -> None:
    check_all(PROFILES, view)
