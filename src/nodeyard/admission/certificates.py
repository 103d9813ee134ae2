"""The certificates that webhooks are served with: values, and which of them to present. Pure but for the making.

Each issue is an authority that signs one certificate and whose key is then forgotten: nothing that could sign another
is kept anywhere. The next issue is made well before the last runs out, and both stay trusted:

    made ──▶ in the Secret ──▶ in every caBundle ──▶ presented          the one before is presented until then
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from nodeyard.process.certificates import Authority, Pair

# An old authority beyond these would have to be of a replica that missed five rotations.
MAX_AUTHORITIES: Final = 5


@dataclass(frozen=True)
class Terms:
    """How long certificates last and how soon things are noticed."""

    valid: timedelta = timedelta(days=90)
    renew_before: timedelta = timedelta(days=30)
    interval: float = 10.0
    """Seconds between two looks at certificates and configurations."""
    settle: float = 30.0
    """Seconds from a bundle that is published until every API server surely goes by it."""


class BadCertificate(ValueError):
    """The text says what cannot be used."""


@dataclass(frozen=True)
class Issue:
    """A certificate with its key, and the authority that vouches for it."""

    pair: Pair
    """The certificate is followed by its authority's."""
    authority: bytes
    names: frozenset[str]
    expires: datetime

    def covers(self, host: str) -> bool:
        return host in self.names

    @staticmethod
    def make(names: Iterable[str], valid: timedelta, now: datetime) -> Issue:
        authority = Authority("nodeyard webhooks", valid=valid, now=now)
        pair = authority.server(*sorted(names))
        return Issue.read(pair.certificate + authority.pem, pair.key)

    @staticmethod
    def read(chain: bytes, key: bytes) -> Issue:
        certificates = read_all(chain)
        if len(certificates) != 2:
            raise BadCertificate(f"a certificate and its authority are expected, there are {len(certificates)}")
        leaf, authority = certificates
        return Issue(Pair(chain, key), authority.public_bytes(Encoding.PEM), _names(leaf), leaf.not_valid_after_utc)


@dataclass(frozen=True)
class Served:
    """What to present to who connects, and what they have to trust for it."""

    pair: Pair
    bundle: bytes
    expires: datetime


@dataclass(frozen=True)
class Issues:
    """The newest first, then the one before it; and every authority that may still be met."""

    newest: Issue
    previous: Issue | None = None
    authorities: tuple[bytes, ...] = ()

    @property
    def bundle(self) -> bytes:
        return b"".join(self.authorities)

    @staticmethod
    def first(names: Iterable[str], valid: timedelta, now: datetime) -> Issues:
        issue = Issue.make(names, valid, now)
        return Issues(issue, None, (issue.authority,))

    def renewed(self, host: str, valid: timedelta, now: datetime, *, is_settled: bool) -> Issues:
        """With an issue more, for all names there are and this one.

        The one before stays that which API servers trust: an issue that was not settled is passed over.
        """
        issue = Issue.make(self.newest.names | {host}, valid, now)
        previous = self.newest if is_settled or self.previous is None else self.previous
        living = [pem for pem in self.authorities if read_all(pem)[0].not_valid_after_utc > now]
        return Issues(issue, previous, (issue.authority, *living)[:MAX_AUTHORITIES])

    def is_due(self, host: str, renew_before: timedelta, now: datetime) -> bool:
        return not self.newest.covers(host) or self.newest.expires - renew_before <= now


def choose(
    issues: Issues, host: str, *, is_settled: bool, published: Sequence[frozenset[bytes]], now: datetime
) -> Issue:
    """The newest, once every API server trusts it; until then the one they do trust."""
    previous = issues.previous
    if is_settled or previous is None or not previous.covers(host) or previous.expires <= now:
        return issues.newest
    return previous if is_published(previous, published) else issues.newest


def is_published(issue: Issue, published: Sequence[frozenset[bytes]]) -> bool:
    """Whether every bundle has its authority; without a bundle nobody asks us yet."""
    return bool(published) and all(issue.authority in bundle for bundle in published)


def authorities_in(bundle: bytes) -> frozenset[bytes]:
    """Its certificates, each in one form; what cannot be read vouches for nothing."""
    try:
        return frozenset(each.public_bytes(Encoding.PEM) for each in read_all(bundle))
    except BadCertificate:
        return frozenset()


def read_all(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise BadCertificate(f"this is no certificate in PEM: {error}") from None


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    dns = names.get_values_for_type(x509.DNSName)
    return frozenset([*dns, *map(str, names.get_values_for_type(x509.IPAddress))])
