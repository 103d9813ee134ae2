"""A root and its leaf clusters, each a whole API server, for a test of clustertree; its objects are deleted after it.

    env.leaf_node("n1", cpu="4")            a node of the first leaf, ready
    east = env.cluster("east")              a Cluster for that leaf, its kubeconfig in a Secret
    env.until_offers(f"kosmos-{east}", cpu="4")

Leaves are empty between tests: a Cluster without models counts everything that its leaf has.
"""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

from tests.builders.leaf_servers import LEASES, NODES, PODS, Leaf, container, delete, pod_object
from tests.builders.lease_loop import QuickClock

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.clustertree.leases.keeper import renew
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE, NAMESPACE
from nodeyard.kube.quantity import parse
from nodeyard.runtime.capability import Capability
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.session import MERGE
from nodeyard.testing.wait import until

CLUSTERS = f"/apis/{names.API_VERSION}/{names.PLURAL}"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
EVENTS = "/apis/events.k8s.io/v1/events"
TIMES = 5.0
PATIENCE = 45.0

_numbers = itertools.count(1)


class FastClock(QuickClock):
    """Runs faster, but reports the real time of day."""

    def now(self):
        return self._real.now()


def with_fast_lease_loop(times: float = TIMES) -> Capability:
    """Return clustertree with lease rounds of two seconds instead of ten."""
    clock = FastClock(times)

    async def loop(context: Any) -> None:
        await renew(dataclasses.replace(context, clock=clock))

    return dataclasses.replace(CLUSTERTREE, background=dataclasses.replace(CLUSTERTREE.background, loops=(loop,)))


