"""Webhook serving certificates: made and rotated by Nodeyard, or read from files that the user manages.

Each certificate has its own CA, whose key is discarded after signing: no stored key can sign another certificate. The
next certificate is made well before the current one expires, and both CAs stay trusted:

    made ──▶ in the Secret ──▶ in every caBundle ──▶ presented          the previous one is presented until then
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from nodeyard.process.certificates import Authority, Pair

# A CA older than these could only be presented by a replica that missed five rotations.
MAX_AUTHORITIES: Final = 5


@dataclass(frozen=True)
class RotationPolicy:
    """Validity of certificates and intervals of their rotation."""

    valid: timedelta = timedelta(days=90)
    renew_before: timedelta = timedelta(days=30)
    interval: float = 10.0
    """Seconds between two checks of certificates and webhook configurations."""
    settle: float = 30.0
    """Seconds after which every API server uses a published CA bundle."""


class BadCertificate(ValueError):
    """A certificate or key is unusable; the text says which and why."""


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate with its key, and the CA that signed it."""

    pair: Pair
    """The chain has the certificate first, then its CA."""
    authority: bytes
    names: frozenset[str]
    expires: datetime

    def covers(self, host: str) -> bool:
        return host in self.names

    @staticmethod
    def make(names: Iterable[str], valid: timedelta, now: datetime) -> IssuedCertificate:
        authority = Authority("nodeyard webhooks", valid=valid, now=now)
        pair = authority.server(*sorted(names))
        return IssuedCertificate.read(pair.certificate + authority.pem, pair.key)

    @staticmethod
    def read(chain: bytes, key: bytes) -> IssuedCertificate:
        certificates = read_all(chain)
        if len(certificates) != 2:
            raise BadCertificate(f"expected a certificate and its CA, found {len(certificates)} certificates")
        leaf, authority = certificates
        return IssuedCertificate(
            Pair(chain, key), authority.public_bytes(Encoding.PEM), _names(leaf), leaf.not_valid_after_utc
        )


@dataclass(frozen=True)
class ServingCertificate:
    """The certificate to present, and the CA bundle that clients must trust."""

    pair: Pair
    bundle: bytes
    expires: datetime


@dataclass(frozen=True)
class CertificateRotation:
    """The newest and the previous certificate, and every CA that may still be in use."""

    newest: IssuedCertificate
    previous: IssuedCertificate | None = None
    authorities: tuple[bytes, ...] = ()

    @property
    def bundle(self) -> bytes:
        return b"".join(self.authorities)

    @staticmethod
    def first(names: Iterable[str], valid: timedelta, now: datetime) -> CertificateRotation:
        issue = IssuedCertificate.make(names, valid, now)
        return CertificateRotation(issue, None, (issue.authority,))

    def renew(self, host: str, valid: timedelta, now: datetime, *, is_settled: bool) -> CertificateRotation:
        """Add a new certificate for all current names and `host`.

        The previous certificate stays the one that API servers trust: a newest one that is not settled is dropped.
        """
        issue = IssuedCertificate.make(self.newest.names | {host}, valid, now)
        previous = self.newest if is_settled or self.previous is None else self.previous
        living = [pem for pem in self.authorities if read_all(pem)[0].not_valid_after_utc > now]
        return CertificateRotation(issue, previous, (issue.authority, *living)[:MAX_AUTHORITIES])

    def is_due(self, host: str, renew_before: timedelta, now: datetime) -> bool:
        return not self.newest.covers(host) or self.newest.expires - renew_before <= now


def choose(
    issues: CertificateRotation, host: str, *, is_settled: bool, published: Sequence[frozenset[bytes]], now: datetime
) -> IssuedCertificate:
    """Return the newest certificate once every API server trusts it, until then the previous one."""
    previous = issues.previous
    if is_settled or previous is None or not previous.covers(host) or previous.expires <= now:
        return issues.newest
    return previous if is_published(previous, published) else issues.newest


def is_published(issue: IssuedCertificate, published: Sequence[frozenset[bytes]]) -> bool:
    """Return whether every caBundle contains its CA. Without a caBundle no API server calls us yet."""
    return bool(published) and all(issue.authority in bundle for bundle in published)


def authorities_in(bundle: bytes) -> frozenset[bytes]:
    """Return the certificates of a bundle in normalised PEM; none if it cannot be parsed."""
    try:
        return frozenset(each.public_bytes(Encoding.PEM) for each in read_all(bundle))
    except BadCertificate:
        return frozenset()


def read_all(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise BadCertificate(f"not a PEM certificate: {error}") from None


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    dns = names.get_values_for_type(x509.DNSName)
    return frozenset([*dns, *map(str, names.get_values_for_type(x509.IPAddress))])


class FileCertificates:
    """Reads user-managed certificates: `tls.crt`, `tls.key` and `ca.crt` of a directory, again at every refresh.

    The layout is that of a mounted `kubernetes.io/tls` Secret, as cert-manager writes it. Without `ca.crt` the API
    server trusts the CAs of its host.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def refresh(self, _published: Sequence[bytes]) -> ServingCertificate:
        return await asyncio.to_thread(self._read)

    def _read(self) -> ServingCertificate:
        certificate, key = self._read_file("tls.crt"), self._read_file("tls.key")
        bundle = self._read_file("ca.crt") if (self._folder / "ca.crt").exists() else b""
        try:
            expires = read_all(certificate)[0].not_valid_after_utc
        except BadCertificate as error:
            raise BadCertificate(f"{self._folder / 'tls.crt'}: {error}") from None
        return ServingCertificate(Pair(certificate, key), bundle, expires)

    def _read_file(self, name: str) -> bytes:
        path = self._folder / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise BadCertificate(f"{path}: cannot be read: {error.strerror or error}") from None
