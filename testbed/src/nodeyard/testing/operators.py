"""Operators for tests: complete ones, each running as a user with its generated role.

    first = operator("spares", identity="first")     running, caches synced
    first.leads                                      whether it may write
    first.kill()                                     as kill -9: nothing is finished, no lease released

Each has its own event loop, connection (`CuttableProxy`) and user. A request that the server forbids fails the test at
its end, so the declared rights of a capability are proven to be enough.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from nodeyard.admission.certificates import RotationPolicy
from nodeyard.admission.manager import Webhooks
from nodeyard.app.capabilities import choose
from nodeyard.app.operator import Operation, Running, operating
from nodeyard.client.config import Config, Impersonation
from nodeyard.client.errors import NamespaceTerminating
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.kube.json import Object
from nodeyard.kube.names import CAPABILITY, NAMESPACE
from nodeyard.plan.brake import Limit
from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.health import Address
from nodeyard.runtime.leader.election import Timing, lease_name
from nodeyard.runtime.settings import Settings
from nodeyard.testing.cuttable_proxy import CuttableProxy
from nodeyard.testing.loop_thread import LoopThread
from nodeyard.testing.rest import RestError
from nodeyard.testing.wait import until

LOCAL_WEBHOOKS = Webhooks(Address("127.0.0.1", 0), rotation=RotationPolicy(interval=0.5, settle=1.0))
SHORT = Timing(duration=4, margin=1.5, interval=0.4, deadline=1.0)
"""Leases that expire within a test."""
GRACE_SECONDS = 5.0
FORBIDDEN = "403"
TERMINATING = NamespaceTerminating.__name__

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Options:
    """Options of an operator in a test."""

    identity: str = ""
    observe: bool = False
    take_over: bool = False
    limit: Limit = field(default_factory=Limit)
    lease: Timing = SHORT
    share: Timing = SHORT
    """Timing of the Lease of each key, with sharding."""
    resync: float = 600.0
    granted: Mapping[str, Sequence[str]] | None = None
    """Namespaces of optional grants, by grant; forbidden requests then do not fail the test. None: all namespaces."""
    rules: Sequence[Object] | None = None
    """RBAC rules that replace the generated ones; forbidden requests then do not fail the test."""
    webhooks: Webhooks | None = None
    """Serve and register webhooks; `LOCAL_WEBHOOKS` uses a free loopback port."""
    through: Path | None = None
    """An administrator's kubeconfig to connect with, such as that of `nodeyard_faults`; the user is impersonated."""


