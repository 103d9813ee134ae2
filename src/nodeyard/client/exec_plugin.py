"""Credential exec plugins: commands that print an ExecCredential.

A plugin runs as a subprocess without a terminal and with a timeout. Its stderr becomes part of the error, because such
tools say there that the user must log in again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.client.config import ExecPlugin
from nodeyard.client.errors import ConfigError
from nodeyard.kube.timestamps import parse_rfc3339

TIMEOUT_SECONDS: Final = 60.0
_TAIL = 400


class _IssuedStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _IssuedStatus | None = None


class Issued(msgspec.Struct, frozen=True):
    """Credentials issued by a plugin."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: datetime | None = None


async def run_plugin(plugin: ExecPlugin, timeout: float = TIMEOUT_SECONDS) -> Issued:
    """Run the command once and return the credentials it issued."""
    output = await _output(plugin, timeout)
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.MsgspecError as error:
        raise _fault(plugin, f"did not print an ExecCredential: {error}") from None
    if credential.kind != "ExecCredential" or credential.api_version != plugin.api_version:
        got = f"{credential.api_version} {credential.kind}"
        raise _fault(plugin, f"printed {got} instead of {plugin.api_version} ExecCredential")
    return _validate(plugin, credential.status or _IssuedStatus())


def _validate(plugin: ExecPlugin, status: _IssuedStatus) -> Issued:
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise _fault(plugin, "issued a client certificate without its key, or a key without its certificate")
    if not status.token and not status.client_certificate_data:
        raise _fault(plugin, "issued neither a token nor a client certificate")
    return Issued(
        status.token,
        status.client_certificate_data.encode(),
        status.client_key_data.encode(),
        parse_rfc3339(status.expiration_timestamp) if status.expiration_timestamp else None,
    )


async def _output(plugin: ExecPlugin, timeout: float) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=_environment(plugin),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise _fault(plugin, f"cannot be run: {error.strerror or error}") from None
    try:
        async with asyncio.timeout(timeout):
            output, complaint = await process.communicate()
    except TimeoutError:
        raise _fault(plugin, f"did not finish within {timeout:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        tail = complaint.decode("utf-8", "replace").strip()[-_TAIL:]
        raise _fault(plugin, f"failed with exit code {process.returncode}: {tail or 'no error output'}")
    return output


def _environment(plugin: ExecPlugin) -> dict[str, str]:
    spec: dict[str, object] = {"interactive": False}
    if plugin.cluster_info is not None:
        spec["cluster"] = plugin.cluster_info
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}


def _fault(plugin: ExecPlugin, why: str) -> ConfigError:
    hint = f" ({plugin.install_hint.strip()})" if plugin.install_hint else ""
    return ConfigError(f"exec plugin {plugin.command} {why}{hint}")
