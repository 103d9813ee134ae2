"""`nodeyard apiserver`: the embedded API server alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeyard.cli.failures import Failure


def apiserver(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", metavar="N", min=0, max=65535)],
    kubeconfig_out: Annotated[
        Path, typer.Option(help="Write the administrator's kubeconfig to this file.", metavar="FILE")
    ],
    users: Annotated[
        Path | None,
        typer.Option(help="Users and their tokens: YAML, or a token file ending in .csv.", metavar="FILE"),
    ] = None,
    bind: Annotated[str, typer.Option(help="Address to listen on.", metavar="HOST")] = "127.0.0.1",
    controllers: Annotated[
        str, typer.Option(help="Controllers to run: names, '*' for all, -NAME to exclude one.", metavar="LIST")
    ] = "*",
    load: Annotated[
        Path | None,
        typer.Option(help="Support bundle, written by nodeyard gather, whose cluster is served.", metavar="BUNDLE"),
    ] = None,
    audit_log_path: Annotated[
        Path | None, typer.Option(help="Append an audit event for every request to this file.", metavar="FILE")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Keep the cluster in this directory, and continue with what it contains.", metavar="DIR"),
    ] = None,
) -> None:
    """Serve the Kubernetes API from memory, for kubectl, tests and demos.

    Prints "ready" when it serves requests. Without --data-dir nothing is kept when it ends.
    """
    from nodeyard.apiserver.process import Serving, running
    from nodeyard.apiserver.user_file import UserFileError, read_user_file
    from nodeyard.cli.signals import run, wait_for_signal
    from nodeyard.process import logs

    logs.configure()
    try:
        known = read_user_file(users) if users else ()
    except UserFileError as error:
        raise Failure(f"--users: {error}") from None
    names = tuple(name.strip() for name in controllers.split(",") if name.strip())

    async def serve() -> None:
        serving = Serving(bind, port, known, names, audit_log_path, data_dir=data_dir, load=load)
        async with running(serving, kubeconfig_out):
            print("ready", flush=True)
            await wait_for_signal()

    run(serve())
