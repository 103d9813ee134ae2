"""A tiny capability with remote clusters, and in-process remote clusters on a virtual clock.

A Secret of a group names a leaf and holds its kubeconfig. Every node of the leaf is labelled there, and a ConfigMap of
the Secret's name reports here what was observed in the leaf.
"""

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.builders.plans import message

from nodeyard.apiserver.server import Server
from nodeyard.client.errors import TransportError
from nodeyard.client.resources import CONFIG_MAPS, NODES, SECRETS
from nodeyard.client.transport import Response
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Action, Decision, Disruption, FieldChange, ObjectRef, Plan, Planned, Verb, Write
from nodeyard.runtime.capability import Aggregate, Capability, Explain, Remote, RemoteClusterRef, Report, Rule, Watch
from nodeyard.runtime.remote.connect import connect_by_kubeconfig
from nodeyard.sim.embedded import connect

GROUP = "leaves.test/group"
SEEN = "leaves.test/seen"
NAMESPACE = "default"
_NODES = NODES.decoded_as(Node)


# the capability


@dataclass(frozen=True)
class Snapshot:
    name: str
    report: dict[str, str]
    shown: dict[str, str]
    nodes: tuple[Node, ...]
    group: str


def leaves(group):
    """Build the capability for the Secrets of one group."""

    def collect(view, key, _now):
        if view.get("Secret", key, NAMESPACE) is None:
            return None
        leaf = view.cluster(key)
        nodes = tuple(leaf.all("Node"))
        report = {
            "connected": str(leaf.is_connected).lower(),
            "error": leaf.error,
            "uid": leaf.uid,
            "own": view.uid,
            "synced": str(leaf.is_synced("Node")).lower(),
            "trouble": leaf.watch_error("Node"),
            "nodes": ",".join(node.metadata.name for node in nodes),
            "zone-a": str(leaf.aggregate("nodes by zone", "a")),
            "versions": ",".join(leaf.versions("", "Node")),
            "own-versions": ",".join(view.versions("apps", "DaemonSet")),
        }
        found = view.get("ConfigMap", key, NAMESPACE)
        return Snapshot(key, report, (found or {}).get("data") or {}, nodes, group)

    return Capability(
        name="leaves",
        kinds=(),
        watches=(
            Watch(SECRETS, _names, label_selector=f"{GROUP}={group}"),
            Watch(CONFIG_MAPS, _names, label_selector=f"{GROUP}={group}"),
        ),
        all_keys=lambda view: [each["metadata"]["name"] for each in view.all("Secret")],
        collect=collect,
        plan=_plan,
        report=lambda _snapshot, _plan, _outcome, _now: Report(),
        rbac=(
            Rule("", ("secrets", "configmaps"), ("get", "list", "watch", "create", "patch")),
            Rule("", ("namespaces",), ("get",), ("kube-system",)),
        ),
        explain=Explain(lambda _view, ref: [ref.name] if ref.kind == "Secret" else []),
        remote=Remote(
            _clusters,
            watches=(Watch(_NODES, map_remote=lambda cluster, _old, _new: (cluster,), indexes={"zone": _zones}),),
            aggregates=(
                Aggregate("nodes by zone", "Node", int, _zones, lambda count, _: count + 1, lambda count, _: count - 1),
            ),
            keys=lambda _view, cluster: (cluster,),
        ),
    )


def _names(old, new):
    return ((new or old)["metadata"]["name"],)


def _zones(node):
    zone = node.metadata.labels.get("zone")
    return (zone,) if zone else ()


def _clusters(view):
    for secret in view.all("Secret"):
        if secret.get("data"):
            yield RemoteClusterRef(secret["metadata"]["name"], base64.b64decode(secret["data"]["kubeconfig"]))


def _plan(snapshot, _now, explain):
    actions, writes = [], {}
    for node in snapshot.nodes if snapshot.report["synced"] == "true" else ():
        if node.metadata.labels.get(SEEN) != "yes":
            action = _label(snapshot.name, node)
            actions.append(action)
            body = {"metadata": {"labels": {SEEN: "yes"}}}
            writes[action.id] = Write(body=body, resource_version=node.metadata.resource_version)
    if snapshot.report != snapshot.shown:
        actions.append(_tell(snapshot))
        metadata = {"labels": {GROUP: snapshot.group}}
        writes["report"] = Write(body={"metadata": metadata, "data": snapshot.report})
    decisions = tuple(Decision.of(each, message("Seen", **snapshot.report)) for each in explain)
    plan = Plan(capability="leaves", key=snapshot.name, actions=tuple(actions), decisions=decisions)
    return Planned(plan=plan, writes=writes)


