"""`nodeyard demo`: a simulated fleet to look at."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    once: Annotated[bool, typer.Option("--once", help="Converge, print the summary and exit.")] = False,
    nodes: Annotated[int, typer.Option(help="How many nodes.", metavar="N", min=2, max=10000)] = 30,
    real: Annotated[bool, typer.Option("--real", help="On the real control plane (make controlplane).")] = False,
) -> None:
    """Run a simulated fleet on the embedded API server.

    Without --once it runs until Ctrl-C and prints kubectl commands to try.
    """
    from nodeyard.cli.signals import run
    from nodeyard.demo.fleet import show
    from nodeyard.process import logs

    logs.configure(level="error")
    run(show(nodes, once=once, real=real))
