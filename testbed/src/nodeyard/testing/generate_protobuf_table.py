"""Generates the table of protobuf messages from Kubernetes' `.proto` files: the second step of `make builtins`.

The published Go modules contain the `.proto` files. They give number, shape and type of each field, for every message
that the definitions in types.json refer to, without descriptions. The JSON name of a field is that of the definition. A
message field that the definition lacks is an embedded struct: its fields belong to the parent.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from nodeyard.apiserver.kinds import protobuf, table
from nodeyard.apiserver.kinds.protobuf import Field
from nodeyard.kube.json import Object
from nodeyard.testing import golang

Protos = Callable[[str], Mapping[str, str]]
"""The bodies of the messages in a definition's package."""

_MODULES = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"  (?:(optional|repeated) (\S+)|map<string, (\S+)>) (\w+) = (\d+);")
_SHAPES: Mapping[str | None, Literal["one", "list", "map"]] = {"optional": "one", "repeated": "list", None: "map"}
_SCALARS = frozenset({"bool", "bytes", "double", "int32", "int64", "string"})


def derive(definitions: Mapping[str, Object], protos: Protos) -> dict[str, tuple[Field, ...]]:
    """Return the fields of each message by definition, including embedded messages and lists."""
    found: dict[str, tuple[Field, ...]] = {}
    pending = [(name, facts.get("properties")) for name, facts in definitions.items()]
    while pending:
        name, properties = pending.pop()
        if name in found:
            continue
        found[name] = tuple(sorted(_rows(name, properties, protos), key=lambda row: row.number))
        for row in found[name]:
            if "." in row.type and row.type not in definitions:
                pending.append((row.type, properties if row.shape == "inline" else None))
    return dict(sorted(found.items()))


def _rows(definition: str, properties: Object | None, protos: Protos) -> Iterator[Field]:
    package, _, message = definition.rpartition(".")
    # Go names differ in case and in signs: `xKubernetesListType` is `x-kubernetes-list-type`, `uID` is `uid`.
    known = {_letters(name): name for name in properties or ()}
    for line in protos(definition)[message].splitlines():
        if not line.strip() or line.lstrip().startswith("//"):
            continue
        parts = _FIELD.fullmatch(line)
        if parts is None:
            raise ValueError(f"{definition}: {line.strip()!r} is not a field")
        label, plain, in_map, name, number = parts.groups()
        kind = _resolved(plain or in_map, package)
        shape = _SHAPES[label]
        if properties is None:
            # A type with a JSON form of its own that holds bytes holds JSON.
            yield Field(int(number), name, shape, "json" if kind == "bytes" else kind)
        elif _letters(name) in known:
            yield Field(int(number), known[_letters(name)], shape, kind)
        elif shape == "one" and "." in kind:
            yield Field(int(number), "", "inline", kind)
        else:
            raise ValueError(f"{definition} has no field {name}")


def _letters(name: str) -> str:
    return re.sub(r"\W", "", name).lower()


def _resolved(kind: str, package: str) -> str:
    """Return the definition of a message: `.k8s.io.api.core.v1.Pod` is `io.k8s.api.core.v1.Pod`."""
    if kind in _SCALARS:
        return kind
    if kind.startswith(".k8s.io."):
        return f"io.k8s.{kind.removeprefix('.k8s.io.').replace('_', '-')}"
    return f"{package}.{kind}"


def go_protos(folders: Mapping[str, Path]) -> Protos:
    """Reads the `.proto` files of modules."""
    packages: dict[str, Mapping[str, str]] = {}

    def protos(definition: str) -> Mapping[str, str]:
        _, _, module, *place = definition.split(".")[:-1]
        key = "/".join((module, *place))
        if key not in packages:
            packages[key] = dict(_MESSAGE.findall((folders[module] / "/".join(place) / "generated.proto").read_text()))
        return packages[key]

    return protos


def folders(version: str) -> dict[str, Path]:
    """Return the module folders of a Kubernetes release; download missing ones."""
    go = golang.find(lambda why: print(why, file=sys.stderr))
    published = version.replace("v1.", "v0.", 1)
    with tempfile.TemporaryDirectory() as empty:
        return {name: Path(go.download(f"k8s.io/{name}", published, Path(empty))["Dir"]) for name in _MODULES}


def render(messages: Mapping[str, tuple[Field, ...]], version: str) -> str:
    """Format one line per message, so that a new Kubernetes version gives a readable diff."""
    lines = [f'"{name}":{msgspec.json.encode(rows).decode()}' for name, rows in messages.items()]
    return f'{{"kubernetes":"{version}","messages":{{\n' + ",\n".join(lines) + "\n}}\n"


def main() -> int:
    version = table.table().kubernetes
    messages = derive(table.definitions(), go_protos(folders(version)))
    protobuf.PATH.write_text(render(messages, version))
    print(f"{protobuf.PATH.name}: {len(messages)} messages of Kubernetes {version}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