def _label(cluster, node):
    name = node.metadata.name
    return Action(
        id=f"node/{name}",
        verb=Verb.PATCH,
        object=ObjectRef(api_version="v1", kind="Node", name=name, uid=node.metadata.uid, cluster=cluster),
        reason="Seen",
        facts=message("Seen"),
        diff=(FieldChange(path=f"metadata.labels[{SEEN}]", to="yes"),),
        disruption=Disruption.NONE,
    )


def _tell(snapshot):
    ref = ObjectRef(api_version="v1", kind="ConfigMap", name=snapshot.name, namespace=NAMESPACE)
    return Action(id="report", verb=Verb.APPLY, object=ref, reason="Reported", facts=message("Reported"))


# objects on the servers


def secret(name, group, kubeconfig):
    """Build the Secret of a leaf; the kubeconfig is text."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {GROUP: group}},
        "data": {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()},
    }


def node(name, zone="a", **labels):
    return {"metadata": {"name": name, "labels": {"zone": zone, **labels}}}


def exec_kubeconfig(server, secret_argument="s3cret"):
    """Build a kubeconfig with an exec plugin."""
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true", "args": [secret_argument]}
    return token_kubeconfig(server, {"exec": {**plugin, "interactiveMode": "Never"}})


def token_kubeconfig(server, user=None):
    """Build a kubeconfig for a server, with a token unless another user is given."""
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": user or {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


# clusters in process


class Leaf:
    """An embedded server behind a connection that can be cut, hang, or reject credentials."""

    def __init__(self, clock, seed):
        self.clock = clock
        self.server = Server(clock, seed=seed)
        self.client = connect(self.server)
        self.tokens = {"first"}
        self.is_hanging = False
        self.drop_answers = 0
        """Number of writes that are executed and whose response is lost."""
        self.fails_to_close = False
        self.refuses_writes = False
        self.hangs_on_writes = False
        self.requests = []
        self.connections = 0
        self._cut = asyncio.Event()

    def disconnect(self):
        self._cut.set()

    def reconnect(self):
        self._cut = asyncio.Event()

    def reached(self, token):
        self.connections += 1
        return LeafTransport(self, token)

    async def pass_through(self, method, path):
        """Deliver the response, fail, or hang."""
        self.requests.append((method, path))
        if self._cut.is_set():
            raise TransportError(f"{method} {path}: cut", may_have_run=False)
        if self.is_hanging:
            await self._cut.wait()
            raise TransportError(f"{method} {path}: cut while hanging", may_have_run=True)

    async def until_cut(self, chunks):
        while True:
            chunk = asyncio.ensure_future(anext(chunks))
            cut = asyncio.ensure_future(self._cut.wait())
            try:
                await asyncio.wait((chunk, cut), return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    raise TransportError("the stream was cut", may_have_run=True)
                yield chunk.result()
            finally:
                chunk.cancel()
                cut.cancel()
                await asyncio.gather(chunk, cut, return_exceptions=True)


class LeafTransport:
    def __init__(self, leaf, token):
        self._leaf = leaf
        self._token = token
        self._inner = leaf.client.transport
        self.is_closed = False

    async def send(self, request):
        method, path = request.method, request.path
        assert not self.is_closed, f"{method} {path} on a closed transport"
        await self._leaf.pass_through(method, path)
        if method != "GET" and self._leaf.hangs_on_writes:
            await asyncio.Event().wait()
        if method != "GET" and self._leaf.refuses_writes:
            raise TransportError(f"{method} {path}: refused", may_have_run=False)
        if self._token not in self._leaf.tokens:
            status = {"kind": "Status", "status": "Failure", "code": 401, "message": "Unauthorized"}
            return Response(401, {}, json.dumps(status).encode())
        answer = await self._inner.send(request)
        if method != "GET" and self._leaf.drop_answers:
            self._leaf.drop_answers -= 1
            raise TransportError(f"{method} {path}: the answer was lost", may_have_run=True)
        return answer

    @asynccontextmanager
    async def stream(self, request):
        await self._leaf.pass_through("WATCH", request.path)
        async with self._inner.stream(request) as stream:
            stream.chunks = self._leaf.until_cut(stream.chunks)
            yield stream

    async def close(self):
        self.is_closed = True
        if self._leaf.fails_to_close:
            self._leaf.fails_to_close = False
            raise RuntimeError("an unexpected error")


class RemoteClusters:
    """Leaves by the name of their server; `connect` reaches them by a kubeconfig of `server token`."""

    def __init__(self, clock):
        self.clock = clock
        self.leaves = {}

    async def add(self, *names):
        for name in names:
            self.leaves[name] = Leaf(self.clock, seed=len(self.leaves) + 100)
            await self.leaves[name].server.start(())
        return [self.leaves[name] for name in names]

    def connect(self, given):
        if given.kubeconfig.startswith(b"{"):
            return connect_by_kubeconfig(given)
        server, token = given.kubeconfig.decode().split()
        return self.leaves[server].reached(token)

    async def stop(self):
        for leaf in self.leaves.values():
            await leaf.server.stop()
