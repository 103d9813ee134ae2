"""The twin of a cluster: an embedded API server with its objects, a simulation around it, and the operator on it.

    bundle ─▶ Server ◀─ simulation: kubelets, scheduler, workloads, Cluster API, Flux
                 ▲
                 └──── operator: its own controllers, informers and applier; leaf clusters are servers like this one

All parts share one virtual clock. Kubelets send no heartbeats: 10,000 of them would be most of the work.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import as_file, files
from random import Random
from typing import Final

import msgspec

from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.server import Server
from nodeyard.bundle.model import ClusterState, Objects
from nodeyard.client.api import Client
from nodeyard.client.errors import ConfigError, TransportError
from nodeyard.client.kubeconfig import parse_kubeconfig
from nodeyard.client.transport import Request, Response, Stream, Transport
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRRORED_NODE
from nodeyard.plan.brake import Limit
from nodeyard.process.clock import Clock
from nodeyard.rehearsal.profiles import MACHINE_STAGES, Profile
from nodeyard.rehearsal.recorder import Recorder
from nodeyard.rehearsal.workloads import Workloads
from nodeyard.runtime.capability import Capability, RemoteClusterRef
from nodeyard.runtime.crds import install
from nodeyard.runtime.leader.election import Timing
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor
from nodeyard.runtime.reconcile.workqueue import WINDOW_SECONDS
from nodeyard.runtime.remote.connect import Connect
from nodeyard.runtime.settings import Settings
from nodeyard.sim import stand_in_crds
from nodeyard.sim.embedded import connect
from nodeyard.sim.machine_defaults import MachineDeploymentDefaults
from nodeyard.sim.machines.controllers import SimEnvironment
from nodeyard.sim.nodes import KUBELET
from nodeyard.sim.scenarios import stages_of
from nodeyard.sim.seeded_random import SeededRandom
from nodeyard.sim.stage_set import Delay, StageChanges
from nodeyard.sim.world import World

HEARTBEATS: Final = ("node-lease", "lease-renew", "node-heartbeat")
"""Stages of kubelets that a twin leaves out."""
NEVER: Final = 1e9
"""Seconds that no rehearsal lasts."""
JOBS: Final = "pod-finish"
"""The stage that ends pods of Jobs after 10 s; in a twin they run on."""
LEAVES: Final = GroupResource("kosmos.io", "clusters")
WINDOW_SECONDS_PER_NODE: Final = 1e-4
"""Events of so long are planned together, about the time that a plan takes of a real operator; here it takes none."""
LEFT_OUT: Final = frozenset(
    {
        ("", "events"),
        ("events.k8s.io", "events"),
        ("coordination.k8s.io", "leases"),
        ("apiregistration.k8s.io", "apiservices"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    }
)
"""Resources of a bundle, by group and plural, that a twin cannot serve: other processes answer webhooks and renew
Leases."""
_LEASE: Final = Timing(duration=86_400, margin=5.0, interval=3600.0, deadline=60.0, retry=60.0)
"""Nobody competes for the Leases of a twin, so they are hardly ever renewed."""
_HOST: Final = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "twin", "cluster": {"server": "https://twin.invalid:6443"}}],
    "users": [{"name": "twin", "user": {"token": "twin"}}],
    "contexts": [{"name": "twin", "context": {"cluster": "twin", "user": "twin"}}],
    "current-context": "twin",
}
"""Kubeconfig of simulated workload clusters and leaves; the twin's transports do not read it."""
_KUBECONFIG: Final = b64encode(msgspec.json.encode(_HOST)).decode()


@dataclass(frozen=True)
class TwinOptions:
    capabilities: Sequence[Capability]
    profile: Profile
    seed: int = 0
    limit: Limit = field(default_factory=Limit)
    installs: bool = True
    """Install the CRDs of the capabilities, and stand-ins for those of Cluster API and Flux."""
    boot_failures: float = 0.0
    """The share of new machines that never boot."""

    def delays(self) -> dict[str, Delay]:
        delays = self.profile.delays()
        if self.boot_failures:
            delays |= {stage: _failing(delays[stage], self.boot_failures) for stage in MACHINE_STAGES}
        return delays


OnResponse = Callable[[Request, Response], None]


