"""Certificates that the user manages: `tls.crt`, `tls.key` and `ca.crt` in a folder, read again at every look.

The form is that of a mounted `kubernetes.io/tls` Secret, as cert-manager makes them. Without `ca.crt` the API server
trusts what its machine trusts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from nodeyard.admission.certificates import BadCertificate, Served, read_all
from nodeyard.process.certificates import Pair


class FileCertificates:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def refresh(self, _published: Sequence[bytes]) -> Served:
        return await asyncio.to_thread(self._read)

    def _read(self) -> Served:
        certificate, key = self._part("tls.crt"), self._part("tls.key")
        bundle = self._part("ca.crt") if (self._folder / "ca.crt").exists() else b""
        try:
            expires = read_all(certificate)[0].not_valid_after_utc
        except BadCertificate as error:
            raise BadCertificate(f"{self._folder / 'tls.crt'}: {error}") from None
        return Served(Pair(certificate, key), bundle, expires)

    def _part(self, name: str) -> bytes:
        path = self._folder / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise BadCertificate(f"{path}: cannot be read: {error.strerror or error}") from None
