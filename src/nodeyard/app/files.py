"""Reads manifests from files and directories, and applies them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

from nodeyard.client.api import Client
from nodeyard.client.errors import ApiError, NotFound
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Json, Object
from nodeyard.kube.manifests import ManifestError, load_all

_UID_NAMESPACE: Final = UUID("6e6f6465-7961-5264-8000-000000000000")
_SUFFIXES = (".yaml", ".yml", ".json")
_STDIN = Path("-")
"""Stands for stdin, as in kubectl."""


class FileError(ValueError):
    """A file or an object in it is invalid; the text names both and the fault."""


def read(paths: Iterable[Path]) -> list[tuple[str, Object]]:
    """Return every object with its file and name. Files of a directory are read in alphabetical order."""
    return [each for path in _files(paths) for each in parse(path.read_bytes(), str(path))]


def parse(text: bytes, source: str) -> list[tuple[str, Object]]:
    """Return every object of a YAML or JSON text with its source and name."""
    return [(f"{source}: {_title(obj)}", obj) for obj in _objects(text, source)]


async def send(
    client: Client, objects: Sequence[tuple[str, Object]], *, dry_run: bool, namespace: str = "default"
) -> list[Object]:
    """Apply each object as `kubectl apply --server-side` does, and return the server's answers.

    A dry run includes defaults, CEL rules and webhooks. `namespace` is for namespaced objects that set none.
    """
    catalog = await client.catalog()
    kubectl = client.managed_by("kubectl")
    answers = []
    for where, obj in objects:
        known = catalog.by_kind(obj["apiVersion"], obj["kind"])
        if known is None:
            missing = f"the server does not serve {obj['kind']} of {obj['apiVersion']}"
            raise FileError(f"{where}: {missing}; install its CRD first (nodeyard crds prints those of Nodeyard)")
        try:
            placed = _with_namespace(obj, namespace) if known.resource.namespaced else obj
            answer = await kubectl.apply(known.resource, placed, force=True, dry_run=dry_run)
            answers.append(await _with_stable_uid(client, known.resource, answer) if dry_run else answer)
        except ApiError as error:
            raise FileError(f"{where}: {error.message}") from None
    return answers


async def _with_stable_uid(client: Client, resource: Resource[Object], answer: Object) -> Object:
    """Replace the random uid of a new object in a dry run by one derived from its name, so that plan ids are stable."""
    metadata = answer["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace", "")
    try:
        await client.get(resource, name, namespace)
        return answer
    except NotFound:
        uid = uuid5(_UID_NAMESPACE, "/".join((resource.api_version, resource.kind, namespace, name)))
        return {**answer, "metadata": {**metadata, "uid": str(uid)}}


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path == _STDIN:
            yield Path("/dev/stdin")
        elif path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES)
        elif path.exists():
            yield path
        else:
            raise FileError(f"{path}: no such file or directory")


def _objects(text: bytes, source: str) -> Iterator[Object]:
    try:
        for obj in load_all(text):
            if not _is_named(obj):
                raise FileError(f"{source}: an object needs apiVersion, kind and metadata.name, each a string")
            yield obj
    except ManifestError as error:
        raise FileError(f"{source}: {error}") from None


def _is_named(obj: Json) -> bool:
    """Return whether an object has the fields that a request needs. The server validates everything else."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(metadata, dict):
        return False
    needed = (obj.get("apiVersion"), obj.get("kind"), metadata.get("name"))
    return all(isinstance(each, str) and each for each in needed) and isinstance(metadata.get("namespace") or "", str)


def _with_namespace(obj: Object, namespace: str) -> Object:
    if obj["metadata"].get("namespace"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def _title(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"