class Operator(LoopThread):
    """An operator that runs in this process."""

    def __init__(self, config: Config, capability: Capability, options: Options, user: str = "") -> None:
        super().__init__(f"operator-{options.identity}")
        self.user = user
        self.identity = options.identity
        self.capability = capability.name
        self._config = config
        self._capability = capability
        self._options = options
        self._proxy = CuttableProxy(config.server)
        self._is_closed = False
        self._operating: AbstractAsyncContextManager[Running]
        self._running: Running

    # lifecycle

    def start(self) -> Self:
        self._proxy.start()
        try:
            return super().start()
        except BaseException:
            self._proxy.close()
            raise

    async def _start(self) -> None:
        chosen = self._options
        settings = Settings(
            identity=self.identity,
            observe=chosen.observe,
            take_over=chosen.take_over,
            limit=chosen.limit,
            lease=chosen.lease,
            key_lease=chosen.share,
            resync=chosen.resync,
            grace=GRACE_SECONDS,
        )
        config = replace(self._config, server=self._proxy.url)
        operation = Operation(config, [self._capability], settings, install_crds=True, webhooks=chosen.webhooks)
        self._operating = operating(operation)
        self._running = await self._operating.__aenter__()

    async def _stop(self) -> None:
        await self._operating.__aexit__(None, None, None)

    def stop(self) -> None:
        """Stop gracefully: finish requests in flight and release the lease."""
        if self._is_closed:
            return
        self._is_closed = True
        self.close()
        self._proxy.close()

    def kill(self) -> None:
        """Stop as by SIGKILL: requests in flight are lost and the lease is not released."""
        self._proxy.cut()

    # state

    def ready(self) -> Self:
        """Wait until all caches are synced."""
        checks = self._running.health.ready
        until(lambda: not any(check() for check in checks.values()), f"operator {self.identity} is ready")
        return self

    def wait_until_leading(self) -> Self:
        """Wait until it leads."""
        until(lambda: self.leads, f"operator {self.identity} leads")
        return self

    def wait_until_idle(self) -> Self:
        """Wait until no key is ready or being reconciled: the responses to all writes have been counted."""
        until(lambda: self._running.manager.controllers[0].is_idle, f"operator {self.identity} is idle")
        return self

    @property
    def leads(self) -> bool:
        return self._running.manager.controllers[0].fence.may_write()

    @property
    def held(self) -> Mapping[str, Any]:
        """Return the held plans, by key."""
        return dict(self._running.manager.controllers[0].held)

    @property
    def ports(self) -> Mapping[str, int]:
        """Return its ports, by purpose."""
        return self._running.ports

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum over all series of a metric with these labels."""
        return float(sum(sample.value for sample in self._samples(name, labels)))

    def write_counts(self) -> dict[str, float]:
        """Return the number of write requests answered, by verb and resource, without Leases."""
        counted: dict[str, float] = {}
        for sample in self._samples("nodeyard_client_requests_total", {}):
            verb, resource = sample.labels["verb"], sample.labels["resource"]
            if verb not in ("get", "list", "watch") and not resource.startswith("lease"):
                counted[f"{verb} {resource}"] = counted.get(f"{verb} {resource}", 0) + sample.value
        return counted

    def refused(self) -> list[str]:
        """Return the forbidden requests, except creates in a namespace that is being deleted."""
        samples = self._samples("nodeyard_client_requests_total", {"code": FORBIDDEN})
        refused = [sample for sample in samples if sample.value and sample.labels["reason"] != TERMINATING]
        return sorted({f"{sample.labels['verb']} {sample.labels['resource']}" for sample in refused})

    def _samples(self, name: str, labels: Mapping[str, str]) -> list[Any]:
        return [
            sample
            for metric in self._running.metrics.registry.collect()
            for sample in metric.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]


class Operators:
    """The operators of a test; call it to start one."""

    def __init__(self, api: Any, fail: Callable[[str], object]) -> None:
        self._api = api
        self._fail = fail
        self._started: list[tuple[Operator, Options]] = []

    def __call__(self, capability: str | Capability, **given: Any) -> Operator:
        """Start an operator for a capability, given by name or itself; options are those of `Options`."""
        (chosen,) = choose([capability]) if isinstance(capability, str) else (capability,)
        number = next(_numbers)
        options = Options(**given)
        if not options.identity:
            options = replace(options, identity=f"operator-{number}")
        user = f"operator-{chosen.name}-{number}"
        config = self._config(chosen, options, user)
        operator = Operator(config, chosen, options, user)
        operator.start()
        self._started.append((operator, options))
        return operator.ready()

    def close(self) -> None:
        for operator, _ in reversed(self._started):
            operator.stop()
        for name in {operator.capability for operator, _ in self._started}:
            self._delete_leases(name)
        refused = [
            f"{operator.identity}: {what}"
            for operator, options in self._started
            if options.rules is None and options.granted is None
            for what in operator.refused()
        ]
        if refused:
            self._fail(f"not allowed by the declared rights: {', '.join(refused)}")

    def _delete_leases(self, capability: str) -> None:
        """Delete the leases of killed operators, which the next test would wait for."""
        rest, path = self._api.rest, f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
        shares = rest.call("GET", f"{path}?labelSelector={CAPABILITY}%3D{capability}")["items"]
        for name in {lease_name(capability), *(lease["metadata"]["name"] for lease in shares)}:
            with contextlib.suppress(RestError):
                rest.call("DELETE", f"{path}/{name}")

    def _config(self, capability: Capability, options: Options, user: str) -> Config:
        rules = rbac.rules(capability, installs_crds=True) if options.rules is None else options.rules
        rest = self._api.rest
        rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        kubeconfig = self._api.user(user, rules=rules)
        local = {NAMESPACE: rbac.local_rules(capability), **rbac.rules_elsewhere(capability)}
        for namespace, granted in local.items():
            self._api.user(user, rules=granted, namespace=namespace)
        if options.rules is None:
            self._grant(capability, options, user)
        if (role := rbac.declared_role(capability)) is not None:
            _bind_declared_role(rest, user, role)
        if options.through is None:
            return load_kubeconfig([kubeconfig])
        config = load_kubeconfig([options.through])
        return replace(config, credentials=replace(config.credentials, impersonate=Impersonation(user)))

    def _grant(self, capability: Capability, options: Options, user: str) -> None:
        """Bind the optional grants of a capability, in all or the given namespaces."""
        group = "rbac.authorization.k8s.io"
        for grant, rules in rbac.grants(capability).items():
            name = f"nodeyard-testing:{user}:{grant}"
            role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
            self._api.rest.replace_or_create(role)
            for namespace in ("",) if options.granted is None else options.granted.get(grant, ()):
                self._api.rest.replace_or_create(
                    {
                        "apiVersion": f"{group}/v1",
                        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
                        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
                        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
                        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                    }
                )


def _bind_declared_role(rest: Any, user: str, role: Object) -> None:
    """Bind the role that aggregates rights on declared kinds."""
    with contextlib.suppress(RestError):
        rest.create(role)
    name = role["metadata"]["name"]
    rest.replace_or_create(
        {
            "apiVersion": role["apiVersion"],
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"nodeyard-testing:{user}:declared"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        }
    )
