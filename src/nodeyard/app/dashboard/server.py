"""Serves the dashboard: alone with its own informers, or beside the operator on the operator's.

local:     kubeconfig ─▶ informers ─▶ Live ─▶ server on the loopback address; a token in the printed URL
beside:    manager's informers, passes of its reconcilers ─▶ Live ─▶ server; bearer tokens or client certificates
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from cryptography import x509

from nodeyard.app.dashboard.rights import local_viewer, may_list_events, token_viewer
from nodeyard.app.dashboard.routes import Operations
from nodeyard.app.operators import OperatorProcess, Operators, find_operators
from nodeyard.client.api import Client
from nodeyard.client.config import Config
from nodeyard.client.errors import ClientError
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.resources import LEASES
from nodeyard.dashboard.access import Access, Viewer, host_names
from nodeyard.dashboard.feed import ATTENTION
from nodeyard.dashboard.live import Live
from nodeyard.dashboard.server import DashboardServer
from nodeyard.dashboard.wire import ClusterInfo, OperatorInfo
from nodeyard.kube.names import NAMESPACE
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, Key
from nodeyard.runtime.health import Address
from nodeyard.runtime.leader.election import lease_name
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.remote.cluster import ClusterCallbacks, ClusterEnvironment
from nodeyard.runtime.remote.clusters import Clusters
from nodeyard.runtime.remote.connect import connect_by_kubeconfig, secret_reader
from nodeyard.runtime.surface import Attention, Severity
from nodeyard.watch.informers import InformerFactory

OPERATORS_SECONDS: Final = 10.0
LEADERSHIP_SECONDS: Final = 0.5
RENEW_SECONDS: Final = 60.0

_log = get_logger("dashboard")


class BadCertificate(ValueError):
    """A certificate or key cannot be used; the text names the file."""


@dataclass(frozen=True)
class DashboardTls:
    certificate: Path
    key: Path
    client_authority: Path | None = None
    """Certificates of this CA are those of viewers, who only read."""


@dataclass(frozen=True)
class DashboardOptions:
    """Options for serving the page."""

    bind: Address
    tls: DashboardTls | None = None
    token: str = ""
    """If set, `?token=` in the address signs in with the process's own credentials, as with `nodeyard dashboard`."""


@asynccontextmanager
async def serve_local(config: Config, capabilities: Sequence[Capability], bind: Address) -> AsyncIterator[str]:
    """Serve the page with the credentials of `config`; return the URL, which contains the token."""
    clock = SystemClock()
    client = Client(HttpTransport(config))
    watches = InformerFactory(client, clock, Random())
    live = Live(watches, capabilities, clock)
    # Planners may need both; asked for beforehand, they are known with the first plan.
    watches.server_info.ask_uid()
    watches.server_info.ask_versions()
    token = secrets.token_urlsafe(24)
    tasks: list[asyncio.Task[None]] = []
    try:
        viewer = await local_viewer(client, config, capabilities)
        if await may_list_events(client):
            live.observe_events()
        access = Access(host_names(bind.host), local=(token, viewer))
        operations = Operations(live, client, clock)
        server = DashboardServer(live.feed, access, await describe_cluster(client, config), operations.routes())
        port = server.bind(bind)
        await server.start()
        # The page is there before its contents: the first lists of a large cluster take seconds.
        tasks.append(_start(watches.run(), "informers"))
        tasks += [_start(each.run(), "clusters") for each in _connect_clusters(live, client, clock)]
        tasks.append(_start(live.run(), "live"))
        tasks.append(_start(follow_operators(live, operations, client, capabilities, clock), "operators"))
        try:
            host = f"[{bind.host}]" if ":" in bind.host else bind.host
            yield f"http://{host}:{port}/?token={token}"
        finally:
            await server.close()
    finally:
        await _stop(tasks)
        live.close()
        await client.close()


@asynccontextmanager
async def serve_beside(
    manager: Manager, client: Client, config: Config, options: DashboardOptions
) -> AsyncIterator[int]:
    """Serve the page beside a manager that is not running yet; return the port. Raises OSError if it is in use."""
    controllers = {each.capability.name: each for each in manager.controllers}
    capabilities = [each.capability for each in manager.controllers]
    clock = SystemClock()

    def is_led(capability: str, key: Key) -> bool:
        return controllers[capability].fence_of(key).may_write()

    live = Live(manager.informers, capabilities, clock, is_led=is_led)
    for name, (_, view) in live.views.items():
        # Remote clusters and the results of loops are the operator's own: nothing is connected twice.
        view.elsewhere = controllers[name].view.elsewhere
        view.findings = controllers[name].view.findings
    manager.pass_observers.append(live.planner.observe)
    manager.pass_observers.append(live.recorder.record)

    async def check(token: str) -> Viewer:
        return await token_viewer(config, token, capabilities)

    tls = options.tls
    certified = None if tls is None or tls.client_authority is None else Viewer("certificate")
    names = () if tls is None else certificate_names(tls.certificate)
    local = (options.token, await local_viewer(client, config, capabilities)) if options.token else None
    access = Access(
        (*host_names(options.bind.host), *names),
        local=local,
        check=check,
        certified=certified,
        is_secure=tls is not None,
    )
    operations = Operations(live, client, clock)
    server = DashboardServer(live.feed, access, await describe_cluster(client, config), operations.routes())
    port = server.bind(options.bind, None if tls is None else server_context(tls))

    def leads() -> dict[str, object]:
        return {
            name: [key for key in each.capability.all_keys(each.view) if is_led(name, key)]
            if each.capability.is_sharded and each.is_synced
            else each.fence.may_write()
            for name, each in controllers.items()
        }

    await server.start()
    tasks = [
        _start(_renew_certificate(server, tls), "certificate"),
        _start(live.run(), "live"),
        _start(follow_operators(live, operations, client, capabilities, clock, leads), "operators"),
    ]
    try:
        yield port
    finally:
        await server.close()
        await _stop(tasks)
        live.close()


