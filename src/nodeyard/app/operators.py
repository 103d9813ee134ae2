"""Finds the operators of a cluster through their Leases: running capabilities, limits and held plans.

    operators = await find_operators(client, CAPABILITIES)
    operators.running["spares"].published.limit

A Lease is alive while its holder renews it. A Lease that looks expired is read again after a few seconds: clocks of
two machines may differ, so only a changed resourceVersion proves a renewal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import ApiError, Forbidden, NotFound
from nodeyard.client.resources import LEASES
from nodeyard.kube.names import CAPABILITY, NAMESPACE, OPERATOR, SHARE_KEY
from nodeyard.plan.brake import Limit, parse_limit
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.leader.election import lease_name, unelected_lease_name
from nodeyard.runtime.leader.lease import LeaseSpec
from nodeyard.runtime.publication import HeldPlan, Publication, parse

REREAD_SECONDS: Final = 5.0
"""Longer than the slowest renewal interval."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: LeaseSpec = LeaseSpec()


_LEASES: Final = LEASES.decoded_as(_Lease)


@dataclass(frozen=True)
class OperatorProcess:
    """A capability and the process that runs it."""

    capability: str
    holder: str
    renewed: datetime | None
    published: Publication
    held: tuple[HeldPlan, ...] = ()
    held_count: int = 0
    is_elected: bool = True

    @property
    def limit(self) -> Limit | None:
        """Return the published limit; None if the process published none."""
        try:
            return parse_limit(self.published.limit)
        except ValueError:
            return None


@dataclass(frozen=True)
class Operators:
    running: Mapping[str, OperatorProcess] = field(default_factory=dict)
    """By capability: processes that renew their Lease."""
    gone: Mapping[str, OperatorProcess] = field(default_factory=dict)
    """By capability: processes that stopped renewing or released their Lease."""
    error: str = ""
    """Why the Leases could not be read; empty if they were."""

    def limits(self) -> dict[str, Limit]:
        found = ((name, each.limit) for name, each in self.running.items())
        return {name: limit for name, limit in found if limit is not None}

    def describe(self, limit: Limit, skipped: Sequence[str] = ()) -> str:
        """Return one line with the running operators and their limits. `limit` is shown where an operator has none."""
        if self.error:
            return f"Operator: unknown; limit {limit.option} assumed. {self.error}"
        if not self.running:
            return f"Operator: none runs on this cluster; limit {limit.option} assumed."
        groups: dict[tuple[str, str, str], list[str]] = {}
        for name, each in self.running.items():
            published = each.published
            group = (published.version or "unknown", published.limit or limit.option, published.observe)
            groups.setdefault(group, []).append(name)
        parts = [
            f"version {version} {'observes' if observe else 'runs'} {', '.join(names)} with limit {shown}"
            + (f" and writes nothing ({observe})" if observe else "")
            for (version, shown, observe), names in groups.items()
        ]
        suffix = f" Skipped, not running: {', '.join(skipped)}." if skipped else ""
        return f"Operator: {'; '.join(parts)}.{suffix}"

    def select(self, capabilities: Sequence[Capability]) -> list[Capability]:
        """Return the running capabilities; all of them if none runs or the Leases could not be read."""
        return [each for each in capabilities if each.name in self.running] if self.running else list(capabilities)


async def find_operators(client: Client, capabilities: Sequence[Capability], clock: Clock | None = None) -> Operators:
    clock = clock or SystemClock()
    names = [each.name for each in capabilities]
    try:
        leases = await _read(client, names)
    except Forbidden as error:
        remedy = "ask for the ClusterRole nodeyard-reader, or select another account with --context"
        return Operators(error=f"Leases in namespace {NAMESPACE} cannot be read: {error.message}; {remedy}")
    now = clock.now()
    suspects = {name: each for name, each in leases.items() if each.spec.holder_identity and not _is_fresh(each, now)}
    if suspects:
        await clock.sleep(REREAD_SECONDS)
        leases = await _read(client, names)
    alive = {
        name
        for name, each in leases.items()
        if each.spec.holder_identity and (name not in suspects or _version(each) != _version(suspects[name]))
    }
    running: dict[str, OperatorProcess] = {}
    gone: dict[str, OperatorProcess] = {}
    for name in names:
        elected, unelected = lease_name(name), unelected_lease_name(name)
        best = next((each for each in (elected, unelected) if each in alive), None)
        last = best or next((each for each in (elected, unelected) if each in leases), None)
        if last is None:
            continue
        key_leases = (each for each in leases.values() if _is_key_lease(each, name) and each.metadata.name in alive)
        process = _process(name, leases[last], key_leases if last == elected else (), is_elected=last == elected)
        (gone if best is None else running)[name] = process
    return Operators(running, gone)


async def _read(client: Client, capabilities: Iterable[str]) -> dict[str, _Lease]:
    """List the Leases of our namespace, or get those of known names if the account may not list."""
    try:
        page = await client.list(_LEASES, NAMESPACE)
        return {each.metadata.name: each for each in page.items}
    except Forbidden as error:
        refusal = error
    found, is_any_readable = {}, False
    for name in (name for each in capabilities for name in (lease_name(each), unelected_lease_name(each))):
        try:
            found[name] = await client.get(_LEASES, name, NAMESPACE)
            is_any_readable = True
        except NotFound:
            is_any_readable = True
        except ApiError:
            continue
    if not is_any_readable:
        raise refusal
    return found


def _is_key_lease(lease: _Lease, capability: str) -> bool:
    return lease.metadata.labels.get(CAPABILITY) == capability and SHARE_KEY in lease.metadata.annotations


def _is_fresh(lease: _Lease, now: datetime) -> bool:
    renewed = _renew_time(lease)
    return renewed is not None and now - renewed <= timedelta(seconds=lease.spec.lease_duration_seconds or 0)


def _renew_time(lease: _Lease) -> datetime | None:
    try:
        return datetime.fromisoformat(lease.spec.renew_time or "")
    except ValueError:
        return None


def _version(lease: _Lease) -> str:
    return lease.metadata.resource_version


def _process(capability: str, lease: _Lease, key_leases: Iterable[_Lease], *, is_elected: bool) -> OperatorProcess:
    """Combine the publication on a capability's Lease with the held plans on the Leases of its keys."""
    published = parse(lease.metadata.annotations.get(OPERATOR, ""))
    publications = [published, *(parse(each.metadata.annotations.get(OPERATOR, "")) for each in key_leases)]
    return OperatorProcess(
        capability=capability,
        holder=lease.spec.holder_identity or "",
        renewed=_renew_time(lease),
        published=published,
        held=tuple(plan for each in publications for plan in each.held),
        held_count=sum(each.held_count for each in publications),
        is_elected=is_elected,
    )
