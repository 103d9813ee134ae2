"""Builds the archive and the manifest of the krew plugin: `make krew`.

    python tools/krew.py dist
    python tools/krew.py dist https://mirror.example.org/nodeyard   # where the archive will be downloaded from

The archive has a launcher and the licence. Equal sources give an equal archive.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path

from nodeyard.process.version import VERSION

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "packaging/krew"
HOME = f"https://nodeyard.dev/releases/v{VERSION}"
ARCHIVE = f"kubectl-nodeyard-{VERSION}.tar.gz"
MANIFEST = "nodeyard.yaml"


def build(target: Path, home: str = HOME) -> None:
    """Write archive and manifest into the directory."""
    target.mkdir(parents=True, exist_ok=True)
    archive = pack({"LICENSE": (ROOT / "LICENSE").read_text(), "kubectl-nodeyard": fill("kubectl-nodeyard")})
    (target / ARCHIVE).write_bytes(archive)
    checksum = hashlib.sha256(archive).hexdigest()
    (target / MANIFEST).write_text(fill(f"{MANIFEST}.in", URI=f"{home.rstrip('/')}/{ARCHIVE}", SHA256=checksum))


def fill(name: str, **values: str) -> str:
    """Return a source with its placeholders replaced."""
    text = (SOURCES / name).read_text()
    for key, value in {"VERSION": VERSION, **values}.items():
        text = text.replace(f"@{key}@", value)
    return text


def pack(files: dict[str, str]) -> bytes:
    """Return a tar.gz without times and owners."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, text in sorted(files.items()):
            content = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if text.startswith("#!") else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


if __name__ == "__main__":
    build(Path(sys.argv[1]), *sys.argv[2:3])