def _start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Start a task that runs until it is cancelled; if it fails, the page goes stale and the log says why."""

    def on_done(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("dashboard task failed", task=name, exc_info=error)

    task = asyncio.create_task(work, name=f"dashboard {name}")
    task.add_done_callback(on_done)
    return task


async def _stop(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _connect_clusters(live: Live, client: Client, clock: Clock) -> Iterator[Clusters]:
    """Yield the remote clusters of each capability, read with the same kubeconfig's rights."""
    env = ClusterEnvironment(clock, Random(), connect_by_kubeconfig, read=secret_reader(client))
    for name, (capability, view) in live.views.items():
        if capability.remote is not None:
            callbacks = ClusterCallbacks(
                on_key=lambda key, _change, _watch, _cluster, name=name: live.planner.mark(name, key),  # type: ignore[misc]
                enqueue=lambda key, name=name: live.planner.mark(name, key),  # type: ignore[misc]
            )
            clusters = Clusters(capability, env, callbacks)
            clusters.attach(view)
            live.on_view_change[name] = clusters.refresh
            yield clusters


async def describe_cluster(client: Client, config: Config) -> ClusterInfo:
    try:
        version = (await client.server_version()).get("gitVersion", "")
    except ClientError:
        # The page says more of it; an operator starts without its API server too.
        version = ""
    name = config.source.rpartition("context ")[2] or config.server
    return ClusterInfo(name=name, server=config.server, version=str(version))


async def follow_operators(
    live: Live,
    operations: Operations,
    client: Client,
    capabilities: Sequence[Capability],
    clock: Clock,
    leads: Callable[[], Mapping[str, object]] = dict,
) -> None:
    """Publish the operators of the cluster as their Leases describe them, until cancelled.

    `leads` tells by capability what this process leads. When that changes, keys that it does not lead any more are
    planned for the page.
    """
    led, read_at = leads(), 0.0
    while True:
        now_led = leads()
        for name in (name for name, is_led in now_led.items() if led.get(name) != is_led):
            live.planner.mark_all(name)
        if now_led != led or clock.monotonic() >= read_at:
            led, read_at = now_led, clock.monotonic() + OPERATORS_SECONDS
            try:
                operators = operations.operators = await find_operators(client, capabilities, clock)
                _publish_operators(live, operators, [each.name for each in capabilities])
            except ClientError as error:
                _log.warning("operators not read", reason=str(error))
        await clock.sleep(LEADERSHIP_SECONDS)


def _publish_operators(live: Live, operators: Operators, names: Sequence[str]) -> None:
    live.planner.set_limits(operators.limits())
    for name in names:
        running, gone = operators.running.get(name), operators.gone.get(name)
        process = running or gone
        described = [] if process is None else [_describe(process, is_gone=running is None)]
        live.feed.publish("operators", name, described)
        live.recorder.observe_holder(name, "" if running is None else running.holder)
        live.feed.publish(ATTENTION, name, [] if gone is None else [_gone(gone)], by="operators")


def _describe(process: OperatorProcess, *, is_gone: bool) -> OperatorInfo:
    published = process.published
    return OperatorInfo(
        capability=process.capability,
        state="Gone" if is_gone else "Observing" if published.observe else "Running",
        version=published.version,
        holder=process.holder,
        limit=published.limit,
        observe=published.observe,
        renewed=process.renewed,
    )


def _gone(process: OperatorProcess) -> Attention:
    who = f"{process.holder} stopped renewing its Lease" if process.holder else "its Lease was released"
    lease = ObjectRef(
        api_version=LEASES.api_version, kind=LEASES.kind, name=lease_name(process.capability), namespace=NAMESPACE
    )
    return Attention(
        kind="OperatorGone",
        severity=Severity.CRITICAL,
        object=lease,
        reason="OperatorGone",
        message=f"No operator runs {process.capability}: {who}. Nothing is done until one starts.",
        since=process.renewed,
        link={"view": "yard"},
    )


# TLS


async def _renew_certificate(server: DashboardServer, tls: DashboardTls | None) -> None:
    """Present a replaced certificate to new connections, until cancelled."""
    known = None if tls is None else tls.certificate.read_bytes()
    while tls is not None:
        await asyncio.sleep(RENEW_SECONDS)
        try:
            found = tls.certificate.read_bytes()
            if found != known:
                server.present(server_context(tls))
                known = found
                _log.info("dashboard certificate replaced")
        except (BadCertificate, OSError) as error:
            _log.warning("dashboard certificate not replaced", reason=str(error))


def server_context(tls: DashboardTls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (ssl.SSLError, OSError) as error:
        raise BadCertificate(f"{tls.certificate} cannot be used with {tls.key}: {error}") from None
    if tls.client_authority is not None:
        try:
            context.load_verify_locations(tls.client_authority)
        except (ssl.SSLError, OSError) as error:
            raise BadCertificate(f"{tls.client_authority} is not a CA: {error}") from None
        # Viewers without a certificate sign in with a token.
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def certificate_names(path: Path) -> tuple[str, ...]:
    """Return the names and addresses in a certificate, as Host headers have them."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError) as error:
        raise BadCertificate(f"{path} cannot be read: {error}") from None
    except x509.ExtensionNotFound:
        return ()
    addresses = found.get_values_for_type(x509.IPAddress)
    hosts = (f"[{each}]" if each.version == 6 else str(each) for each in addresses if hasattr(each, "is_loopback"))
    return (*found.get_values_for_type(x509.DNSName), *hosts)
