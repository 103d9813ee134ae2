"""Builds the container image of the operator as an OCI image layout in one tar file, without Docker or a registry.

    Debian packages (tools/debian.lock) ─┐
    wheels (uv.lock)                    ─┼─▶ three layers ─▶ config ─▶ manifest ─▶ index ─▶ dist/nodeyard-image.tar
    this checkout                       ─┘

The same checkout gives the same digest on every machine: files have no times and owners of their own, and compression
and byte-code come from the interpreter inside the image, not from that of the machine.

python -m tools.image [FILE]     SOURCE_DATE_EPOCH sets the time of the image; default is the last commit's
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools import debian

from nodeyard.process.version import VERSION

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "dist" / f"nodeyard-image-{VERSION}.tar"
USER = "65532:65532"
TAG = f"nodeyard:{VERSION}"
PYTHON = "usr/bin/python3.11"
PACKAGES = "usr/local/lib/python3.11/dist-packages"
"""Debian's interpreter looks here without being told."""
PLATFORM = "x86_64-manylinux_2_36"
"""Platform tag of the wheels that the C library of the Debian suite can load."""
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
NOT_IN_IMAGE = {"prometheus"}
"""Locked packages that only tests use."""

_LOADER = "lib64/ld-linux-x86-64.so.2"
_LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
_MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders that are links into usr, as on every installed Debian."""
_LEFT_OUT = ("usr/share/man/", "usr/share/locale/", "usr/share/lintian/", "usr/share/doc-base/", "usr/share/bug/")
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnodeyard:x:65532:65532:nodeyard:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnodeyard:x:65532:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_LAUNCHER = "#!/usr/bin/python3.11\nimport sys\n\nfrom nodeyard.cli import main\n\nsys.exit(main())\n"
_COMPRESS = (
    "import gzip, shutil, sys\n"
    "with gzip.GzipFile('', 'wb', 6, sys.stdout.buffer, mtime=0) as out:\n"
    "    shutil.copyfileobj(sys.stdin.buffer, out)\n"
)
_GENERATED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")
"""Files of an installer in a .dist-info, with paths and times of the machine."""
_MTIME = 315532800
"""1980, the first time that a zip file can hold: every file has it."""
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


class ImageError(Exception):
    """The image cannot be built; the message is one line."""


@dataclass(frozen=True)
class Layer:
    comment: str
    diff_id: str
    """Digest of the tar; that of `content` is its compressed form."""
    content: bytes


def build_layers(work: Path) -> list[Layer]:
    """Build the three layers in an empty directory, the one that changes least first."""
    root = work / "root"
    steps = {
        "Debian packages": _install_debian,
        "dependencies of nodeyard": _install_dependencies,
        "nodeyard": _install_nodeyard,
    }
    layers: list[Layer] = []
    seen: set[str] = set()
    for comment, step in steps.items():
        step(root, work)
        paths = sorted(_walk(root))
        layers.append(_pack(root, [path for path in paths if path not in seen], comment))
        seen.update(paths)
    return layers


def _install_debian(root: Path, _work: Path) -> None:
    for name in _MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in debian.locked().values():
        if package.name in NOT_IN_IMAGE:
            continue
        deb = debian.fetch(package)
        with debian.open_part(deb, "data") as data:
            for member in data:
                _unpack(data, member, root)
        with debian.open_part(deb, "control") as control:
            # Where scanners look in images without dpkg.
            _write(root / "var/lib/dpkg/status.d" / package.name, _read(control, "./control"))
    for path, text in _FILES.items():
        _write(root / path, text.encode())
    certificates = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    _write(root / CERTIFICATES, b"".join(each.read_bytes() for each in certificates))
    for folder in ("tmp", "proc", "sys", "dev", "run"):
        (root / folder).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "var/run").rmdir()
    (root / "var/run").symlink_to("/run")
    _compile(root, "usr/lib/python3.11")


def _unpack(data: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    path = member.name.removeprefix("./").rstrip("/")
    first, _, rest = path.partition("/")
    if first in _MERGED:
        path = f"usr/{first}/{rest}".rstrip("/")
    if path in ("", ".") or f"{path}/".startswith(_LEFT_OUT):
        return
    if path.startswith("usr/share/doc/") and not (member.isdir() or path.endswith("/copyright")):
        return
    target = root / path
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        os.link(root / member.linkname.removeprefix("./"), target)
    else:
        _write(target, _read(data, member))
        target.chmod(member.mode & 0o755)


def _read(archive: tarfile.TarFile, member: str | tarfile.TarInfo) -> bytes:
    content = archive.extractfile(member)
    if content is None:
        raise ImageError(f"{member}: is neither a file, a folder nor a link")
    return content.read()


def _install_dependencies(root: Path, work: Path) -> None:
    requirements = work / "requirements.txt"
    export = ("export", "--frozen", "--no-dev", "--no-emit-workspace", "--package", "nodeyard", "--no-header")
    run_uv(*export, "--quiet", "--output-file", requirements)
    _install(root, "--require-hashes", "--requirement", requirements)


def _install_nodeyard(root: Path, work: Path) -> None:
    run_uv("build", "--wheel", "--quiet", "--out-dir", work / "wheel", "--package", "nodeyard", ROOT)
    (wheel,) = (work / "wheel").glob("*.whl")
    _install(root, wheel)
    launcher = root / "usr/local/bin/nodeyard"
    _write(launcher, _LAUNCHER.encode())
    launcher.chmod(0o755)


def _install(root: Path, *what: str | Path) -> None:
    target = root / PACKAGES
    options = ("--no-deps", "--only-binary", ":all:", "--python-version", "3.11", "--python-platform", PLATFORM)
    # Installed for the interpreter of the image, by whichever runs this.
    run_uv("pip", "install", "--quiet", "--python", sys.executable, "--target", target, *options, *what)
    # Scripts name the interpreter of this machine, and locks are of its cache.
    shutil.rmtree(target / "bin", ignore_errors=True)
    (target / ".lock").unlink(missing_ok=True)
    for name in _GENERATED:
        for path in target.glob(f"*.dist-info/{name}"):
            path.unlink()
    _compile(root, PACKAGES)


def run_uv(*arguments: str | Path, stdin: str = "") -> str:
    """Run uv of the virtual environment, else of the PATH, and return what it prints."""
    beside = Path(sys.executable).with_name("uv")
    uv = beside if beside.exists() else shutil.which("uv")
    if uv is None:
        raise ImageError("no uv on the PATH or in the virtual environment: run `make image`, or pip install uv")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(_MTIME)}
    done = subprocess.run([uv, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, input=stdin)
    if done.returncode:
        raise ImageError(f"uv {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def _compile(root: Path, folder: str) -> None:
    """Compile the modules that are not compiled yet, without the times of their sources."""
    modes = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
    _run_inside(root, *modes, "-s", str(root), "-p", "/", str(root / folder))


def _run_inside(root: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run the interpreter of the image with its own libraries; needs neither chroot nor rights."""
    libraries = ":".join(str(root / each) for each in _LIBRARIES)
    # -B: what it imports for itself would be cached with the time of the source.
    command = [str(root / _LOADER), "--library-path", libraries, str(root / PYTHON), "-B", *arguments]
    # A fixed hash seed: the order of a set constant is part of the byte-code.
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True)
    if done.returncode:
        raise ImageError(f"python {' '.join(arguments[:3])} in the image: {(done.stderr or done.stdout).decode()}")
    return done.stdout


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            yield str((Path(folder) / name).relative_to(root))


