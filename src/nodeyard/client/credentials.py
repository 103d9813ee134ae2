"""Cache of credentials and trusted CAs, with expiry.

Token and certificate files are reread every minute, because kubelets and rotators replace them. An exec plugin runs
again shortly before its credentials expire. A 401 invalidates the cache.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
from dataclasses import dataclass, field
from typing import Final

from nodeyard.client.config import Config, Credentials, Impersonation, read_file
from nodeyard.client.errors import ConfigError
from nodeyard.client.exec_plugin import Issued, run_plugin
from nodeyard.process.clock import Clock

FILE_SECONDS: Final = 60.0
EXPIRY_LEEWAY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Identity:
    """A client certificate with its key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Keys:
    """Credentials as read once. The cache returns the identical object until it rereads them."""

    headers: tuple[tuple[str, str], ...] = field(repr=False)
    identity: Identity | None
    authority: bytes | None
    read_again_at: float
    """The expiry on the monotonic clock; infinity if nothing can change."""


class CredentialCache:
    """Reads the credentials of one Config; concurrent callers share one read."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._keys: Keys | None = None
        self._reading = asyncio.Lock()

    async def current(self) -> Keys:
        keys = self._keys
        if keys is not None and self._clock.monotonic() < keys.read_again_at:
            return keys
        async with self._reading:
            if self._keys is None or self._keys is keys:
                self._keys = await self._reread(keys)
            return self._keys

    def invalidate(self, keys: Keys) -> None:
        """Reread credentials that the server rejected, unless they were reread since."""
        if self._keys is keys:
            self._keys = None

    async def _reread(self, old: Keys | None) -> Keys:
        try:
            return await self._read()
        except ConfigError:
            if old is None or self._keys is None:
                raise
            # A file may be half replaced, or a plugin may fail once: the old credentials may still work.
            return dataclasses.replace(old, read_again_at=self._clock.monotonic() + EXPIRY_LEEWAY_SECONDS)

    async def _read(self) -> Keys:
        credentials = self._config.credentials
        issued = await run_plugin(credentials.plugin) if credentials.plugin else Issued()
        authorization = _authorization(credentials, issued)
        headers = [("Authorization", authorization)] if authorization else []
        if credentials.impersonate is not None:
            headers += _impersonation(credentials.impersonate)
        return Keys(
            tuple(headers),
            _identity(credentials, issued),
            self._config.authority.read() if self._config.authority else None,
            self._read_again_at(issued),
        )

    def _read_again_at(self, issued: Issued) -> float:
        now = self._clock.monotonic()
        moments = [float("inf")]
        if _has_files(self._config):
            moments.append(now + FILE_SECONDS)
        if issued.expires is not None:
            left = (issued.expires - self._clock.now()).total_seconds()
            moments.append(now + max(left - EXPIRY_LEEWAY_SECONDS, 0.0))
        return min(moments)


def _has_files(config: Config) -> bool:
    credentials = config.credentials
    materials = (config.authority, credentials.certificate, credentials.key)
    return credentials.token_file is not None or any(item is not None and item.path is not None for item in materials)


def _authorization(credentials: Credentials, issued: Issued) -> str:
    if token := _token(credentials) or issued.token:
        return f"Bearer {token}"
    if credentials.username:
        pair = f"{credentials.username}:{credentials.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return ""


def _token(credentials: Credentials) -> str:
    if credentials.token_file is None:
        return credentials.token
    try:
        content = read_file(credentials.token_file).decode().strip()
    except ConfigError:
        if credentials.token:
            return credentials.token
        raise
    if not content and not credentials.token:
        raise ConfigError(f"{credentials.token_file}: the token file is empty")
    return content or credentials.token


def _identity(credentials: Credentials, issued: Issued) -> Identity | None:
    if credentials.certificate is not None and credentials.key is not None:
        return Identity(credentials.certificate.read(), credentials.key.read())
    if issued.certificate:
        return Identity(issued.certificate, issued.key)
    return None


def _impersonation(who: Impersonation) -> list[tuple[str, str]]:
    headers = [("Impersonate-User", who.user)]
    if who.uid:
        headers.append(("Impersonate-Uid", who.uid))
    headers += [("Impersonate-Group", group) for group in who.groups]
    headers += [(f"Impersonate-Extra-{name}", value) for name, values in who.extra for value in values]
    return headers
