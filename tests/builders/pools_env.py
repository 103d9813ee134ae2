"""Drives and observes LatticeClusters on a shared server; they are deleted after the test or its file."""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from nodeyard.capabilities.pools import names
from nodeyard.kube.json import Object
from nodeyard.testing.machines import PODS
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.session import MERGE, Session
from nodeyard.testing.wait import until

from .pools import class_body, cluster_body, service_body

CLUSTERS = f"/apis/{names.API_VERSION}/{names.CLUSTER_PLURAL}"
CLASSES = f"/apis/{names.API_VERSION}/{names.CLASS_PLURAL}"
SERVICES = f"/apis/{names.API_VERSION}/namespaces/default/{names.SERVICE_PLURAL}"
INFRASTRUCTURE = f"{names.INFRASTRUCTURE_GROUP}/{names.CAPI_VERSION}"
TEMPLATES = ((names.BOOTSTRAP_API_VERSION, "kubeadmconfigtemplates"), (INFRASTRUCTURE, "devmachinetemplates"))
WRITTEN = (
    (names.CAPI_API_VERSION, "clusters"),
    (names.CAPI_API_VERSION, "machinedeployments"),
    (names.CONTROL_PLANE_API_VERSION, "kubeadmcontrolplanes"),
    (INFRASTRUCTURE, "devclusters"),
    *TEMPLATES,
)
"""Kinds that the operator writes for a cluster."""
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
PATIENCE = 100.0
PROGRAM = (sys.executable, "-c", "from nodeyard.cli import main; main()")

_numbers = itertools.count(1)