def _pack(root: Path, paths: Sequence[str], comment: str) -> Layer:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in paths:
            _add(tar, root, path)
    content = buffer.getvalue()
    return Layer(comment, _digest(content), _run_inside(root, "-c", _COMPRESS, stdin=content))


def _add(tar: tarfile.TarFile, root: Path, path: str) -> None:
    source = root / path
    member = tarfile.TarInfo(path)
    member.mtime = _MTIME
    if source.is_symlink():
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, os.readlink(source), 0o777
        tar.addfile(member)
    elif source.is_dir():
        member.type, member.mode = tarfile.DIRTYPE, 0o1777 if path == "tmp" else 0o755
        tar.addfile(member)
    else:
        content = source.read_bytes()
        # Whatever the umask of this machine: executable or not is all that counts.
        member.size, member.mode = len(content), 0o755 if source.stat().st_mode & 0o100 else 0o644
        tar.addfile(member, io.BytesIO(content))


def write_layout(layers: Sequence[Layer], output: Path, *, created: int, revision: str = "") -> str:
    """Write the OCI image layout of the layers, and return the digest of the image."""
    when = datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z")
    labels = {
        "org.opencontainers.image.title": "nodeyard",
        "org.opencontainers.image.description": "Kubernetes operator for node fleets",
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.url": "https://nodeyard.dev",
        "org.opencontainers.image.created": when,
        "org.opencontainers.image.base.name": f"debian:{debian.SUITE}",
        **({"org.opencontainers.image.revision": revision} if revision else {}),
    }
    config: dict[str, Any] = {
        "created": when,
        "architecture": debian.ARCHITECTURE,
        "os": "linux",
        "config": {
            "User": USER,
            "Env": [
                "PATH=/usr/local/bin:/usr/bin:/bin",
                f"SSL_CERT_FILE=/{CERTIFICATES}",
                "PYTHONDONTWRITEBYTECODE=1",
                "PYTHONUNBUFFERED=1",
            ],
            "Entrypoint": ["/usr/local/bin/nodeyard"],
            "Cmd": ["run", "--help"],
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": when, "created_by": f"nodeyard: {layer.comment}"} for layer in layers],
    }
    blobs = [_json(config), *(layer.content for layer in layers)]
    described = [_descriptor(_CONFIG, blobs[0]), *(_descriptor(_LAYER, each) for each in blobs[1:])]
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": described[0],
            "layers": described[1:],
            "annotations": labels,
        }
    )
    blobs.append(manifest)
    entry = {
        **_descriptor(_MANIFEST, manifest),
        "platform": {"architecture": debian.ARCHITECTURE, "os": "linux"},
        "annotations": {"org.opencontainers.image.ref.name": VERSION, "io.containerd.image.name": TAG},
    }
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]}),
        # The format that `docker load` reads.
        "manifest.json": _json(
            [
                {
                    "Config": _blob_path(described[0]["digest"]),
                    "RepoTags": [TAG],
                    "Layers": [_blob_path(each["digest"]) for each in described[1:]],
                }
            ]
        ),
        **{_blob_path(_digest(blob)): blob for blob in blobs},
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(output, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(files[name]), _MTIME
            tar.addfile(member, io.BytesIO(files[name]))
    return _digest(manifest)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _blob_path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def build(output: Path = OUTPUT) -> str:
    """Build the image of this checkout, and return its digest."""
    created = int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct") or _MTIME)
    with tempfile.TemporaryDirectory(prefix="nodeyard-image-") as folder:
        layers = build_layers(Path(folder))
    return write_layout(layers, output, created=created, revision=_git("rev-parse", "HEAD"))


def _git(*arguments: str) -> str:
    """Return what git prints; nothing outside a repository."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    target = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else OUTPUT
    try:
        print(f"{build(target)}  {target}")
    except (ImageError, debian.PackageError) as error:
        sys.exit(f"error: {error}")
