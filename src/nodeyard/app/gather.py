"""Gathers a support bundle.

    read the operators' Leases ─▶ list what matters ─▶ plan on a recording ─▶ plan again on what was recorded ─▶ write

The first planner reads the cluster through a recorder, so that the bundle has whatever a plan or an explanation needs,
of remote clusters too. The second one reads only what the recorder kept, with its hashes. Its plans and answers are
written; where the two decide differently, a hash hides a value that matters, and the key is listed as hidden.

A right that the account lacks leaves out what it is for. Nothing is written to the cluster.
"""

from __future__ import annotations

import platform
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeyard.app.dry_planner import DryPlanner, NotSynced, ReadForbidden, dry_planning_readable
from nodeyard.app.explanations import compose_answers, why_to_wire
from nodeyard.app.operators import Operators, find_operators
from nodeyard.app.replay import HIDDEN, OPERATORS, PLANS, WHY, HiddenPlan, PinnedClock, Replay
from nodeyard.bundle.model import (
    HOST,
    Bundle,
    BundleError,
    ClusterState,
    Manifest,
    Omission,
    ServedResource,
    identify,
    remote_name,
)
from nodeyard.bundle.recorder import RecordedCluster, RecordingTransport
from nodeyard.bundle.redaction import Redactor
from nodeyard.bundle.writer import BundleWriter
from nodeyard.client.api import Client
from nodeyard.client.decoder import decode_as
from nodeyard.client.discovery import Catalog, Known, discover
from nodeyard.client.errors import ClientError, Forbidden, NotFound, error_from_answer
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PODS
from nodeyard.client.transport import Request, Transport
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import LEASE_NAMESPACE, NAMESPACE
from nodeyard.plan.brake import Limit
from nodeyard.plan.model import API_VERSION, ObjectRef, to_wire
from nodeyard.process.clock import SystemClock
from nodeyard.process.version import VERSION
from nodeyard.runtime.annotations import ref_of
from nodeyard.runtime.capability import Capability, Key, RemoteClusterRef
from nodeyard.runtime.dry_plan import DryPlan
from nodeyard.runtime.remote.connect import Connect, connect_by_kubeconfig

CAPI: Final = ("cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io")
"""Without bootstrap objects, which hold tokens."""
_LISTED: Final = (
    ("", "namespaces"), ("", "nodes"), ("apps", "daemonsets"), ("apps", "deployments"), ("apps", "replicasets"),
    ("apps", "statefulsets"), ("batch", "jobs"), ("batch", "cronjobs"), ("policy", "poddisruptionbudgets"),
    ("", "pods"), ("helm.toolkit.fluxcd.io", "helmreleases"),
)  # fmt: skip
"""Kinds that are gathered whether a plan needs them or not, besides ours and those of Cluster API."""
_LEASE_NAMESPACES: Final = (NAMESPACE, LEASE_NAMESPACE)
MOST_EVENTS: Final = 10_000
MOST_EXPLAINED: Final = 1000
_METRICS_PORT: Final = 8082
_METRICS_BYTES: Final = 16 << 20
_SAMPLE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(\{.*\})? ([-+0-9.eEinfNa]+)( \d+)?", re.ASCII)
_LABEL: Final = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"', re.ASCII)

ReadMetrics = Callable[[], bytes]


@dataclass
class Gathered:
    """Everything that a bundle is written from; nothing in it is secret."""

    created_at: datetime
    cluster: ClusterState
    clusters: Sequence[ClusterState] = ()
    omitted: list[Omission] = field(default_factory=list)
    documents: dict[str, Json] = field(default_factory=dict)


async def gather(client: Client, capabilities: Sequence[Capability], *, metrics: ReadMetrics | None = None) -> Gathered:
    """Read everything that a bundle contains. `metrics` reads the operator's metrics from elsewhere."""
    recording = _Recording(client)
    operators = await find_operators(client, capabilities)
    served = await recording.list_all(capabilities)
    created_at = SystemClock().now()
    limits = operators.limits()
    running = [each for each in operators.select(capabilities) if each in served]
    live: dict[tuple[str, Key], DryPlan] = {}
    refs: list[ObjectRef] = []
    async with recording.planner(running, created_at) as planner:
        if planner is not None:
            refs = _unready(recording.host, running)
            for ref in refs:
                await planner.watch_kinds_of(ref)
            live = {(each.capability.name, each.key): each for each in planner.plans(Limit(), limits)}
            recording.note_unreachable(planner)
        await recording.discover_remotes()
    await recording.list_events()
    gathered = recording.result(created_at)
    redactor = recording.redactor
    gathered.documents[OPERATORS] = redactor.texts(msgspec.to_builtins(operators))
    gathered.documents["versions"] = {"nodeyard": VERSION, "python": platform.python_version()}
    await _replay(gathered, operators, running, live, refs)
    gathered.documents["metrics"] = await recording.read_metrics(metrics)
    gathered.omitted[:] = [*recording.omissions()]
    return gathered


