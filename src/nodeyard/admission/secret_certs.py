"""Generates webhook certificates into one Secret that all replicas share.

A replica that finds no Secret creates it. A replica that finds a certificate near its expiry, or without its own host
name, adds the next one. Writes use optimistic locking: the loser of a race reads again and finds the work done. A
deleted Secret is restored from the certificates in use, so API servers that trust them are not refused.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Final

from nodeyard.admission.certificates import (
    BadCertificate,
    CertificateRotation,
    IssuedCertificate,
    RotationPolicy,
    ServingCertificate,
    authorities_in,
    choose,
    is_published,
)
from nodeyard.client.api import Client
from nodeyard.client.errors import AlreadyExists, Conflict, NotFound
from nodeyard.client.resources import NAMESPACES, SECRETS
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

TYPE: Final = "kubernetes.io/tls"
# A lost race means that another replica wrote; more in a row are a bug.
MAX_RACES: Final = 5

_SHOWN: Final = f"{NAMESPACE}/{WEBHOOK_CERTIFICATES}"

_log = get_logger("admission")


class SharedCertificates:
    def __init__(
        self, client: Client, host: str, policy: RotationPolicy, clock: Clock, *, may_write: bool = True
    ) -> None:
        """With `may_write` False the Secret is only read, and a first certificate stays in memory. Certificates that
        registered webhooks trust are still renewed, because those webhooks would fail at their expiry."""
        self._client = client
        self._host = host
        self._policy = policy
        self._clock = clock
        self._may_write = may_write
        self._kept: CertificateRotation | None = None
        self._published_at: tuple[bytes, float] | None = None
        """The newest CA, and since when every caBundle has it."""

    async def refresh(self, published: Sequence[bytes]) -> ServingCertificate:
        """Return the certificate to serve now. `published` are the caBundles of the registered webhooks."""
        trusted = [authorities_in(bundle) for bundle in published]
        issues = self._kept = await self._issues(trusted)
        issue = choose(
            issues,
            self._host,
            is_settled=self._is_settled(issues.newest, trusted),
            published=trusted,
            now=self._clock.now(),
        )
        return ServingCertificate(issue.pair, issues.bundle, issue.expires)

    def _is_settled(self, newest: IssuedCertificate, trusted: Sequence[frozenset[bytes]]) -> bool:
        if not is_published(newest, trusted):
            self._published_at = None
            return False
        now = self._clock.monotonic()
        if self._published_at is None or self._published_at[0] != newest.authority:
            self._published_at = (newest.authority, now)
        return now - self._published_at[1] >= self._policy.settle

    async def _issues(self, trusted: Sequence[frozenset[bytes]]) -> CertificateRotation:
        for _ in range(MAX_RACES):
            secret = await self._read()
            found = None if secret is None else read(secret)
            wanted = self._rotate(found, trusted)
            if wanted is found or (found is None and not self._may_write):
                return wanted
            if await self._write(secret, wanted):
                return wanted
        raise TimeoutError(f"Secret {_SHOWN}: {MAX_RACES} writes in a row conflicted with other writers")

    def _rotate(self, found: CertificateRotation | None, trusted: Sequence[frozenset[bytes]]) -> CertificateRotation:
        now, policy = self._clock.now(), self._policy
        known = found or self._kept
        if known is None:
            return CertificateRotation.first([self._host], policy.valid, now)
        # In observe-only mode no host name is added.
        host = self._host if self._may_write else min(known.newest.names, default=self._host)
        is_ours = self._may_write or (found is not None and _is_trusted(found, trusted))
        if not is_ours or not known.is_due(host, policy.renew_before, now):
            return known
        return known.renew(host, policy.valid, now, is_settled=self._is_settled(known.newest, trusted))

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(SECRETS, WEBHOOK_CERTIFICATES, NAMESPACE)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, issues: CertificateRotation) -> bool:
        """Write the Secret; False if another writer was first."""
        _log.info("webhook certificates renewed", secret=_SHOWN, expires=str(issues.newest.expires),
                  names=sorted(issues.newest.names), reason="missing" if secret is None else "due")  # fmt: skip
        try:
            if secret is None:
                await self._create(
                    {
                        "metadata": {"name": WEBHOOK_CERTIFICATES, "namespace": NAMESPACE},
                        "type": TYPE,
                        "data": data(issues),
                    }
                )
            else:
                await self._client.update(SECRETS, {**secret, "data": {**(secret.get("data") or {}), **data(issues)}})
        except (Conflict, NotFound):
            return False
        return True

    async def _create(self, secret: Object) -> None:
        try:
            await self._client.create(SECRETS, secret)
        except NotFound:
            await self._create_namespace()
            await self._client.create(SECRETS, secret)

    async def _create_namespace(self) -> None:
        _log.info("namespace created", namespace=NAMESPACE, reason="holds the webhook certificates")
        try:
            await self._client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        except AlreadyExists:
            return


def data(issues: CertificateRotation) -> Object:
    """Encode the data: `ca.crt` is the CA bundle, `tls.*` the newest certificate, `previous.*` the previous one."""
    previous = issues.previous
    parts = {
        "ca.crt": issues.bundle,
        "tls.crt": issues.newest.pair.certificate,
        "tls.key": issues.newest.pair.key,
        "previous.crt": previous.pair.certificate if previous else b"",
        "previous.key": previous.pair.key if previous else b"",
    }
    return {name: b64encode(part).decode() for name, part in parts.items()}


def read(secret: Object) -> CertificateRotation | None:
    """Decode the Secret; None if it is unusable and must be replaced."""
    try:
        parts = {name: b64decode(text) for name, text in (secret.get("data") or {}).items()}
        newest = IssuedCertificate.read(parts.get("tls.crt", b""), parts.get("tls.key", b""))
        previous = (
            IssuedCertificate.read(parts["previous.crt"], parts["previous.key"]) if parts.get("previous.crt") else None
        )
    except (BadCertificate, Base64Error, KeyError) as error:
        _log.warning("webhook certificates unusable", secret=_SHOWN, reason=str(error))
        return None
    bundle = parts.get("ca.crt", b"")
    others = sorted(authorities_in(bundle) - {newest.authority}, key=bundle.find)
    return CertificateRotation(newest, previous, (newest.authority, *others))


def _is_trusted(issues: CertificateRotation, trusted: Sequence[frozenset[bytes]]) -> bool:
    """Return whether a registered webhook trusts one of the CAs."""
    return any(not bundle.isdisjoint(issues.authorities) for bundle in trusted)