class Link:
    """The network between the operator and one server: a latency, and whether it is cut."""

    def __init__(self, clock: Clock) -> None:
        self.latency = 0.0
        self._clock = clock
        self._cut = asyncio.Event()

    def cut(self) -> None:
        self._cut.set()

    def restore(self) -> None:
        self._cut = asyncio.Event()

    async def pass_through(self, what: str) -> None:
        if self.latency:
            await self._clock.sleep(self.latency)
        self.check(what)

    def check(self, what: str) -> None:
        if self._cut.is_set():
            raise TransportError(f"{what}: no answer (rehearsed fault)", may_have_run=False)

    async def until_cut(self, chunks: AsyncIterator[bytes], what: str) -> AsyncIterator[bytes]:
        """Yield chunks until the link is cut."""
        while True:
            chunk, cut = asyncio.ensure_future(anext(chunks)), asyncio.ensure_future(self._cut.wait())
            try:
                await asyncio.wait((chunk, cut), return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    raise TransportError(f"{what}: the stream ended (rehearsed fault)", may_have_run=True)
                received = chunk.result()
            except StopAsyncIteration:
                return
            finally:
                chunk.cancel()
                cut.cancel()
                await asyncio.gather(chunk, cut, return_exceptions=True)
            yield received


class LinkedTransport:
    """A transport behind a link."""

    def __init__(self, inner: Transport, link: Link, on_response: OnResponse, *, can_be_cut: bool = False) -> None:
        self._inner, self._link, self._on_response, self._can_be_cut = inner, link, on_response, can_be_cut

    async def send(self, request: Request) -> Response:
        await self._link.pass_through(f"{request.method} {request.path}")
        response = await self._inner.send(request)
        self._on_response(request, response)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        what = f"GET {request.path}"
        await self._link.pass_through(what)
        async with self._inner.stream(request) as stream:
            yield replace(stream, chunks=self._link.until_cut(stream.chunks, what)) if self._can_be_cut else stream

    async def close(self) -> None:
        await self._inner.close()


def _failing(delay: Delay, rate: float) -> Delay:
    """Return a delay that never ends for this share of the objects, always the same ones."""

    def draw(obj: Object, random: SeededRandom, what: str, times: int) -> float:
        return NEVER if random.random("boot", what) < rate else delay(obj, random, what, times)

    return draw


@dataclass
class Site:
    """One cluster of the twin: its server and simulation, and the operator's way to it."""

    server: Server
    client: Client
    link: Link
    world: World

    def transport(self, on_response: OnResponse, *, can_be_cut: bool = False) -> Transport:
        return LinkedTransport(connect(self.server).transport, self.link, on_response, can_be_cut=can_be_cut)


@dataclass
class Twin:
    host: Site
    leaves: Mapping[str, Site]
    manager: Manager
    capabilities: Sequence[Capability]
    connect: Connect
    """The operator's way to remote clusters."""

    @property
    def is_idle(self) -> bool:
        """Return True if neither the operator nor the simulation has anything to do now."""
        sites = (self.host, *self.leaves.values())
        return all(each.is_idle for each in self.manager.controllers) and all(
            site.world.engine.is_settled for site in sites
        )

    @property
    def errors(self) -> list[str]:
        return [error for site in (self.host, *self.leaves.values()) for error in site.world.errors]


@asynccontextmanager
async def open_twin(
    host: ClusterState | None,
    leaves: Mapping[str, ClusterState],
    options: TwinOptions,
    recorder: Recorder,
    clock: Clock,
) -> AsyncIterator[Twin]:
    """Open a twin of a cluster, or of an empty one, and run the operator on it."""
    async with AsyncExitStack() as stack:
        server = _new_server(host, options.seed, clock)
        recorder.attach(server)
        await _start(server, stack)
        client = connect(server)
        if options.installs:
            groups = stand_in_crds.groups_of(stages_of(each.name for each in options.capabilities))
            await stand_in_crds.install(client, clock, *groups)
            await install(client, options.capabilities, clock)
        served = [each for each in options.capabilities if await _is_served(client, each)]
        site = await _simulate(server, stages_of(each.name for each in served), options, recorder, clock, stack)
        sites = {}
        for number, (name, state) in enumerate(sorted(leaves.items()), start=1):
            leaf = _new_server(state, options.seed + number, clock)
            await _start(leaf, stack)
            sites[name] = await _simulate(leaf, (), options, recorder, clock, stack)
        manager = Manager(
            Client(site.transport(recorder.on_response)),
            served,
            _settings(options, recorder.nodes),
            clock=clock,
            random=Random(options.seed),
            plan_executor=InlinePlanExecutor,
            connect=(connector := _connector(site, sites, recorder.on_response, clock)),
        )
        manager.pass_observers.append(recorder.observe)
        await stack.enter_async_context(manager.running())
        yield Twin(site, sites, manager, served, connector)


def _settings(options: TwinOptions, nodes: int) -> Settings:
    window = max(WINDOW_SECONDS, nodes * WINDOW_SECONDS_PER_NODE)
    return Settings("rehearsal", leader_elect=False, take_over=True, limit=options.limit, lease=_LEASE, window=window)


def _new_server(state: ClusterState | None, seed: int, clock: Clock) -> Server:
    server = Server(clock, seed=seed, plugins=(MachineDeploymentDefaults(),), silent_nodes=KUBELET)
    if state is not None:
        server.load(_prepare(state))
    return server


async def _start(server: Server, stack: AsyncExitStack) -> None:
    await server.start()
    stack.push_async_callback(server.stop)


async def _simulate(
    server: Server,
    stages: Sequence[str],
    options: TwinOptions,
    recorder: Recorder,
    clock: Clock,
    stack: AsyncExitStack,
) -> Site:
    client = Client(LinkedTransport(connect(server).transport, Link(clock), recorder.on_response))
    changes = StageChanges(
        without=(*HEARTBEATS, JOBS),
        delays=options.delays(),
        reconcilers=Workloads(client.managed_by("sim"), clock, options.seed).reconcilers,
    )
    world = World(
        client,
        clock,
        options.seed,
        stages=("nodes", "pods", "scheduling", *stages),
        extra_stages=[stack.enter_context(as_file(files("nodeyard.rehearsal") / "stages.yaml"))],
        environment=SimEnvironment(kubeconfig=lambda: _HOST),
        changes=changes,
    )
    await stack.enter_async_context(world)
    return Site(server, connect(server), Link(clock), world)


def _connector(host: Site, leaves: Mapping[str, Site], on_response: OnResponse, clock: Clock) -> Connect:
    nowhere = Link(clock)
    nowhere.cut()

    def connect_twin(ref: RemoteClusterRef) -> Transport:
        """Connect to the leaf of this name; a leaf that the twin does not have does not answer. A simulated workload
        cluster has its nodes on the twin of its host."""
        if ref.name in leaves:
            return leaves[ref.name].transport(on_response, can_be_cut=True)
        if host.server.store.get(LEAVES, "", ref.name) is not None:
            return LinkedTransport(connect(host.server).transport, nowhere, on_response, can_be_cut=True)
        return host.transport(on_response)

    return connect_twin


async def _is_served(client: Client, capability: Capability) -> bool:
    catalog = await client.catalog()
    return all(catalog.by_kind(each.resource.api_version, each.resource.kind) is not None for each in capability.kinds)


def _prepare(state: ClusterState) -> ClusterState:
    """Leave out what a twin cannot serve, and simulate the kubelet of every node that is not mirrored."""
    objects = {
        gvr: Objects() if (gvr.group, gvr.resource) in LEFT_OUT else found for gvr, found in state.objects.items()
    }
    for gvr, found in objects.items():
        if change := _PREPARED.get((gvr.group, gvr.resource)):
            objects[gvr] = Objects([msgspec.json.encode(change(each)) for each in found])
    return replace(state, objects=objects)


def with_kubeconfig(obj: Object) -> Object:
    """Return a Cluster of clustertree with a kubeconfig that parses: bundles and scenarios have none."""
    spec = obj.get("spec") or {}
    is_leaf = obj["kind"] == "Cluster" and obj["apiVersion"].startswith(f"{LEAVES.group}/")
    if not is_leaf or spec.get("kubeconfigSecretRef"):
        return obj
    return obj if _is_kubeconfig(spec.get("kubeconfig")) else {**obj, "spec": {**spec, "kubeconfig": _KUBECONFIG}}


def _with_kubeconfigs(secret: Object) -> Object:
    data = secret.get("data") or {}
    if not secret["metadata"]["name"].endswith("kubeconfig") or all(map(_is_kubeconfig, data.values())):
        return secret
    return {**secret, "data": dict.fromkeys(data, _KUBECONFIG)}


def _is_kubeconfig(text: str | None) -> bool:
    try:
        parse_kubeconfig(b64decode(text or "", validate=True), source="")
    except (ConfigError, ValueError):
        return False
    return True


def _with_kubelet(node: Object) -> Object:
    metadata = node["metadata"]
    if MIRRORED_NODE in (metadata.get("labels") or {}):
        return node
    version = ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", "")
    return {**node, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), KUBELET: version}}}


_PREPARED: Final[Mapping[tuple[str, str], Callable[[Object], Object]]] = {
    ("", "nodes"): _with_kubelet,
    ("", "secrets"): _with_kubeconfigs,
    (LEAVES.group, LEAVES.plural): with_kubeconfig,
}
"""What changes in objects of a bundle, by group and plural."""