def write(path: Path, gathered: Gathered) -> None:
    """Write the bundle. Raises BundleError."""
    with BundleWriter(path, created_at=gathered.created_at, nodeyard_version=VERSION) as writer:
        for each in (gathered.cluster, *gathered.clusters):
            writer.add_cluster(each.name, each.resources, each.version, each.error)
            for gvr, objects in each.objects.items():
                writer.add_objects(each.name, gvr, objects)
        for name, document in gathered.documents.items():
            writer.add_document(name, document)
        for omission in gathered.omitted:
            writer.omit(omission)


class _Recording:
    """The recorded clusters, and the clients that record them."""

    def __init__(self, client: Client) -> None:
        self.redactor = Redactor()
        self.host = RecordedCluster(HOST, self.redactor)
        self._live = client
        self._client = Client(RecordingTransport(client.transport, self.host))
        self._remotes: dict[str, tuple[RecordedCluster, Transport]] = {}
        self._omitted: list[Omission] = []
        self._catalog = Catalog(())

    async def list_all(self, capabilities: Sequence[Capability]) -> list[Capability]:
        """List what matters; return the capabilities whose kinds are served."""
        self._catalog = await self._client.catalog()
        self.host.resources = tuple(map(ServedResource.of, self._catalog.known))
        self.redactor.learn(*{name for each in self.host.resources for name in (each.group, each.resource, each.kind)})
        await self._client.server_version()
        served = []
        for each in capabilities:
            resources = [kind.resource for kind in each.kinds]
            if all(self._catalog.by_kind(one.api_version, one.kind) for one in resources):
                served.append(each)
            else:
                self.omit(each.name, "its CRDs are not installed")
        selected = _select(self._catalog, capabilities)
        for known in selected:
            await self._list(known)
        await self._get_definitions(selected)
        for namespace in _LEASE_NAMESPACES:
            await self._list(self._catalog.find("leases.coordination.k8s.io"), namespace)
        return served

    async def _list(self, known: Known, namespace: str = "") -> None:
        try:
            async for _ in self._client.pages(known.resource.decoded_as(msgspec.Raw), namespace):
                pass
        except (Forbidden, NotFound):
            return  # A missing right is recorded.
        except ClientError as error:
            self.omit(str(known.resource), self.redactor.text(str(error)))

    async def _get_definitions(self, selected: Iterable[Known]) -> None:
        """Get the CRDs of the kinds that were listed, with which a server can serve them as the cluster does."""
        for resource in (known.resource for known in selected if "." in known.resource.group):
            try:
                await self._client.get(CUSTOM_RESOURCE_DEFINITIONS, f"{resource.plural}.{resource.group}")
            except Forbidden:
                return
            except ClientError:
                continue  # Built in, or served by an aggregated API server.

    async def list_events(self) -> None:
        """List Events; the server lists them in no order of time."""
        number = 0
        try:
            async for page in self._client.pages(EVENTS.decoded_as(msgspec.Raw)):
                number += len(page.items)
                if number >= MOST_EVENTS and page.next:
                    self.omit("events", f"only {number} were read")
                    return
        except ClientError as error:
            if not isinstance(error, Forbidden):
                self.omit("events", self.redactor.text(str(error)))

    @asynccontextmanager
    async def planner(self, capabilities: Sequence[Capability], now: datetime) -> AsyncIterator[DryPlanner | None]:
        """Open a planner whose reads are recorded; None if the account may plan for no capability."""
        async with AsyncExitStack() as stack:
            planner = None
            try:
                if capabilities:
                    opening = dry_planning_readable(self._client, capabilities, PinnedClock(now), self._connect_of)
                    planner = await stack.enter_async_context(opening)
            except (ReadForbidden, NotSynced) as error:
                self.omit("plans", self.redactor.text(str(error)))
            for name, reason in () if planner is None else planner.skipped.items():
                self.omit(f"plans of {name}", self.redactor.text(reason))
            yield planner

    def _connect_of(self, capability: Capability) -> Connect:
        def connect(ref: RemoteClusterRef) -> Transport:
            transport = connect_by_kubeconfig(ref)
            name = remote_name(capability.name, ref.name)
            recorded = self._remote(name)
            self._remotes[name] = recorded, transport
            return RecordingTransport(transport, recorded)

        return connect

    def _remote(self, name: str) -> RecordedCluster:
        found = self._remotes.get(name)
        return RecordedCluster(name, self.redactor) if found is None else found[0]

    def note_unreachable(self, planner: DryPlanner) -> None:
        for each in planner.unreachable:
            name = remote_name(each.capability, each.cluster)
            recorded = self._remote(name)
            recorded.error = self.redactor.text(each.reason)
            self._remotes.setdefault(name, (recorded, self._client.transport))

    async def discover_remotes(self) -> None:
        """Read what the connected remote clusters serve."""
        for recorded, transport in self._remotes.values():
            if not recorded.error:
                try:
                    recorded.resources = tuple(map(ServedResource.of, (await discover(transport)).known))
                except (ClientError, msgspec.MsgspecError, LookupError) as error:
                    self.omit("discovery", self.redactor.text(str(error)), recorded.name)

    async def read_metrics(self, elsewhere: ReadMetrics | None) -> Json:
        """Return the operator's metrics by pod, or those that `elsewhere` returns."""
        if elsewhere is not None:
            return {"url": list(_clean_metrics(elsewhere(), self.redactor))}
        found: dict[str, Json] = {}
        try:
            pods = await self._live.list(PODS, NAMESPACE, labels="app.kubernetes.io/name=nodeyard")
            for pod in pods.items:
                name = pod["metadata"]["name"]
                path = PODS.path(NAMESPACE, f"{name}:{_METRICS_PORT}", "proxy") + "/metrics"
                response = await self._live.transport.send(Request("GET", path, headers={"Accept": "text/plain"}))
                if response.status != 200:
                    raise error_from_answer(response.status, response.headers, response.body)
                found[name] = list(_clean_metrics(response.body[:_METRICS_BYTES], self.redactor))
        except ClientError as error:
            self.omit("metrics", f"{self.redactor.text(str(error))}; give their address with --metrics")
        return found

    def omit(self, what: str, reason: str, cluster: str = HOST) -> None:
        self._omitted.append(Omission(what, reason, cluster))

    def omissions(self) -> Iterator[Omission]:
        yield from self.host.omissions
        yield from self._omitted
        for recorded, _ in self._remotes.values():
            yield from recorded.omissions
            if recorded.error:
                yield Omission("everything", recorded.error, recorded.name)

    def result(self, created_at: datetime) -> Gathered:
        remotes = [recorded for recorded, _ in self._remotes.values()]
        for each in (self.host, *remotes):
            each.learn_names()
        states = [recorded.state() for recorded in remotes]
        return Gathered(created_at, self.host.state(), states, list(self.omissions()))


