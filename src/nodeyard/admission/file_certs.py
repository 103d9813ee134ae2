"""Reads user-managed certificates: `tls.crt`, `tls.key` and `ca.crt` of a directory, again at every refresh.

The layout is that of a mounted `kubernetes.io/tls` Secret, as cert-manager writes it. Without `ca.crt` the API server
trusts the CAs of its host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from nodeyard.admission.certificates import BadCertificate, ServingCertificate, read_all
from nodeyard.process.certificates import Pair


class FileCertificates:
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