class TreeEnv:
    def __init__(self, root: Any, leaves: list[Any]) -> None:
        self.root = root
        self.rest: Rest = root.rest
        self.name = f"tree{next(_numbers)}"
        self.leaves = [Leaf(each, self.name) for each in leaves]
        self._created: list[str] = []
        self._clusters: list[str] = []

    @property
    def leaf(self) -> Leaf:
        """Return the first leaf."""
        return self.leaves[0]

    # Clusters

    def cluster(
        self,
        word: str,
        *models: dict[str, Any],
        kubeconfig: Any = None,
        inline: bool = False,
        metadata: dict[str, Any] | None = None,
        **tree: Any,
    ) -> str:
        """Create a Cluster for the first leaf or this kubeconfig; return its name. Options have their JSON names."""
        name = self.unique_name(word)
        text = _text(kubeconfig or self.leaf.server.kubeconfig)
        spec: dict[str, Any] = {"clusterTreeOptions": {"leafModels": list(models), **tree}}
        if inline:
            spec["kubeconfig"] = base64.b64encode(text.encode()).decode()
        else:
            spec["kubeconfigSecretRef"] = {"name": name}
            self.secret(name, text)
        kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
        self._clusters.append(name)
        self.rest.create({**kind, "metadata": {"name": name, **(metadata or {})}, "spec": spec})
        return name

    def secret(self, name: str, kubeconfig: Any, *, is_labelled: bool = True) -> None:
        """Create or replace a kubeconfig Secret."""
        self.rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        labels = {names.LEAF_KUBECONFIG: names.TRUE} if is_labelled else {}
        data = {names.KUBECONFIG_KEY: base64.b64encode(_text(kubeconfig).encode()).decode()}
        metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
        self.rest.replace_or_create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        self._created.append(f"{SECRETS}/{name}")

    def change(self, cluster: str, **tree: Any) -> None:
        """Merge-patch options of the tree; None removes one."""
        self._patch(f"{CLUSTERS}/{cluster}", {"spec": {"clusterTreeOptions": tree}})

    def annotate(self, cluster: str, **annotations: str | None) -> None:
        keys = {f"nodeyard.dev/{key}": value for key, value in annotations.items()}
        self._patch(f"{CLUSTERS}/{cluster}", {"metadata": {"annotations": keys}})

    def delete(self, cluster: str) -> None:
        self.rest.call("DELETE", f"{CLUSTERS}/{cluster}")

    def get_cluster(self, cluster: str) -> Any:
        """Return the Cluster, or None."""
        return _get(self.rest, f"{CLUSTERS}/{cluster}")

    def condition(self, cluster: str, type: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition."""
        return _condition(self.get_cluster(cluster), type)

    def wait_for_condition(self, cluster: str, type: str, *wanted: str) -> str:
        """Wait for this status, or status and reason; return the message."""

        def is_so() -> bool:
            return self.condition(cluster, type)[: len(wanted)] == wanted

        try:
            until(is_so, f"{cluster} is {type}={wanted}", PATIENCE)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {self.get_cluster(cluster)}") from None
        return self.condition(cluster, type)[2]

    def wait_for_message(self, cluster: str, type: str, text: str) -> None:
        until(lambda: text in self.condition(cluster, type)[2], f"{type} of {cluster} says {text}", PATIENCE)

    # nodes of the root

    def unique_name(self, word: str) -> str:
        return f"{self.name}-{word}"

    def node(self, word: str, *, name: str = "", **metadata: Any) -> str:
        """Create an unrelated node of the root."""
        name = name or self.unique_name(word)
        self.rest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}})
        self._created.append(f"{NODES}/{name}")
        return name

    def get_node(self, name: str) -> Any:
        return _get(self.rest, f"{NODES}/{name}")

    def patch(self, name: str, body: dict[str, Any]) -> None:
        self._patch(f"{NODES}/{name}", body)

    def delete_node(self, name: str) -> None:
        self.rest.call("DELETE", f"{NODES}/{name}")

    def mirrors(self, cluster: str) -> list[str]:
        """Return the nodes that mirror a Cluster."""
        nodes = self.rest.get(f"{NODES}?labelSelector={MIRRORED_NODE}%3Dtrue")["items"]
        return sorted(
            each["metadata"]["name"]
            for each in nodes
            if (each["metadata"].get("annotations") or {}).get(MIRRORED_CLUSTER) == cluster
        )

    def wait_for_mirrors(self, cluster: str, *nodes: str) -> None:
        until(lambda: self.mirrors(cluster) == sorted(nodes), f"{cluster} is {nodes}", PATIENCE)

    def allocatable(self, node: str) -> dict[str, str]:
        found = self.get_node(node)
        return {} if found is None else found["status"].get("allocatable") or {}

    def wait_for_allocatable(self, node: str, **amounts: str) -> None:
        """Wait for these amounts. Underscores in a keyword replace other characters of the resource name."""
        until(lambda: is_allocatable(self.allocatable(node), amounts), f"{node} offers {amounts}", PATIENCE)

    def ready(self, node: str) -> tuple[str, str, str]:
        return _condition(self.get_node(node), "Ready")

    def annotation(self, node: str, key: str) -> str:
        return str(self.get_node(node)["metadata"]["annotations"].get(key, ""))

    def wait_for_ready(self, node: str, *wanted: str) -> str:
        """Wait for this status of Ready, or status and reason; return the message."""
        until(lambda: self.ready(node)[: len(wanted)] == wanted, f"{node} is Ready={wanted}", PATIENCE)
        return self.ready(node)[2]

    def wait_for_spec(self, node: str, is_so: Any) -> None:
        until(lambda: is_so(self.get_node(node)["spec"]), f"the spec of {node} is so", PATIENCE)

    def wait_for_labels(self, node: str, **labels: str | None) -> None:
        """Wait for these labels; None means that a label is missing."""

        def are_so() -> bool:
            has = self.get_node(node)["metadata"]["labels"]
            return all(has.get(key) == value for key, value in labels.items())

        until(are_so, f"{node} has the labels {labels}", PATIENCE)

    def wait_until(self, is_so: Any, what: str) -> Any:
        return until(is_so, what, PATIENCE)

    def lease(self, node: str) -> Any:
        return _get(self.rest, f"{LEASES}/{node}")

    def renew(self, node: str, moment: str) -> None:
        """Renew a Lease as another client."""
        self._patch(f"{LEASES}/{node}", {"spec": {"renewTime": moment}})

    def wait_for_renewal(self, node: str) -> Any:
        """Wait for the next renewal of the node's Lease; return the Lease."""
        before = (self.lease(node) or {"spec": {}})["spec"].get("renewTime")

        def renewed() -> Any:
            lease = self.lease(node)
            return lease if lease is not None and lease["spec"]["renewTime"] != before else None

        return until(renewed, f"the lease of {node} is renewed", PATIENCE)

    # pods of the root

    def pod(self, word: str, node: str, *, since: str = "") -> str:
        """Create a pod that is bound to a node; `since` is the time of scheduling."""
        name = self.unique_name(word)
        self.rest.create(pod_object(name, node, [container({})], {}, {"tolerations": [{"operator": "Exists"}]}))
        self._created.append(f"{PODS}/{name}")
        if since:
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
            self._patch(f"{PODS}/{name}/status", {"status": {"conditions": [scheduled]}})
        return name

    def acknowledge(self, pod: str, since: str) -> None:
        self._patch(f"{PODS}/{pod}/status", {"status": {"startTime": since}})

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return reason and note of the Events about an object."""
        found = self.rest.get(EVENTS)["items"]
        return [(each["reason"], each.get("note", "")) for each in found if each["regarding"].get("name") == name]

    def wait_for_event(self, name: str, reason: str) -> str:
        """Wait for an Event with this reason; return its note."""
        found = lambda: next((text for said, text in self.events(name) if said == reason), None)  # noqa: E731
        return until(found, f"{reason} is said about {name}", PATIENCE)

    # cleanup

    def close(self, timeout: float = 15.0) -> None:
        """Delete everything. `timeout` is the time for the operator to remove its finalizers; 0 if none runs."""
        left = [cluster for cluster in self._clusters if self.get_cluster(cluster) is not None]
        for cluster in left:
            self.annotate(cluster, paused=None)
            self.delete(cluster)
        for cluster in left:
            self._finish(cluster, timeout)
        for path in dict.fromkeys(self._created):
            delete(self.rest, f"{path}?gracePeriodSeconds=0" if "/pods/" in path else path)
        for leaf in self.leaves:
            leaf.close()

    def _finish(self, cluster: str, timeout: float) -> None:
        """Wait for the operator to delete it; without one, remove nodes and finalizer."""
        try:
            until(lambda: self.get_cluster(cluster) is None, f"{cluster} is gone", timeout)
        except TimeoutError:
            for node in self.mirrors(cluster):
                self.delete_node(node)
            self._patch(f"{CLUSTERS}/{cluster}", {"metadata": {"finalizers": None}})

    def _patch(self, path: str, body: dict[str, Any]) -> None:
        self.rest.call("PATCH", path, body, content_type=MERGE)


# models


def node_model(node: str, **more: Any) -> dict[str, Any]:
    return {"nodeSelector": {"nodeName": node}, **more}


def selector_model(name: str, selector: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a leaf model that selects nodes by the label `pool=<name>`, unless a whole selector is given."""
    chosen = {"matchLabels": {"pool": name}} if selector is None else selector
    return {"leafNodeName": name, "nodeSelector": {"labelSelector": chosen}, **more}


def whole_model(**more: Any) -> dict[str, Any]:
    return {"nodeSelector": {}, **more}


def is_allocatable(has: dict[str, str], wanted: dict[str, str]) -> bool:
    return all(name in has and parse(has[name]) == parse(amount) for name, amount in wanted.items())


def _text(kubeconfig: Any) -> str:
    if isinstance(kubeconfig, Path):
        return kubeconfig.read_text()
    return kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)


def _condition(obj: Any, type: str) -> tuple[str, str, str]:
    found = ((obj or {}).get("status") or {}).get("conditions") or []
    return next(
        ((each["status"], each.get("reason", ""), each.get("message", "")) for each in found if each["type"] == type),
        ("", "", ""),
    )


def _get(rest: Rest, path: str) -> Any:
    try:
        return rest.get(path)
    except RestError as error:
        if error.status != 404:
            raise
        return None