def _select(catalog: Catalog, capabilities: Iterable[Capability]) -> list[Known]:
    """Return the kinds to list."""
    own = {(kind.resource.group, kind.resource.plural): None for each in capabilities for kind in each.kinds}
    groups = {group for group, _ in own}
    first: dict[tuple[str, str], Known] = {}
    for known in catalog.known:
        resource = known.resource
        if "list" in known.verbs:
            first.setdefault((resource.group, resource.plural), known)
    wanted = [key for key in first if key in own or key[0] in groups or key[0] in CAPI]
    return [first[key] for key in dict.fromkeys((*wanted, *_LISTED)) if key in first]


def _unready(cluster: RecordedCluster, capabilities: Iterable[Capability]) -> list[ObjectRef]:
    """Return the first objects that are not Ready: ours, nodes, and those of Cluster API and Flux."""
    found: list[ObjectRef] = []
    groups = {kind.resource.group for each in capabilities for kind in each.kinds}
    for gvr, objects in cluster.objects():
        is_watched = gvr.group in groups or gvr.group in CAPI or gvr.resource in ("nodes", "helmreleases")
        for raw in objects.values() if is_watched else ():
            obj = decode_as(dict[str, Any], raw)
            if not _is_ready(obj):
                found.append(ref_of(obj, gvr.api_version, cluster.kind(gvr)))
    return found[:MOST_EXPLAINED]


