"""A small certificate authority with elliptic-curve keys, which are created within milliseconds."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = datetime.timedelta(days=30)
CLOCK_SKEW = datetime.timedelta(hours=1)
SERVER = ExtendedKeyUsageOID.SERVER_AUTH
CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> None:
        """Write `<name>.crt` and `<name>.key` to the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.crt").write_bytes(self.certificate)
        write_private(folder / f"{name}.key", self.key)


class Authority:
    """Issues certificates; clients trust its `pem`."""

    def __init__(
        self, common_name: str = "nodeyard", *, valid: datetime.timedelta = VALID, now: datetime.datetime | None = None
    ) -> None:
        """`valid` is the lifetime of the authority and of its certificates, from `now` or from their creation."""
        self._valid = valid
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(common_name)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), valid, now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    @classmethod
    def load(cls, pair: Pair, *, valid: datetime.timedelta = VALID) -> Self:
        """Continue the authority of an earlier process; raises ValueError if the pair is malformed."""
        authority = cls.__new__(cls)
        key = serialization.load_pem_private_key(pair.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("its key is not of an elliptic curve")
        authority._valid, authority._now, authority._key = valid, None, key
        authority._certificate = x509.load_pem_x509_certificate(pair.certificate)
        authority._name = authority._certificate.subject
        authority.pem = pair.certificate
        return authority

    @property
    def pair(self) -> Pair:
        """The authority's own certificate and key, for `load`."""
        return Pair(self.pem, _private_pem(self._key))

    def server(self, *names: str) -> Pair:
        """Issue a server certificate for these host names and addresses."""
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        return self._issue(_name(names[0]), SERVER, [alternatives])

    def client(self, user: str, groups: Iterable[str] = ()) -> Pair:
        """Issue a client certificate for this Kubernetes user and groups."""
        return self._issue(_name(user, groups), CLIENT, [])

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, extra: Sequence[x509.ExtensionType]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._name, key.public_key(), self._valid, self._now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        for extension in extra:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key))


def signing_key() -> bytes:
    """Return a new private key as PEM, for signing service account tokens."""
    return _private_pem(ec.generate_private_key(ec.SECP256R1()))


def write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    valid: datetime.timedelta,
    now: datetime.datetime | None,
) -> x509.CertificateBuilder:
    now = now or datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + valid)
    )


def _name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
