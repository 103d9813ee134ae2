"""Debian packages pinned by hash, fetched without apt and unpacked without dpkg.

`tools/debian.lock` has one line per package: name, version, SHA-256 and path on the mirror. Archives are kept in
~/.cache/nodeyard/debian. A version that a mirror has replaced is fetched from snapshot.debian.org.

python -m tools.debian rewrites the lock with the versions that Debian has now.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeyard.testing import assets

LOCK = Path(__file__).with_name("debian.lock")
SUITE = "bookworm"
ARCHITECTURE = "amd64"
MIRROR = "https://deb.debian.org"
SNAPSHOT = "https://snapshot.debian.org/archive"
SECONDS = 120.0
_SOURCES = (
    f"debian/dists/{SUITE}/main/binary-{ARCHITECTURE}/Packages.xz",
    f"debian-security/dists/{SUITE}-security/main/binary-{ARCHITECTURE}/Packages.xz",
)


class PackageError(Exception):
    """A package could not be fetched or read; the message is one line."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha256: str
    path: str
    """Path on the mirror, beginning with the archive: debian/pool/..."""


def locked() -> dict[str, Package]:
    """Return the packages of the lock by name."""
    lines = (line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#"))
    return {fields[0]: Package(*fields) for fields in lines}


def snapshot() -> str:
    """Return the time of the lock as snapshot.debian.org writes it."""
    (line,) = (line for line in LOCK.read_text().splitlines() if line.startswith("# snapshot "))
    return line.split()[-1]


def fetch(package: Package) -> Path:
    """Return the .deb file; download it if it is not cached. Raise PackageError if no source has it."""
    folder = assets.root() / "debian"
    place = folder / f"{package.name}-{package.sha256[:16]}.deb"
    if not place.exists():
        archive, _, rest = package.path.partition("/")
        content = _download(f"{MIRROR}/{package.path}", f"{SNAPSHOT}/{archive}/{snapshot()}/{rest}")
        if (found := hashlib.sha256(content).hexdigest()) != package.sha256:
            raise PackageError(f"{package.name}: SHA-256 is {found}, the lock has {package.sha256}")
        folder.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f"{place.name}.{id(content)}")
        part.write_bytes(content)
        part.rename(place)
    return place


def _download(*urls: str) -> bytes:
    errors = []
    for url in urls:
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                content: bytes = answer.read()
                return content
        except (urllib.error.URLError, TimeoutError) as error:
            errors.append(f"{url}: {error}")
    raise PackageError("; ".join(errors))


def open_part(deb: Path, part: str) -> tarfile.TarFile:
    """Open `control` or `data` of a .deb file, which is an ar archive of two tar archives."""
    content = deb.read_bytes()
    at = len(b"!<arch>\n")
    while at < len(content):
        name, size = content[at : at + 16].decode().strip(), int(content[at + 48 : at + 58])
        if name.startswith(f"{part}.tar"):
            return tarfile.open(fileobj=io.BytesIO(content[at + 60 : at + 60 + size]))
        # Members begin at even positions.
        at += 60 + size + size % 2
    raise PackageError(f"{deb}: has no {part}.tar")


def available() -> Iterator[Package]:
    """Yield every package of the suite, also in several versions."""
    for source in _SOURCES:
        archive = source.partition("/")[0]
        for paragraph in lzma.decompress(_download(f"{MIRROR}/{source}")).decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
            if fields:
                path = f"{archive}/{fields['Filename']}"
                yield Package(fields["Package"], fields["Version"], fields["SHA256"], path)


def version_key(version: str) -> tuple[Any, ...]:
    """Return a key that sorts versions as dpkg does: numbers as such, `~` before the end, letters before the rest."""
    epoch, _, rest = version.rpartition(":")
    upstream, _, revision = rest.rpartition("-")
    return int(epoch or 0), _part_key(upstream or revision), _part_key(revision if upstream else "")


def _part_key(text: str) -> tuple[Any, ...]:
    # Pairs of what is no number and a number. The end, 0, is after `~` and before everything else.
    pairs = re.findall(r"([^0-9]*)([0-9]*)", text)
    return tuple(((*(_order(each) for each in words), 0), int(number or 0)) for words, number in pairs)


def _order(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256


def update(time: str) -> None:
    """Rewrite the lock with the versions that Debian has now, which is `time` on snapshot.debian.org."""
    found: dict[str, Package] = {}
    for package in available():
        held = found.get(package.name)
        if held is None or version_key(held.version) < version_key(package.version):
            found[package.name] = package
    lines = [
        "# Debian packages of the image, and promtool for its tests. Written by `python -m tools.debian TIME`.",
        f"# snapshot {time}",
    ]
    lines += [f"{found[name].name} {found[name].version} {found[name].sha256} {found[name].path}" for name in locked()]
    LOCK.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    update(sys.argv[1])
