"""`nodeyard crds`: prints the CRDs of all capabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeyard.cli.failures import Failure


def crds(
    output: Annotated[
        Path | None, typer.Option(help="Write one file per CRD into this directory.", metavar="DIR")
    ] = None,
    policies_for: Annotated[
        str,
        typer.Option(
            help="Also print the ValidatingAdmissionPolicies that let only this user change what the operator writes, "
            "for example system:serviceaccount:nodeyard-system:nodeyard.",
            metavar="USER",
        ),
    ] = "",
) -> None:
    """Print the CRDs of all capabilities as YAML."""
    from nodeyard.app.capabilities import CAPABILITIES
    from nodeyard.kube.manifests import dump, dump_all

    definitions = [definition for capability in CAPABILITIES for definition in capability.definitions()]
    if policies_for:
        definitions += [policy for capability in CAPABILITIES for policy in capability.admission.policies(policies_for)]
    if output is None:
        print(dump_all(definitions) if definitions else "# no capability defines a CRD")
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
        for definition in definitions:
            (output / f"{definition['metadata']['name']}.yaml").write_text(dump(definition))
    except OSError as error:
        raise Failure(f"--output: {error.filename}: {error.strerror or error}") from None
    typer.echo(f"wrote {len(definitions)} files to {output}", err=True)
