"""The operators of services for other kinds than those that services.yaml names: a user's own.

An operator that follows the same contract (an annotation with the wanted hash, the deployed one in the status) is
played by the same stages, written down for another kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.manifests import dump, load
from nodeyard.sim.stage_format import Kind

FILE: Final = "services.yaml"


def stages_for(kinds: Iterable[Kind]) -> tuple[str, str]:
    """A stage file's name and text."""
    shipped = load((files("nodeyard.sim") / "stages" / FILE).read_text())["stages"]
    model = [stage for stage in shipped if stage["for"] == shipped[0]["for"]]
    stages = [_of(kind, stage) for kind in kinds for stage in model]
    return f"{FILE} for other kinds", dump({"stages": stages})


def _of(kind: Kind, stage: Object) -> Object:
    played = {"apiVersion": kind.api_version, "kind": kind.kind}
    return {**stage, "name": f"{kind.api_version} {kind.kind}: {stage['name']}", "for": played}
