"""Writes everything that a release publishes into dist/, with checksums.

    wheels and source distributions · charts · container image · CRDs · manifest for kubectl · krew plugin · SBOM ·
    SHA256SUMS

python -m tools.release [FOLDER]
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools import debian, image, krew, kustomize

from nodeyard.process.version import VERSION
from nodeyard.testing import clients

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = ("nodeyard", "nodeyard-testbed")
CHARTS = ("nodeyard", "nodeyard-crds", "nodeyard-scheduling")
CHECKSUMS = "SHA256SUMS"


def write(folder: Path) -> None:
    """Write the artefacts into a new or empty directory."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in DISTRIBUTIONS:
        image.run_uv("build", "--sdist", "--wheel", "--quiet", "--out-dir", folder, "--package", name, ROOT)
    # uv leaves one for git.
    (folder / ".gitignore").unlink(missing_ok=True)
    for name in CHARTS:
        command = [
            str(clients.find("helm")),
            "package",
            str(ROOT / "charts" / name),
            "--destination",
            str(folder / "charts"),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name in kustomize.CHARTS:
        shutil.copy(kustomize.FOLDER / name, folder / f"nodeyard-{VERSION}-{name}")
    image.build(folder / image.OUTPUT.name)
    krew.build(folder)
    (folder / f"nodeyard-{VERSION}.cdx.json").write_text(json.dumps(sbom(), indent=2) + "\n")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUMS)
    sums = [f"{_sha256(path)}  {path.relative_to(folder)}\n" for path in files]
    (folder / CHECKSUMS).write_text("".join(sums))


def sbom() -> dict[str, Any]:
    """Return what the image contains, as CycloneDX: the wheels of uv.lock and the Debian packages."""
    locked = {each["name"]: each for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    components = [_wheel(locked[name]) for name in requirements()]
    packages = [each for each in debian.locked().values() if each.name not in image.NOT_IN_IMAGE]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "nodeyard",
                "version": VERSION,
                "bom-ref": f"pkg:pypi/nodeyard@{VERSION}",
                "purl": f"pkg:pypi/nodeyard@{VERSION}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components + [_package(each) for each in packages],
    }


def requirements() -> list[str]:
    """Return the names of the distributions that nodeyard needs on the platform of the image."""
    export = ("export", "--frozen", "--no-dev", "--no-emit-workspace", "--package", "nodeyard", "--no-hashes")
    exported = image.run_uv(*export, "--no-header", "--no-annotate", "--quiet")
    # Leaves out what has a marker for another platform.
    target = ("--python-version", "3.11", "--python-platform", image.PLATFORM)
    resolved = image.run_uv("pip", "compile", "-", "--no-deps", "--quiet", "--no-header", *target, stdin=exported)
    return sorted(re.findall(r"^([A-Za-z0-9._-]+)==", resolved, re.MULTILINE))


def _wheel(locked: dict[str, Any]) -> dict[str, Any]:
    purl = f"pkg:pypi/{locked['name']}@{locked['version']}"
    return {
        "type": "library",
        "name": locked["name"],
        "version": locked["version"],
        "bom-ref": purl,
        "purl": purl,
    }


def _package(package: debian.Package) -> dict[str, Any]:
    query = f"arch={debian.ARCHITECTURE}&distro={debian.SUITE}"
    purl = f"pkg:deb/debian/{quote(package.name)}@{quote(package.version, safe='')}?{query}"
    return {
        "type": "library",
        "name": package.name,
        "version": package.version,
        "bom-ref": purl,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    target = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else ROOT / "dist"
    if target.exists() and any(target.iterdir()):
        sys.exit(f"error: {target} is not empty")
    try:
        write(target)
    except (image.ImageError, debian.PackageError) as error:
        sys.exit(f"error: {error}")
    print((target / CHECKSUMS).read_text(), end="")