class PoolsEnv:
    def __init__(self, api: Any, machines: Any) -> None:
        self.rest: Rest = api.rest
        self.session = Session(api.url, api.authority.pem, api.admin_token, keep_alive=True)
        self.kubeconfig = api.kubeconfig
        self.machines = machines
        self.operator: Any = None
        """The operator that runs during all tests, if there is one."""
        self._created: list[str] = []

    # creating and changing

    def name(self, word: str = "lc") -> str:
        """Return a name that no other test uses."""
        return f"{word}{next(_numbers)}"

    def cluster(self, name: str, **spec: Any) -> str:
        """Apply a new LatticeCluster; return its name."""
        return self._create(CLUSTERS, cluster_body(name, **spec))

    def node_class(self, name: str, **providers: Any) -> str:
        return self._create(CLASSES, class_body(name, **providers))

    def service(self, name: str, *args: Any) -> str:
        return self._create(SERVICES, service_body(name, *args))

    def _create(self, path: str, body: Object) -> str:
        name: str = body["metadata"]["name"]
        self._created.append(f"{path}/{name}")
        self.rest.create(body)
        return name

    def change(self, name: str, **spec: Any) -> None:
        """Merge-patch the spec."""
        self.patch(f"{CLUSTERS}/{name}", {"spec": spec})

    def change_pools(self, name: str, **pools: Any) -> None:
        """Merge-patch the pools; None removes a pool."""
        self.change(name, nodes={"workerPools": pools})

    def change_class(self, name: str, **providers: Any) -> None:
        self.patch(f"{CLASSES}/{name}", {"spec": {"providers": providers}})

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> None:
        self.patch(f"{CLUSTERS}/{name}", {"metadata": {"annotations": dict(annotations)}})

    def delete(self, name: str) -> None:
        self.rest.call("DELETE", f"{CLUSTERS}/{name}")

    def pause(self, name: str, *, is_on: bool) -> None:
        """Pause the Cluster, as `clusterctl move` does."""
        self.patch(self.path(name, "clusters", name), {"spec": {"paused": is_on or None}})

    def move_away(self, name: str) -> None:
        """Delete the objects as `clusterctl move` does on the source, the Cluster last, with finalizers removed."""
        control_plane = self.path(
            name, "kubeadmcontrolplanes", names.control_plane(name), names.CONTROL_PLANE_API_VERSION
        )
        machines = [self.path(name, "machines", each["metadata"]["name"]) for each in self.list(name, "machines")]
        for path in (control_plane, *machines, self.path(name, "clusters", name)):
            self.wait_until(lambda path=path: self._is_deleted(path), f"{path} is gone")

    def _is_deleted(self, path: str) -> bool:
        """Delete an object; return False if a controller has just added its finalizer again."""
        with suppress(RestError):
            self.patch(path, {"metadata": {"finalizers": None}})
            self.rest.call("DELETE", path)
        return not self.exists(path)

    def set_kubeconfig(self, name: str, config: Object) -> None:
        """Point the kubeconfig of a cluster to that server."""
        metadata = {
            "name": names.kubeconfig(name),
            "namespace": names.namespace(name),
            "labels": {names.CLUSTER_NAME_LABEL: name},
        }
        value = base64.b64encode(json.dumps(config).encode()).decode()
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "cluster.x-k8s.io/secret"}
        self.rest.replace_or_create({**secret, "data": {names.KUBECONFIG_KEY: value}})

    def patch(self, path: str, body: Object, manager: str = "") -> Object:
        """Merge-patch an object, as this field manager if given."""
        query = f"?fieldManager={manager}" if manager else ""
        found: Object = self.rest.call("PATCH", f"{path}{query}", body, content_type=MERGE)
        return found

    def delete_workload(self, app: str) -> None:
        """Delete the PodDisruptionBudget and the remaining pods of an app."""
        with suppress(RestError):
            self.machines.remove_budget(app)
        for pod in self.machines.pods(app):
            with suppress(RestError):
                self.rest.call("DELETE", f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")

    # reading

    def path(self, cluster: str, plural: str, name: str = "", group_version: str = names.CAPI_API_VERSION) -> str:
        """Return the path of an object of a cluster, or of all objects of a kind."""
        collection = f"/apis/{group_version}/namespaces/{names.namespace(cluster)}/{plural}"
        return f"{collection}/{name}" if name else collection

    def get(self, name: str) -> Object:
        found: Object = self.rest.get(f"{CLUSTERS}/{name}")
        return found

    def status(self, name: str) -> Object:
        found: Object = self.get(name).get("status") or {}
        return found

    def pool(self, name: str, pool: str) -> Object:
        """Return the status of the pool."""
        found: Object = (self.status(name).get("workerPools") or {}).get(pool) or {}
        return found

    def condition(self, name: str, kind: str) -> Object:
        found = (each for each in self.status(name).get("conditions") or () if each["type"] == kind)
        return next(found, {})

    def count_events(self, name: str, reason: str) -> int:
        """Return the number of events with this reason."""
        events = [each for each in self.rest.get(EVENTS)["items"] if each["regarding"].get("name") == name]
        return sum((each.get("series") or {}).get("count", 1) for each in events if each["reason"] == reason)

    def deployment(self, name: str, pool: str) -> Object | None:
        found: Object | None = self.machines.deployment(name, names.deployment(name, pool))
        return found

    def control_plane(self, name: str) -> Object:
        path = self.path(
            name, "kubeadmcontrolplanes", names.control_plane(name), group_version=names.CONTROL_PLANE_API_VERSION
        )
        found: Object = self.rest.get(path)
        return found

    def replicas(self, name: str, pool: str) -> int | None:
        found = self.deployment(name, pool)
        return None if found is None else found["spec"].get("replicas")

    def machines_of(self, name: str, pool: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.machines.machines(name, names.deployment(name, pool))]

    def nodes_of(self, name: str, pool: str) -> list[Object]:
        found: list[Object] = self.machines.nodes(name, names.deployment(name, pool))
        return found

    def node(self, name: str) -> Object:
        found: Object = self.rest.get(f"/api/v1/nodes/{name}")
        return found

    def list(self, name: str, plural: str, group_version: str = names.CAPI_API_VERSION) -> list[Object]:
        found: list[Object] = self.rest.get(self.path(name, plural, group_version=group_version))["items"]
        return found

    def templates(self, name: str, pool: str) -> set[str]:
        """Return the existing templates of a pool, as kind and name."""
        return {
            f"{plural}/{each['metadata']['name']}"
            for group_version, plural in TEMPLATES
            for each in self.list(name, plural, group_version)
            if (each["metadata"].get("labels") or {}).get(names.POOL) == pool
        }

    def written_objects(self, name: str) -> dict[str, Any]:
        """Return all objects that the operator writes for a cluster, without fields that Cluster API writes."""
        return {
            f"{plural}/{each['metadata']['name']}": (
                each["spec"],
                each["metadata"].get("labels"),
                each["metadata"].get("annotations"),
            )
            for group_version, plural in WRITTEN
            for each in self.list(name, plural, group_version)
        }

    def nodeyard(self, *arguments: object) -> tuple[int, str]:
        """Run `nodeyard`; return its exit code and its output on one line."""
        command = [*PROGRAM, *map(str, arguments), "--kubeconfig", str(self.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, " ".join(done.stdout.split())

    def why(self, subject: str, until: str) -> str:
        """Ask `nodeyard why` until it answers with this text; return the answer."""
        answers: list[str] = []

        def is_answered() -> bool:
            code, answer = self.nodeyard("why", subject)
            answers.append(f"exit code {code}: {answer}")
            return code == 0 and until in answer

        try:
            self.wait_until(is_answered, f"why {subject} answers {until!r}", timeout=60)
        except TimeoutError:
            raise AssertionError(f"why {subject} does not answer {until!r} but {answers[-1]}") from None
        return answers[-1]

    def exists(self, path: str) -> bool:
        return self.rest.exists(path)

    # waiting

    def wait_until(self, condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
        return until(condition, what, timeout)

    def wait_for_nodes(self, name: str, pool: str, count: int) -> list[Object]:
        """Wait until the pool has that many ready nodes and the status reports them."""
        nodes: list[Object] = self.machines.wait_for_nodes(name, names.deployment(name, pool), count)

        def is_reported() -> bool:
            status = self.pool(name, pool)
            return (status.get("ready"), status.get("available"), status.get("phase")) == (count, count, "Ready")

        self.wait_until(is_reported, f"the status of {name} says that {pool} has {count}")
        return nodes

    def wait_until_removed(self, name: str, pool: str) -> None:
        """Wait until no object of the pool is left and the status no longer lists it."""
        self.machines.wait_until_removed(name, names.deployment(name, pool))
        self.wait_until(lambda: not self.pool(name, pool), f"the status of {name} is done with {pool}")

    def wait_until_ready(self, name: str) -> Object:
        return self.wait_for_condition(name, "Ready", "True")

    def wait_for_condition(self, name: str, kind: str, status: str, reason: str = "") -> Object:
        """Wait for a condition of the current generation; return the whole status."""

        def is_so() -> bool:
            found, generation = self.condition(name, kind), self.get(name)["metadata"]["generation"]
            is_current = found.get("observedGeneration") == generation
            return is_current and found.get("status") == status and reason in ("", found["reason"])

        try:
            self.wait_until(is_so, f"{kind} of {name} is {status} {reason}".rstrip())
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it says {self.status(name)}") from None
        return self.status(name)

    def close(self) -> None:
        """Delete the objects of the test and remove their finalizers."""
        for path in self._created:
            try:
                self.rest.call("DELETE", path)
                self.patch(path, {"metadata": {"finalizers": None}})
            except RestError as error:
                if error.status != 404:
                    raise


class History:
    """History of the objects of a kind, by resourceVersion, since it was created."""

    def __init__(self, env: PoolsEnv, path: str) -> None:
        self._session, self._path = env.session, path
        found = env.rest.get(path)
        self._since: str = found["metadata"]["resourceVersion"]
        self._first: list[Object] = [{"type": "ADDED", "object": each} for each in found["items"]]
        self._seen: list[Object] = []

    def events(self) -> list[Object]:
        """Return the initial objects and all changes in order. Call it once a minute, before the server compacts."""
        return [*self._first, *self._changes(3)]

    def deletion(self, name: str) -> int:
        """Return the resourceVersion at which an object was deleted, to compare the order of deletions."""
        for event in self._changes(10):
            if event["type"] == "DELETED" and event["object"]["metadata"]["name"] == name:
                return int(event["object"]["metadata"]["resourceVersion"])
        raise AssertionError(f"{self._path}: {name} was not deleted")

    def _changes(self, seconds: int) -> Iterator[Object]:
        """Yield the events read before, then those that arrive within the timeout."""
        yield from self._seen
        query = {"resourceVersion": self._since, "timeoutSeconds": seconds}
        with self._session.watch(self._path, query=query) as events:
            for event in events:
                assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
                self._seen = [*self._seen, event]
                self._since = event["object"]["metadata"]["resourceVersion"]
                yield event

    def states(self) -> Iterator[list[Object]]:
        """Yield all objects after each change."""
        there: dict[str, Object] = {}
        for event in self.events():
            name = event["object"]["metadata"]["name"]
            there = {**there, name: event["object"]}
            if event["type"] == "DELETED":
                del there[name]
            yield list(there.values())
