"""Signed service account tokens: JSON web tokens that this server issues and only this server validates.

They are signed with a key of the server (HS256), because nobody else validates them; a check takes microseconds. The
key is that of the data directory, or lives as long as the process.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime

import msgspec

from nodeyard.apiserver.users import ServiceAccountName

ISSUER = "https://kubernetes.default.svc"
"""Also the audience of the API server itself."""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    uid: str = ""


class Binding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The objects that a token is bound to."""

    namespace: str
    serviceaccount: Reference
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None


class Claims(msgspec.Struct, frozen=True):
    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    binding: Binding = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


_decode_claims = msgspec.json.Decoder(Claims).decode


class TokenSigner:
    """Issues and validates tokens with one key."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def issue(self, binding: Binding, audiences: tuple[str, ...], now: datetime, seconds: int) -> str:
        account = ServiceAccountName(binding.namespace, binding.serviceaccount.name)
        moment = int(now.timestamp())
        claims = Claims(
            audiences, moment + seconds, moment, ISSUER, str(uuid.uuid4()), binding, moment, account.username
        )
        content = f"{_HEADER}.{_pack(msgspec.json.encode(claims))}"
        return f"{content}.{self._sign(content)}"

    def read(self, token: str, now: datetime) -> Claims | None:
        """Return the claims of a valid token, else None."""
        if not token.isascii():
            return None
        content, _, signature = token.rpartition(".")
        if not content.startswith(f"{_HEADER}.") or not hmac.compare_digest(
            signature.encode(), self._sign(content).encode()
        ):
            return None
        claims = _decode_claims(_unpack(content.removeprefix(f"{_HEADER}.")))
        return claims if claims.nbf <= now.timestamp() < claims.exp else None

    def _sign(self, content: str) -> str:
        return _pack(hmac.new(self._key, content.encode(), hashlib.sha256).digest())


def _pack(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _unpack(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


_HEADER = _pack(b'{"alg":"HS256","typ":"JWT"}')