def _is_ready(obj: Object) -> bool:
    found = (obj.get("status") or {}).get("conditions")
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and each.get("type") in ("Ready", "Available") and each.get("status") != "True":
            return False
    return True


async def _replay(
    gathered: Gathered,
    operators: Operators,
    capabilities: Sequence[Capability],
    live: Mapping[tuple[str, Key], DryPlan],
    unready: Sequence[ObjectRef],
) -> None:
    """Plan from what was recorded, and compare."""
    documents = gathered.documents
    documents[PLANS], documents[WHY], documents[HIDDEN] = {}, [], []
    if not live:
        return
    manifest = Manifest(gathered.created_at, VERSION, (), omitted=tuple(gathered.omitted))
    clusters = {each.name: each for each in gathered.clusters}
    replay = Replay(Bundle(manifest, gathered.cluster, clusters, {}))
    hidden: list[HiddenPlan] = []
    try:
        async with replay.planner(capabilities) as planner:
            found = {(each.capability.name, each.key): each for each in planner.plans(Limit(), operators.limits())}
            for (capability, key), plan in live.items():
                if (capability, key) not in found or outline(found[capability, key]) != outline(plan):
                    hidden.append(HiddenPlan(capability, key, len(plan.braked.now.actions)))
            keys = {(each.capability, each.key) for each in hidden}
            plans = [to_wire(each.braked.now) for name, each in found.items() if name not in keys]
            documents[PLANS] = msgspec.to_builtins({"apiVersion": API_VERSION, "kind": "PlanList", "items": plans})
            documents[WHY] = await _explain(gathered.cluster, planner, operators, unready, keys)
    except (ReadForbidden, NotSynced) as error:
        raise BundleError(f"the gathered objects cannot be planned: {error}") from None
    documents[HIDDEN] = msgspec.to_builtins(hidden)


def outline(dry_plan: DryPlan) -> Any:
    """Return what a plan does, without the values that it writes."""
    plan = dry_plan.braked.now
    return (
        [(each.verb, _named(each.object), each.reason, each.disruption, each.disrupts) for each in plan.actions],
        [(_named(each.object), each.reason, each.is_waiting) for each in plan.blocked],
        None if dry_plan.braked.held is None else len(dry_plan.braked.held.actions),
    )


def _named(ref: ObjectRef) -> tuple[str, ...]:
    return ref.api_version, ref.kind, ref.namespace, ref.name, ref.cluster


async def _explain(
    state: ClusterState,
    planner: DryPlanner,
    operators: Operators,
    unready: Sequence[ObjectRef],
    hidden: set[tuple[str, Key]],
) -> Json:
    """Explain every object that is not Ready."""
    refs = {_named(ref): ref for ref in unready}
    for ref in refs.values():
        await planner.watch_kinds_of(ref)
    explained: dict[tuple[str, ...], list[Any]] = {}
    for dry_plan, decision in planner.why_all(refs.values(), operators.limits()):
        name = _named(decision.object)
        if name in refs and (dry_plan.capability.name, dry_plan.key) not in hidden:
            explained.setdefault(name, []).append((dry_plan, decision))
    versions, places = {name[0] for name in explained}, {name[2:4] for name in explained}
    objects: dict[tuple[str, ...], Object] = {}
    for gvr, found in state.objects.items():
        for number, raw in enumerate(found.raw if gvr.api_version in versions else ()):
            metadata = identify(raw)
            if (metadata.namespace, metadata.name) in places:
                obj = found[number]
                objects[obj["apiVersion"], obj["kind"], metadata.namespace, metadata.name, ""] = obj
    wires = []
    for name, about in explained.items():
        ref, obj = refs[name], objects.get(name, {})
        answers = compose_answers(about, operators, ref, obj)
        wires.append(why_to_wire(answers, about, planner.views, ref, obj))
    return msgspec.to_builtins(wires)


def _clean_metrics(text: bytes, redactor: Redactor) -> Iterator[str]:
    """Yield the samples, with redacted label values, and nothing else."""
    for line in text.decode("utf-8", "replace").splitlines():
        sample = _SAMPLE.fullmatch(line)
        if sample is not None:
            labels = ",".join(f'{name}="{redactor.text(value)}"' for name, value in _LABEL.findall(sample[2] or ""))
            yield f"{sample[1]}{{{labels}}} {sample[3]}" if labels else f"{sample[1]} {sample[3]}"
