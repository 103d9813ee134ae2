"""A root and its leaves, each a whole API server, as one test of clustertree sees them; what it makes goes with it.

    wood.leaf_node("n1", cpu="4")            a node of the first leaf, ready
    east = wood.cluster("east")              a Cluster for that leaf, its kubeconfig in a Secret
    wood.until_offers(f"kosmos-{east}", cpu="4")

Leaves are empty between tests: a Cluster without models counts everything that its leaf has.
"""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

from tests.builders.keepers import QuickClock
from tests.builders.leaf_servers import LEASES, NODES, PODS, Leaf, container, delete, pod_object

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.clustertree.leases.loop import renew
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


class HurriedClock(QuickClock):
    """Everything is due sooner, and what is written down is the time of day."""

    def now(self):
        return self._real.now()


def hurried(times: float = TIMES) -> Capability:
    """Clustertree whose lease loop has rounds of two seconds instead of ten."""
    clock = HurriedClock(times)

    async def loop(context: Any) -> None:
        await renew(dataclasses.replace(context, clock=clock))

    return dataclasses.replace(CLUSTERTREE, background=dataclasses.replace(CLUSTERTREE.background, loops=(loop,)))


class Wood:
    def __init__(self, root: Any, leaves: list[Any]) -> None:
        self.root = root
        self.rest: Rest = root.rest
        self.name = f"wood{next(_numbers)}"
        self.leaves = [Leaf(each, self.name) for each in leaves]
        self._made: list[str] = []
        self._clusters: list[str] = []

    @property
    def leaf(self) -> Leaf:
        """The first."""
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
        """For the first leaf, unless another kubeconfig is given; its name. Options of the tree as on the wire."""
        name = self.named(word)
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
        """Made, or changed to this."""
        self.rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        labels = {names.LEAF_KUBECONFIG: names.TRUE} if is_labelled else {}
        data = {names.KUBECONFIG_KEY: base64.b64encode(_text(kubeconfig).encode()).decode()}
        metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
        self.rest.replace_or_create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        self._made.append(f"{SECRETS}/{name}")

    def change(self, cluster: str, **tree: Any) -> None:
        """Options of the tree; None takes one away."""
        self._patch(f"{CLUSTERS}/{cluster}", {"spec": {"clusterTreeOptions": tree}})

    def annotate(self, cluster: str, **annotations: str | None) -> None:
        keys = {f"nodeyard.dev/{key}": value for key, value in annotations.items()}
        self._patch(f"{CLUSTERS}/{cluster}", {"metadata": {"annotations": keys}})

    def delete(self, cluster: str) -> None:
        self.rest.call("DELETE", f"{CLUSTERS}/{cluster}")

    def see(self, cluster: str) -> Any:
        """The Cluster; None when it is gone."""
        return _get(self.rest, f"{CLUSTERS}/{cluster}")

    def condition(self, cluster: str, type: str) -> tuple[str, str, str]:
        """Status, reason and message."""
        return _condition(self.see(cluster), type)

    def until_condition(self, cluster: str, type: str, *wanted: str) -> str:
        """Status, or status and reason; its message."""

        def is_so() -> bool:
            return self.condition(cluster, type)[: len(wanted)] == wanted

        try:
            until(is_so, f"{cluster} is {type}={wanted}", PATIENCE)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {self.see(cluster)}") from None
        return self.condition(cluster, type)[2]

    def until_says(self, cluster: str, type: str, text: str) -> None:
        until(lambda: text in self.condition(cluster, type)[2], f"{type} of {cluster} says {text}", PATIENCE)

    # nodes of the root

    def named(self, word: str) -> str:
        return f"{self.name}-{word}"

    def node(self, word: str, *, name: str = "", **metadata: Any) -> str:
        """A node of the root that has nothing to do with us."""
        name = name or self.named(word)
        self.rest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}})
        self._made.append(f"{NODES}/{name}")
        return name

    def get(self, name: str) -> Any:
        return _get(self.rest, f"{NODES}/{name}")

    def patch(self, name: str, body: dict[str, Any]) -> None:
        self._patch(f"{NODES}/{name}", body)

    def remove(self, name: str) -> None:
        self.rest.call("DELETE", f"{NODES}/{name}")

    def mirrors(self, cluster: str) -> list[str]:
        """The nodes that mirror a Cluster."""
        nodes = self.rest.get(f"{NODES}?labelSelector={MIRRORED_NODE}%3Dtrue")["items"]
        return sorted(
            each["metadata"]["name"]
            for each in nodes
            if (each["metadata"].get("annotations") or {}).get(MIRRORED_CLUSTER) == cluster
        )

    def until_mirrors(self, cluster: str, *nodes: str) -> None:
        until(lambda: self.mirrors(cluster) == sorted(nodes), f"{cluster} is {nodes}", PATIENCE)

    def offers(self, node: str) -> dict[str, str]:
        found = self.get(node)
        return {} if found is None else found["status"].get("allocatable") or {}

    def until_offers(self, node: str, **amounts: str) -> None:
        """By amount. A name of a resource that is no word is given with underscores for what is not."""
        until(lambda: is_offered(self.offers(node), amounts), f"{node} offers {amounts}", PATIENCE)

    def ready(self, node: str) -> tuple[str, str, str]:
        return _condition(self.get(node), "Ready")

    def annotation(self, node: str, key: str) -> str:
        return str(self.get(node)["metadata"]["annotations"].get(key, ""))

    def until_ready(self, node: str, *wanted: str) -> str:
        """Status, or status and reason; its message."""
        until(lambda: self.ready(node)[: len(wanted)] == wanted, f"{node} is Ready={wanted}", PATIENCE)
        return self.ready(node)[2]

    def until_spec(self, node: str, is_so: Any) -> None:
        until(lambda: is_so(self.get(node)["spec"]), f"the spec of {node} is so", PATIENCE)

    def until_labels(self, node: str, **labels: str | None) -> None:
        """None: it is not there."""

        def are_so() -> bool:
            has = self.get(node)["metadata"]["labels"]
            return all(has.get(key) == value for key, value in labels.items())

        until(are_so, f"{node} has the labels {labels}", PATIENCE)

    def until(self, is_so: Any, what: str) -> Any:
        return until(is_so, what, PATIENCE)

    def lease(self, node: str) -> Any:
        return _get(self.rest, f"{LEASES}/{node}")

    def renew(self, node: str, moment: str) -> None:
        """As somebody else does."""
        self._patch(f"{LEASES}/{node}", {"spec": {"renewTime": moment}})

    def until_renewed(self, node: str) -> Any:
        """Its lease is there, and renewed after now."""
        before = (self.lease(node) or {"spec": {}})["spec"].get("renewTime")

        def renewed() -> Any:
            lease = self.lease(node)
            return lease if lease is not None and lease["spec"]["renewTime"] != before else None

        return until(renewed, f"the lease of {node} is renewed", PATIENCE)

    # pods of the root

    def pod(self, word: str, node: str, *, since: str = "") -> str:
        """Bound to a node; `since` is when the scheduler is said to have done it."""
        name = self.named(word)
        self.rest.create(pod_object(name, node, [container({})], {}, {"tolerations": [{"operator": "Exists"}]}))
        self._made.append(f"{PODS}/{name}")
        if since:
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
            self._patch(f"{PODS}/{name}/status", {"status": {"conditions": [scheduled]}})
        return name

    def acknowledge(self, pod: str, since: str) -> None:
        self._patch(f"{PODS}/{pod}/status", {"status": {"startTime": since}})

    def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and text of what was said about an object of this name."""
        found = self.rest.get(EVENTS)["items"]
        return [(each["reason"], each.get("note", "")) for each in found if each["regarding"].get("name") == name]

    def until_events(self, name: str, reason: str) -> str:
        """That was said about an object; how."""
        found = lambda: next((text for said, text in self.events(name) if said == reason), None)  # noqa: E731
        return until(found, f"{reason} is said about {name}", PATIENCE)

    # the end

    def close(self, patience: float = 15.0) -> None:
        """`patience` is for the operator to end what is left; none where none runs any more."""
        left = [cluster for cluster in self._clusters if self.see(cluster) is not None]
        for cluster in left:
            self.annotate(cluster, paused=None)
            self.delete(cluster)
        for cluster in left:
            self._finish(cluster, patience)
        for path in dict.fromkeys(self._made):
            delete(self.rest, f"{path}?gracePeriodSeconds=0" if "/pods/" in path else path)
        for leaf in self.leaves:
            leaf.close()

    def _finish(self, cluster: str, patience: float) -> None:
        """By the operator, or by hand where none runs any more."""
        try:
            until(lambda: self.see(cluster) is None, f"{cluster} is gone", patience)
        except TimeoutError:
            for node in self.mirrors(cluster):
                self.remove(node)
            self._patch(f"{CLUSTERS}/{cluster}", {"metadata": {"finalizers": None}})

    def _patch(self, path: str, body: dict[str, Any]) -> None:
        self.rest.call("PATCH", path, body, content_type=MERGE)


# models


def one(node: str, **more: Any) -> dict[str, Any]:
    return {"nodeSelector": {"nodeName": node}, **more}


def party(name: str, selector: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Of the leaf nodes with the label `pool=<name>`, unless a whole selector is given."""
    chosen = {"matchLabels": {"pool": name}} if selector is None else selector
    return {"leafNodeName": name, "nodeSelector": {"labelSelector": chosen}, **more}


def whole(**more: Any) -> dict[str, Any]:
    return {"nodeSelector": {}, **more}


def is_offered(has: dict[str, str], wanted: dict[str, str]) -> bool:
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
