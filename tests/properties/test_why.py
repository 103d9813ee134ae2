"""`why` never calls an object healthy if one of its conditions says otherwise, in any state.

A world is a capability's snapshot or view. Every object in it is explained: with the conditions that the status gets,
and with each condition that the reconciler or another operator may add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.admission.configurations import VALIDATING
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.explanations import conditions_of
from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.names import CAPI_API_VERSION, PAUSED_ANNOTATION
from nodeyard.capabilities.pools.planning.pool_index import PoolOffer
from nodeyard.capabilities.pools.snapshot import ClassesSnapshot, ClassUse, PoolsSnapshot, ServicesSnapshot
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.kube.conditions import FALSE, TRUE, UNKNOWN
from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Condition
from nodeyard.plan.explain import HELD_TYPE, compose, is_adverse
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.runtime.capability import Capability

from ..builders import pools as lattice
from ..builders.affinity_env import application_body, class_body, definition_body, release_name, tenant_body
from ..builders.affinity_views import AffinityView, registration
from ..builders.placements import release
from ..builders.pool_objects import changed, running, settled, with_deployment, with_management
from ..builders.profile_views import ProfilesView
from ..builders.profiles import (
    SHARED,
    agent_body,
    compute_body,
    compute_profile_body,
    network_profile_body,
    node_body,
    role_body,
    service_body,
    telemetry_profile_body,
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
node_classes = st.sampled_from(["medium", "large"])
lattices = st.one_of(
    st.builds(lambda given: lattice.snapshot(lattice.cluster("prod", workerPools=given), lattice.node_class()), pools),
    st.builds(
        lambda those, offered: ServicesSnapshot(
            services=[lattice.service(f"s{at}", each) for at, each in enumerate(those)],
            offers=[PoolOffer("prod", f"p{at}", each, replicas=1) for at, each in enumerate(offered)],
        ),
        st.lists(selectors, max_size=3),
        st.lists(selectors, max_size=2),
    ),
    st.builds(
        lambda classes, uses: ClassesSnapshot([lattice.node_class(name, **classes[name]) for name in classes], uses),
        st.dictionaries(node_classes, st.sampled_from([{"docker": {}}, {"aws": {"instanceType": "m5.large"}}])),
        st.dictionaries(node_classes, st.just([ClassUse("prod", "a", "docker")])),
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
    if draw(st.booleans()):
        bodies.append(definition_body("Postgres", "another"))
    optional = st.one_of(st.none(), st.lists(st.sampled_from(CLASSES), max_size=2, unique=True))
    rule = {"allowedAffinityClasses": draw(optional), "defaultAffinityClass": draw(st.sampled_from(["", *CLASSES]))}
    bodies += [tenant_body("acme", **{name: value for name, value in rule.items() if value})]
    for kind in kinds:
        named = draw(st.sampled_from([None, "", *CLASSES]))
        namespace = draw(st.sampled_from([ACME, BETA]))
        bodies.append(application_body(kind, namespace, "db", **({} if named is None else {"affinityClass": named})))
        if draw(st.booleans()):
            named = draw(st.sampled_from([None, *CLASSES]))
            bodies.append(release(release_name(kind, "db"), of=(kind, "db"), affinity_class=named, namespace=namespace))
    if draw(st.booleans()):
        bodies.append({"apiVersion": VALIDATING.api_version, "kind": VALIDATING.kind, **registration()})
    served = [(names.FLUX_API_VERSION, names.RELEASE_KIND)] if draw(st.booleans()) else []
    return AffinityView(*bodies, served=served)


COMPUTE = "nova.openstack.org/compute-profile"
profiles = st.sampled_from(["", "shared", "gone"])


@st.composite
def planes(draw: Any) -> ProfilesView:
    """Generate roles, nodes and profiles that name each other or missing objects, with service objects in any state."""
    config = st.sampled_from([SHARED, "[compute]\ncpu_shared_set = no numbers\n", "no section"])
    bodies: list[Object] = [compute_profile_body("shared", draw(config))] if draw(st.booleans()) else []
    bodies += [network_profile_body("dpdk", draw(config))] if draw(st.booleans()) else []
    bodies += [telemetry_profile_body("collector", draw(config))] if draw(st.booleans()) else []
    bodies += [service_body(nodeField=draw(st.sampled_from(["nodeName", "not a field"])))]
    for name in draw(st.sets(st.sampled_from(["compute", "edge"]))):
        bodies.append(role_body(name, annotations={COMPUTE: draw(profiles)}))
    for name in draw(st.sets(st.sampled_from(["n1", "n2", "n3"]))):
        spec = {"role": draw(st.sampled_from(["compute", "gone"]))}
        bodies.append(node_body(name, spec=spec, annotations={COMPUTE: draw(profiles)}))
        if draw(st.booleans()):
            bodies.append(compute_body(name, draw(profiles)))
        if draw(st.booleans()):
            bodies.append(agent_body(name, draw(st.sampled_from(["dpdk", "gone"]))))
    return ProfilesView(*bodies)


# the property


def added(type: str, status: str, reason: str) -> Condition:
    return Condition(type=type, status=status, reason=reason, message=f"{type} is {status}")


ADDED = (
    added(HELD_TYPE, TRUE, "NeedsApproval"),
    added("Blocked", TRUE, "AdmissionDenied"),
    added("Stale", TRUE, "WatchBroken"),
    added("Observing", TRUE, "ReplacedOperatorRunning"),
    added("Ready", FALSE, "SaidByAnother"),
    added("Ready", UNKNOWN, "SaidByNobody"),
)
"""Conditions of the reconciler, and of other operators on objects whose status is theirs."""


class Explained:
    """One pass over a snapshot, in which the objects that get a status and these others are asked about."""

    def __init__(self, capability: Capability, snapshot: Any, others: Iterable[ObjectRef] = ()) -> None:
        self.capability = capability
        first = capability.plan(snapshot, NOW, ()).plan
        self.written = capability.report(snapshot, first, Outcome(), NOW).statuses
        refs = dict.fromkeys((*(each.object for each in self.written), *others))
        self.decisions = capability.plan(snapshot, NOW, tuple(refs)).plan.decisions

    @property
    def adverse_kinds(self) -> Iterator[str]:
        """The kinds whose objects get an adverse condition."""
        for write in self.written:
            if any(map(is_adverse, conditions_of({"status": write.status}))):
                yield write.object.kind

    def check(self) -> None:
        statuses = {_name(write.object): write.status for write in self.written}
        for ref, status in statuses.items():
            adverse = [each for each in conditions_of({"status": status}) if is_adverse(each)]
            assert all(each.message for each in adverse), f"{ref} is told nothing of {adverse}"
            if "phase" in status and any(each.type in ("Ready", "Placed") for each in adverse):
                assert status.get("message"), f"{ref} has an empty column MESSAGE beside {adverse}"
        assert statuses.keys() <= {_name(each.object) for each in self.decisions}
        for decision in self.decisions:
            own = conditions_of({"status": statuses.get(_name(decision.object), {})})
            self._check(decision, own)
            for each in (*ADDED, added("Ready", FALSE, decision.rule)):
                self._check(decision, [*own, each])

    def _check(self, decision: Decision, conditions: Sequence[Condition]) -> None:
        capability = self.capability
        answer = compose(capability.name, decision, fine=capability.explain.healthy, conditions=conditions)
        adverse = {each.reason for each in conditions if is_adverse(each)}
        assert adverse <= set(answer.reasons), f"{answer.reasons} leaves out {adverse - set(answer.reasons)}"
        if adverse:
            assert answer.hides_rule or decision.rule not in FINE, f"{decision.rule} beside {adverse}"


def _name(ref: ObjectRef) -> tuple[str, str, str]:
    return ref.kind, ref.namespace, ref.name


# the worlds


def explain_templates(world: Any) -> Iterator[Explained]:
    yield Explained(SPARES, world, [core("Node", each.metadata.name) for each in world.nodes])


def explain_leaves(tree: Any) -> Iterator[Explained]:
    yield Explained(CLUSTERTREE, tree.snapshot(), [core("Node", name) for name in tree.roots])


def explain_tenants(tenants: Any) -> Iterator[Explained]:
    yield Explained(AFFINITY, tenants_snapshot(*tenants))


def explain_node(node: Any) -> Iterator[Explained]:
    yield Explained(PROFILES, replace(node, objects={}))


def explain_pools(world: Any) -> Iterator[Explained]:
    yield Explained(POOLS, world)


def explain_cluster(world: PoolsSnapshot) -> Iterator[Explained]:
    yield Explained(POOLS, world, map(deployment_ref, world.management.deployments))


def explain_view(capability: Capability) -> Callable[[Any], Iterator[Explained]]:
    """Explain every object in a view by the keys that `why` finds for it."""

    def explain(view: Any) -> Iterator[Explained]:
        wanted: dict[str, list[ObjectRef]] = {key: [] for key in capability.all_keys(view)}
        for ref in view.refs():
            for key in capability.explain.keys_of(view, ref):
                wanted.setdefault(key, []).append(ref)
        for key, refs in wanted.items():
            snapshot = capability.collect(view, key, NOW)
            if snapshot is not None:
                yield Explained(capability, snapshot, refs)

    return explain


def core(kind: str, name: str) -> ObjectRef:
    return ObjectRef(api_version="v1", kind=kind, name=name)


def deployment_ref(name: str) -> ObjectRef:
    return ObjectRef(api_version=CAPI_API_VERSION, kind="MachineDeployment", namespace="capi-c", name=name)


WORLDS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], Iterator[Explained]]]] = {
    "templates": (worlds(), explain_templates),
    "leaf clusters": (tree_states, explain_leaves),
    "tenants": (trees(), explain_tenants),
    "nodes with profiles": (nodes, explain_node),
    "clusters, classes and services": (lattices, explain_pools),
    "running clusters": (running_clusters(), explain_cluster),
    "classes, definitions and applications": (affinity_views(), explain_view(AFFINITY)),
    "roles, profiles and services": (planes(), explain_view(PROFILES)),
}


def explain_all(world: str, use: Callable[[Explained], None]) -> None:
    """Call a function with each pass in random worlds."""
    strategy, explain = WORLDS[world]

    @settings(deadline=None)
    @given(strategy)
    def run(seen: Any) -> None:
        for each in explain(seen):
            use(each)

    run()


@pytest.mark.parametrize("world", WORLDS)
def test_objects_are_explained_as_their_conditions_say(world: str) -> None:
    explain_all(world, Explained.check)


FOREIGN = ("Node", "MachineDeployment", "HelmRelease", "Postgres", "Redis")
"""Kinds that the worlds have beside the capabilities' own."""
NEVER_UNREADY = ("OpenStackDataPlaneRole", "NovaExternalCompute", "OVNMetadataAgent")
"""Kinds whose own conditions are never adverse, or another operator's."""


