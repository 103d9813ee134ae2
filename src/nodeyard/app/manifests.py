"""The generated part of `config/`: definitions, roles and policies, each from what a capability declares.

`python -m nodeyard.app.manifests config` writes them (`make crds`); a test fails when they have drifted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.kube.json import Object
from nodeyard.kube.manifests import dump, dump_all
from nodeyard.runtime import rbac
from nodeyard.runtime.capability import Capability


def files(capabilities: Sequence[Capability] = CAPABILITIES) -> Iterator[tuple[str, str]]:
    """Path below config/, and content."""
    for capability in capabilities:
        for kind in capability.kinds:
            definition = kind.definition()
            yield f"crd/{definition['metadata']['name']}.yaml", dump(definition)
        yield f"rbac/{capability.name}.yaml", dump_all(rbac.manifests(capability))
        if people := rbac.viewer_and_editor(capability):
            yield f"rbac/{capability.name}-people.yaml", dump_all(people)
        if guards := _guards(capability):
            yield f"policies/{capability.name}.yaml", dump_all(guards)


def _guards(capability: Capability) -> list[Object]:
    return list(capability.policies(rbac.username(capability)))


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0])
    for path, content in files():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
