"""Manifests of files and directories, and what a server makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nodeyard.client.api import Client
from nodeyard.client.errors import ApiError
from nodeyard.kube.json import Json, Object
from nodeyard.kube.manifests import ManifestError, load_all

_SUFFIXES = (".yaml", ".yml", ".json")
_STDIN = Path("-")
"""As kubectl has it: what is piped in."""


class FileError(ValueError):
    """The text names the file, the object and what is wrong."""


def read(paths: Iterable[Path]) -> list[tuple[str, Object]]:
    """Every object with where it stands; directories are read in the order of their files' names."""
    return [(f"{path}: {_title(obj)}", obj) for path in _files(paths) for obj in _objects(path)]


async def send(
    client: Client, objects: Sequence[tuple[str, Object]], *, dry_run: bool, namespace: str = "default"
) -> list[Object]:
    """What the server answers to `kubectl apply --server-side` of each: defaults, CEL and webhooks have their say.

    The namespace is for objects that need one and name none.
    """
    catalog = await client.catalog()
    kubectl = client.managed_by("kubectl")
    answers = []
    for where, obj in objects:
        known = catalog.by_kind(obj["apiVersion"], obj["kind"])
        if known is None:
            raise FileError(f"{where}: the server does not serve {obj['kind']} of {obj['apiVersion']}")
        try:
            placed = _placed(obj, namespace) if known.resource.namespaced else obj
            answers.append(await kubectl.apply(known.resource, placed, force=True, dry_run=dry_run))
        except ApiError as error:
            raise FileError(f"{where}: {error.message}") from None
    return answers


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path == _STDIN:
            yield Path("/dev/stdin")
        elif path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES)
        elif path.exists():
            yield path
        else:
            raise FileError(f"{path}: there is no such file")


def _objects(path: Path) -> Iterator[Object]:
    try:
        for obj in load_all(path.read_bytes()):
            if not _is_named(obj):
                raise FileError(f"{path}: an object needs apiVersion, kind and metadata.name, all of them text")
            yield obj
    except ManifestError as error:
        raise FileError(f"{path}: {error}") from None


def _is_named(obj: Json) -> bool:
    """Whether it says what it is and where; the server has its say about everything else."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(metadata, dict):
        return False
    needed = (obj.get("apiVersion"), obj.get("kind"), metadata.get("name"))
    return all(isinstance(each, str) and each for each in needed) and isinstance(metadata.get("namespace") or "", str)


def _placed(obj: Object, namespace: str) -> Object:
    if obj["metadata"].get("namespace"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def _title(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"