@cache
def kinds_met() -> tuple[frozenset[str], frozenset[str]]:
    """Return the kinds that are explained in some world, and those of them that get an adverse condition."""
    explained, adverse = set[str](), set[str]()

    def meet(each: Explained) -> None:
        explained.update(decision.object.kind for decision in each.decisions)
        adverse.update(each.adverse_kinds)

    for world in WORLDS:
        explain_all(world, meet)
    return frozenset(explained), frozenset(adverse)


KINDS = sorted(kind.resource.kind for capability in CAPABILITIES for kind in capability.kinds)


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN])
def test_objects_of_every_kind_are_explained_in_some_world(kind: str) -> None:
    assert kind in kinds_met()[0]


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in NEVER_UNREADY])
def test_objects_of_every_kind_are_unready_in_some_world(kind: str) -> None:
    assert kind in kinds_met()[1]


@settings(deadline=None)
@given(running_clusters())
def test_pools_are_explained_as_the_status_of_their_cluster_says(world: PoolsSnapshot) -> None:
    first = POOLS.plan(world, NOW, ()).plan
    for write in POOLS.report(world, first, Outcome(), NOW).statuses:
        for id, pool in write.status["workerPools"].items():
            ref = deployment_ref(pool.get("machineDeployment", f"c-pool-{id}"))
            told = [each.rule for each in POOLS.plan(world, NOW, [ref]).plan.decisions]
            assert told, f"why says nothing of pool {id}, which the status has"
            if pool["phase"] != "Ready":
                assert FINE.isdisjoint(told), f"{told} of pool {id}, which is {pool['phase']}"
