"""Certificates of our own making, in one Secret that all replicas share.

Whoever finds none makes the first; whoever finds them near their end, or without the name it is reached by, adds the
next. Writes go under the resourceVersion that was read: of two at once one loses, reads again and finds it done. A
Secret that is lost is put back from what is being served, so that nobody who trusts it is turned away.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Final

from nodeyard.admission.certificates import (
    BadCertificate,
    Issue,
    Issues,
    Served,
    Terms,
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
# Each lost race means that another replica wrote; that many in a row are a fault.
MAX_RACES: Final = 5

_SHOWN: Final = f"{NAMESPACE}/{WEBHOOK_CERTIFICATES}"

_log = get_logger("admission")


class SharedCertificates:
    def __init__(self, client: Client, host: str, terms: Terms, clock: Clock, *, may_write: bool = True) -> None:
        """`may_write` False: take what is there, and keep to ourselves what has to be made."""
        self._client = client
        self._host = host
        self._terms = terms
        self._clock = clock
        self._may_write = may_write
        self._kept: Issues | None = None
        self._published_at: tuple[bytes, float] | None = None
        """The newest authority, and since when every bundle has it."""

    async def refresh(self, published: Sequence[bytes]) -> Served:
        """What to serve now; `published` are the bundles by which API servers judge us."""
        trusted = [authorities_in(bundle) for bundle in published]
        issues = self._kept = await self._issues(trusted)
        issue = choose(
            issues,
            self._host,
            is_settled=self._is_settled(issues.newest, trusted),
            published=trusted,
            now=self._clock.now(),
        )
        return Served(issue.pair, issues.bundle, issue.expires)

    def _is_settled(self, newest: Issue, trusted: Sequence[frozenset[bytes]]) -> bool:
        if not is_published(newest, trusted):
            self._published_at = None
            return False
        now = self._clock.monotonic()
        if self._published_at is None or self._published_at[0] != newest.authority:
            self._published_at = (newest.authority, now)
        return now - self._published_at[1] >= self._terms.settle

    async def _issues(self, trusted: Sequence[frozenset[bytes]]) -> Issues:
        for _ in range(MAX_RACES):
            secret = await self._read()
            found = None if secret is None else read(secret)
            wanted = self._wanted(found, trusted)
            if wanted is found or not self._may_write:
                return wanted
            if await self._write(secret, wanted):
                return wanted
        raise TimeoutError(f"Secret {_SHOWN}: was changed by others {MAX_RACES} times while we wrote it")

    def _wanted(self, found: Issues | None, trusted: Sequence[frozenset[bytes]]) -> Issues:
        now, terms = self._clock.now(), self._terms
        known = found or self._kept
        if known is None:
            return Issues.first([self._host], terms.valid, now)
        if not self._may_write or not known.is_due(self._host, terms.renew_before, now):
            return known
        return known.renewed(self._host, terms.valid, now, is_settled=self._is_settled(known.newest, trusted))

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(SECRETS, WEBHOOK_CERTIFICATES, NAMESPACE)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, issues: Issues) -> bool:
        """Whether it is stored; else someone else was first."""
        _log.info("storing webhook certificates", secret=_SHOWN, expires=str(issues.newest.expires),
                  names=sorted(issues.newest.names), reason="none there" if secret is None else "due")  # fmt: skip
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
        _log.info("creating namespace", namespace=NAMESPACE, reason="webhook certificates live there")
        try:
            await self._client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        except AlreadyExists:
            return


def data(issues: Issues) -> Object:
    """`ca.crt` is what to trust, `tls.*` the newest issue, `previous.*` the one before."""
    previous = issues.previous
    parts = {
        "ca.crt": issues.bundle,
        "tls.crt": issues.newest.pair.certificate,
        "tls.key": issues.newest.pair.key,
        "previous.crt": previous.pair.certificate if previous else b"",
        "previous.key": previous.pair.key if previous else b"",
    }
    return {name: b64encode(part).decode() for name, part in parts.items()}


def read(secret: Object) -> Issues | None:
    """None where it holds nothing of use: it is written anew."""
    try:
        parts = {name: b64decode(text) for name, text in (secret.get("data") or {}).items()}
        newest = Issue.read(parts.get("tls.crt", b""), parts.get("tls.key", b""))
        previous = Issue.read(parts["previous.crt"], parts["previous.key"]) if parts.get("previous.crt") else None
    except (BadCertificate, Base64Error, KeyError) as error:
        _log.warning("webhook certificates are of no use", secret=_SHOWN, reason=str(error))
        return None
    others = authorities_in(parts.get("ca.crt", b"")) - {newest.authority}
    return Issues(newest, previous, (newest.authority, *_in_order(parts.get("ca.crt", b""), others)))


def _in_order(bundle: bytes, others: frozenset[bytes]) -> list[bytes]:
    return sorted(others, key=bundle.find)
